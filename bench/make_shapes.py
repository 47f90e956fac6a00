"""Makes tables of other shapes than orders, each in four files, in a SQLite catalog named "default".

usage: make_shapes.py OUT nested|wide|long --rows N

nested  shapes.nested: structs in structs, a list of structs, a list of texts, a map
wide    shapes.wide: 300 columns, longs, doubles, ints, texts with few values and timestamps by turns
long    shapes.long: rows of 1 MB, half of it hexadecimal text and half bytes that do not compress
"""
import argparse
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import (BinaryType, DecimalType, DoubleType, IntegerType, ListType, LongType, MapType, NestedField,
                             StringType, StructType, TimestampType)

from job import catalog

FILES = 4
CITIES = pa.array(["Lima", "Oslo", "Pune", "Graz", "Kyoto", "Quito", "Turku", "Accra"])
KEYS = pa.array(["origin", "channel", "campaign", "device", "voucher"])
TURNS = [LongType(), DoubleType(), IntegerType(), StringType(), TimestampType()]


def optional(i, name, kind):
    return NestedField(i, name, kind, required=False)


def required(i, name, kind):
    return NestedField(i, name, kind, required=True)


SCHEMAS = {
    "nested": Schema(
        required(1, "id", LongType()),
        optional(2, "customer", StructType(
            optional(3, "name", StringType()),
            optional(4, "address", StructType(optional(5, "city", StringType()), optional(6, "zip", IntegerType()))))),
        optional(7, "items", ListType(8, StructType(
            optional(9, "sku", StringType()), optional(10, "quantity", IntegerType()),
            optional(11, "price", DecimalType(9, 2))), element_required=False)),
        optional(12, "tags", ListType(13, StringType(), element_required=False)),
        optional(14, "attributes", MapType(15, StringType(), 16, StringType(), value_required=False)),
        optional(17, "total", IntegerType())),
    "wide": Schema(required(1, "id", LongType()), *(optional(i + 1, f"c{i}", TURNS[i % 5]) for i in range(1, 300))),
    "long": Schema(required(1, "id", LongType()), optional(2, "body", StringType()), optional(3, "blob", BinaryType())),
}


def text(prefix, values):
    return pc.binary_join_element_wise(pa.scalar(prefix), pc.cast(pa.array(values), pa.string()), "-")


def offsets(rng, n, most):
    return pa.array(np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, n))]).astype("int32"))


def nested(ids, rng):
    n = len(ids)
    zips = pa.array(rng.integers(10_000, 99_999, n).astype("int32"))
    address = pa.StructArray.from_arrays([CITIES.take(pa.array(rng.integers(0, 8, n))), zips], ["city", "zip"])
    customer = pa.StructArray.from_arrays([text("customer", rng.integers(0, 100_000, n)), address], ["name", "address"],
                                          mask=pa.array(rng.random(n) < 0.05))
    of_items, of_tags = offsets(rng, n, 6), offsets(rng, n, 3)
    m, t = of_items[-1].as_py(), of_tags[-1].as_py()
    cents = np.column_stack([rng.integers(100, 100_000, m), np.zeros(m, "int64")])  # decimal128, little endian
    price = pa.Array.from_buffers(pa.decimal128(9, 2), m, [None, pa.py_buffer(cents.tobytes())])
    items = pa.ListArray.from_arrays(of_items, pa.StructArray.from_arrays(
        [text("SKU", rng.integers(0, 50_000, m)), pa.array(rng.integers(1, 20, m).astype("int32")), price], ["sku", "quantity", "price"]))
    tags = pa.ListArray.from_arrays(of_tags, text("tag", rng.integers(0, 500, t)))
    counts = rng.integers(0, 6, n)  # the first so many keys, since a map has each once
    of_map = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype("int32"))
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    attributes = pa.MapArray.from_arrays(of_map, KEYS.take(pa.array(at)), text("value", rng.integers(0, 1000, len(at))))
    return [pa.array(ids), customer, items, tags, attributes, pa.array(rng.integers(0, 10_000, n).astype("int32"))]


def wide(ids, rng):
    n = len(ids)

    def column(i):
        return (lambda: pa.array(rng.integers(0, 10 ** (1 + i % 9), n)),
                lambda: pa.array(np.round(rng.random(n) * 1000, 2), mask=rng.random(n) < 0.1),
                lambda: pa.array(rng.integers(0, 1000, n).astype("int32")),
                lambda: text(f"v{i}", rng.integers(0, 200, n)),
                lambda: pa.array(rng.integers(0, 10**15, n), pa.timestamp("us")))[i % 5]()

    return [pa.array(ids), *(column(i) for i in range(1, 300))]


def long(ids, rng):
    half = 1 << 19
    return [pa.array(ids), pa.array([rng.bytes(half // 2).hex() for _ in ids]), pa.array([rng.bytes(half) for _ in ids])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("shape", choices=SCHEMAS)
    parser.add_argument("--rows", type=int, required=True)
    args = parser.parse_args()
    out = os.path.abspath(args.out)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    made = catalog(out, "src")
    made.create_namespace("shapes")
    table = made.create_table(f"shapes.{args.shape}", SCHEMAS[args.shape])
    rng, each = np.random.default_rng(7), args.rows // FILES
    make = {"nested": nested, "wide": wide, "long": long}[args.shape]
    arrow = table.schema().as_arrow()
    for first in range(0, each * FILES, each):
        columns = make(np.arange(first, first + each), rng)
        table.append(pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, arrow)], schema=arrow))


main()
