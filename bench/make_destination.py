"""Makes the empty destination of the benchmark's job: warehouse.orders, zstd at level 1 as PyIceberg writes.

usage: make_destination.py SOURCE OUT [renamed]      with "renamed" no column is promoted; OUT gets dst.db (a SQLite catalog named "default") and dst_wh
"""
import os
import shutil
import sys

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, LongType, NestedField, StringType

source, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CHANGED = {} if "renamed" in sys.argv[3:] else {"quantity": LongType(), "price": DecimalType(14, 2)}
RENAMED = {"order_total": "total_amount"}

src = SqlCatalog("default", uri=f"sqlite:///{source}/src.db").load_table("sales.orders")
fields = [NestedField(f.field_id, RENAMED.get(f.name, f.name), CHANGED.get(f.name, f.field_type), required=f.required)
          for f in src.schema().fields]
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
catalog = SqlCatalog("default", uri=f"sqlite:///{out}/dst.db", warehouse=f"file://{out}/dst_wh")
catalog.create_namespace("warehouse")
catalog.create_table("warehouse.orders", Schema(*fields, NestedField(13, "channel", StringType())),
                     properties={"write.parquet.compression-level": "1"})
