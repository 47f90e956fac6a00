"""read_older.py OUT TABLE…: an older PyIceberg reads tables of the catalog OUT/dst.db and writes what it read, each as
OUT/TABLE.arrow. It runs in the environment of older.sh, which lacks all else of these scripts."""

import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

out, tables = sys.argv[1], sys.argv[2:]
catalog = SqlCatalog("dst", uri=f"sqlite:///{out}/dst.db", warehouse=f"file://{out}/dst_wh")
for name in tables:
    rows = catalog.load_table(f"lab.{name}").scan().to_arrow()
    with pa.ipc.new_file(f"{out}/{name}.arrow", rows.schema) as file:
        file.write_table(rows)
