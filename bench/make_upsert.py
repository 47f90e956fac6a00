"""Makes the tables of the upsert's job: warehouse.orders of ROWS rows, and CHANGES changes to it in sales.changes.

usage: make_upsert.py SOURCE OUT ROWS CHANGES

SOURCE is what make_orders.py made. The destination's rows are the first of it, and once more with other keys where
it has too few. The changes are those that peer_pyiceberg_upsert.py makes too. OUT gets dst.db and src.db (SQLite
catalogs named "default") with their warehouses.
"""
import os
import shutil
import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from upsert_changes import changes_to, rekeyed

source, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
rows, changes = map(int, sys.argv[3:5])
src = SqlCatalog("default", uri=f"sqlite:///{source}/src.db", warehouse=f"file://{source}/src_wh").load_table("sales.orders")
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)


def table(side, namespace, name):
    catalog = SqlCatalog("default", uri=f"sqlite:///{out}/{side}.db", warehouse=f"file://{out}/{side}_wh")
    catalog.create_namespace(namespace)
    return catalog.create_table(f"{namespace}.{name}", src.schema(), properties={"write.parquet.compression-level": "1"})


first = src.scan(limit=rows).to_arrow()
base, copies = first, 1
while len(base) < rows:
    base = pa.concat_tables([base, rekeyed(first, copies * 10**10)])
    copies += 1
base = base.slice(0, rows)
destination = table("dst", "warehouse", "orders")
for at in range(0, rows, len(first)):
    destination.append(base.slice(at, len(first)))

table("src", "sales", "changes").append(changes_to(base, changes))
