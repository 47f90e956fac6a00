"""Makes the tables of the upsert's job: warehouse.orders of ROWS rows, and CHANGES changes to it in sales.changes.

usage: make_upsert.py SOURCE OUT ROWS CHANGES

SOURCE is what make_orders.py made. The destination's rows are the first of it, and once more with other keys where
it has too few. The changes are those of peer_pyiceberg_upsert.py: half of them change the quantity of every so
many rows, half have keys that are not there, in random order. OUT gets dst.db and src.db (SQLite catalogs named
"default") with their warehouses.
"""
import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog

source, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
rows, changes = map(int, sys.argv[3:5])
src = SqlCatalog("default", uri=f"sqlite:///{source}/src.db", warehouse=f"file://{source}/src_wh").load_table("sales.orders")
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)


def table(side, namespace, name):
    catalog = SqlCatalog("default", uri=f"sqlite:///{out}/{side}.db", warehouse=f"file://{out}/{side}_wh")
    catalog.create_namespace(namespace)
    return catalog.create_table(f"{namespace}.{name}", src.schema(), properties={"write.parquet.compression-level": "1"})


def rekeyed(some, by):
    return some.set_column(0, some.schema.field(0), pc.add(some["order_id"], by))


first = src.scan(limit=rows).to_arrow()
base, copies = first, 1
while len(base) < rows:
    base = pa.concat_tables([base, rekeyed(first, copies * 10**10)])
    copies += 1
base = base.slice(0, rows)
destination = table("dst", "warehouse", "orders")
for at in range(0, rows, len(first)):
    destination.append(base.slice(at, len(first)))

picked = base.take(pa.array(np.arange(0, rows, 2 * rows // changes)[: changes // 2]))
updated = picked.set_column(3, base.schema.field(3), pc.cast(pc.add(picked["quantity"], 1), pa.int32()))
both = pa.concat_tables([updated, rekeyed(picked, 10**9)])
both = both.take(pa.array(np.random.default_rng(1).permutation(len(both))))
table("src", "sales", "changes").append(both)
