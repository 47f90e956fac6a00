"""Makes a table of one Parquet file for the measurement of memory, and an empty destination for it.

usage: make_big.py OUT --megabytes N [--shape S]      OUT/src.db, OUT/src_wh: bench.big, one file of about N MB
       make_big.py OUT --destination DIR [--shape S]  DIR/dst.db, DIR/dst_wh: bench.big, the same columns, empty

The shape is many, twelve columns of many types, or one, an ID and one column of texts that is nearly all of it. The
file has row groups of 128 MB, as Iceberg's writers make them (write.parquet.row-group-size-bytes),
and values that hardly compress, so that the row groups are as large in memory as the row group size
lets one fear. The second call with the same N finds the table and makes nothing. Both catalogs are
SQLite catalogs named "default".
"""
import argparse
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import (BooleanType, DateType, DecimalType, DoubleType, IntegerType, LongType,
                             NestedField, StringType, TimestamptzType)

ONE = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "note", StringType()))
MANY = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "account", LongType()),
    NestedField(3, "amount", DoubleType()),
    NestedField(4, "weight", DoubleType()),
    NestedField(5, "quantity", IntegerType()),
    NestedField(6, "price", DecimalType(18, 2)),
    NestedField(7, "at", TimestamptzType()),
    NestedField(8, "day", DateType()),
    NestedField(9, "paid", BooleanType()),
    NestedField(10, "region", StringType()),
    NestedField(11, "token", StringType()),
    NestedField(12, "note", StringType()),
)
GROUP_MB = 128
CHUNK = 200_000
PROBE = 1_000_000
REGIONS = pa.array(["eu", "us", "apac", "latam", "mea"])
HEX = np.frombuffer(b"0123456789abcdef", dtype="u1")


def texts(rng, n, length, nulls):
    """Random hexadecimal texts of one length."""
    letters = HEX[rng.integers(0, 16, n * length, dtype="u1")]
    offsets = np.arange(0, (n + 1) * length, length, dtype="i4")
    made = pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters.tobytes())])
    return pc.if_else(pa.array(rng.random(n) < nulls), pa.scalar(None, pa.string()), made)


def one(first, n, rng):
    """Rows from an id on, of an ID and a text."""
    return [pa.array(np.arange(first, first + n)), texts(rng, n, 120, 0)]


def many(first, n, rng):
    """Rows from an id on, of twelve columns."""
    words = np.column_stack([rng.integers(0, 2**45, n), np.zeros(n, "int64")])  # decimal128, little endian
    price = pa.Array.from_buffers(pa.decimal128(18, 2), n, [None, pa.py_buffer(words.tobytes())])
    return [
        pa.array(np.arange(first, first + n)),
        pa.array(rng.integers(0, 2**62, n)),
        pa.array(rng.random(n), mask=rng.random(n) < 0.05),
        pa.array(rng.standard_normal(n)),
        pa.array(rng.integers(0, 2**31, n).astype("int32")),
        price,
        pa.array(rng.integers(0, 2**50, n), pa.timestamp("us", "UTC")),
        pa.array(rng.integers(0, 20_000, n).astype("int32"), pa.date32()),
        pa.array(rng.random(n) < 0.7),
        REGIONS.take(pa.array(rng.integers(0, 5, n))),
        texts(rng, n, 16, 0),
        texts(rng, n, 40, 0.1),
    ]


SHAPES = {"many": (MANY, many), "one": (ONE, one)}


def write(path, arrow, megabytes, chunk):
    """Writes the file; a probe of about a row group tells how many rows make one. Returns the row groups' MB."""
    rng = np.random.default_rng(7)
    probe = pa.BufferOutputStream()
    options = {"compression": "zstd", "compression_level": 1, "store_schema": False}
    pq.write_table(pa.Table.from_arrays(chunk(0, PROBE, rng), schema=arrow), probe, **options)
    a_row = probe.tell() / PROBE
    group_rows, rows = int(GROUP_MB * 2**20 / a_row), int(megabytes * 2**20 / a_row)
    with pq.ParquetWriter(path, arrow, **options) as out:
        for start in range(0, rows, group_rows):
            end = min(start + group_rows, rows)
            parts = [chunk(s, min(CHUNK, end - s), rng) for s in range(start, end, CHUNK)]
            out.write_table(pa.Table.from_batches([pa.RecordBatch.from_arrays(p, schema=arrow) for p in parts]), group_rows)
    footer = pq.ParquetFile(path).metadata
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return [sum(g.column(c).total_compressed_size for c in range(g.num_columns)) / 2**20 for g in groups]


def catalog(folder, side):
    """A SQLite catalog with the namespace; what was there is gone."""
    for name in (f"{side}.db", f"{side}_wh"):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    os.makedirs(os.path.join(folder, f"{side}_wh"))
    made = SqlCatalog("default", uri=f"sqlite:///{folder}/{side}.db", warehouse=f"file://{folder}/{side}_wh")
    made.create_namespace("bench")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--megabytes", type=int)
    parser.add_argument("--destination")
    parser.add_argument("--shape", choices=SHAPES, default="many")
    args = parser.parse_args()
    schema, chunk = SHAPES[args.shape]
    if args.destination:
        catalog(os.path.abspath(args.destination), "dst").create_table("bench.big", schema)
        return
    out = os.path.abspath(args.out)
    done = os.path.join(out, f"made-{args.megabytes}")
    if os.path.exists(done):
        return
    os.makedirs(out, exist_ok=True)
    table = catalog(out, "src").create_table("bench.big", schema)
    folder = table.location().removeprefix("file://") + "/data"
    os.makedirs(folder)
    sizes = write(f"{folder}/big.parquet", table.schema().as_arrow(), args.megabytes, chunk)
    for size in sizes[:-1]:
        if not 0.95 * GROUP_MB < size < 1.05 * GROUP_MB:
            raise SystemExit(f"a row group has {size:.0f} MB, not {GROUP_MB}")
    table.add_files([f"{folder}/big.parquet"])
    open(done, "w").close()


if __name__ == "__main__":
    main()
