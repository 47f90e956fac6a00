#!/usr/bin/env python3
"""Makes random tables and random row filters, and says which rows DuckDB selects.

  filter_random.py SEED TABLES FILTERS OUT

Makes OUT/src.db with tables lab.t0, lab.t1, ... and writes OUT/cases.jsonl: a line for each filter with
the table, the filter's text, the SQL that DuckDB was asked and the IDs of the rows it selected. The rows
that DuckDB sees are the Python values that were written, never read back.
"""

import datetime
import decimal
import json
import math
import os
import random
import struct
import sys
import uuid

import duckdb
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

D = decimal.Decimal
decimal.getcontext().prec = 60
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def moment(micros):
    return EPOCH + datetime.timedelta(microseconds=micros)


TEXTS = ["", "a", "ab", "abc", "abd", "b", "B", " ", "%", "a_c", "a\\b", "it's", "ä", "\u00e4\u00f6", "\U0001f600", "a" * 20, "a" * 16 + "\U0010ffff", "null", "0"]
BYTES = [b"", b"\x00", b"\x00\xff", b"a", b"ab", b"\xff" * 17, b"\xff", bytes(range(20))]

# What is known of a type: values that random columns draw from, and how much is beside a value.
POOLS = {
    "b": [True, False],
    "i": [0, 1, -1, 2, 7, 100, -50, 2**31 - 1, -(2**31)],
    "l": [0, 1, -1, 3, 50, 1000, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**31],
    "f": [0.0, -0.0, 1.5, -1.5, float32(0.1), math.nan, math.inf, -math.inf, float32(3.4028234663852886e38), float32(1e-45)],
    "d": [0.0, -0.0, 1.5, -2.25, 0.1, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, 16777217.0],
    "dec": [D("0.00"), D("1.00"), D("-1.00"), D("3.14"), D("9999999.99"), D("-9999999.99"), D("0.01")],
    "big": [D("0.0000000000"), D("1.0000000001"), D("-12345678901234567890.5"), D("9999999999999999999999999999.9999999999")],
    "day": [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2000, 1, 1)],
    "tod": [datetime.time(0, 0), datetime.time(12, 30, 1), datetime.time(23, 59, 59, 999999), datetime.time(0, 0, 0, 1)],
    "ts": [moment(0), moment(-1), moment(1), moment(1_700_000_000_000_001), datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1969, 12, 31, 23), datetime.datetime(2024, 1, 1)],
    "s": TEXTS,
    "u": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID(int=1 << 127), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")],
    "fx": [b"\x00" * 4, b"\xff" * 4, b"abcd", b"\x80\x00\x00\x00"],
    "bin": BYTES,
}
POOLS["tz"] = [t.replace(tzinfo=UTC) for t in POOLS["ts"]]

TYPES = {
    "b": (BooleanType(), pa.bool_(), "BOOLEAN"),
    "i": (IntegerType(), pa.int32(), "INTEGER"),
    "l": (LongType(), pa.int64(), "BIGINT"),
    "f": (FloatType(), pa.float32(), "REAL"),
    "d": (DoubleType(), pa.float64(), "DOUBLE"),
    "dec": (DecimalType(9, 2), pa.decimal128(9, 2), "DECIMAL(9,2)"),
    "big": (DecimalType(38, 10), pa.decimal128(38, 10), "DECIMAL(38,10)"),
    "day": (DateType(), pa.date32(), "DATE"),
    "tod": (TimeType(), pa.time64("us"), "TIME"),
    "ts": (TimestampType(), pa.timestamp("us"), "TIMESTAMP"),
    "tz": (TimestamptzType(), pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
    "s": (StringType(), pa.string(), "VARCHAR"),
    "u": (UUIDType(), pa.binary(16), "UUID"),
    "fx": (FixedType(4), pa.binary(4), "BLOB"),
    "bin": (BinaryType(), pa.binary(), "BLOB"),
}
# What a column is before it is promoted.
NARROW = {"l": ("i", IntegerType()), "d": ("f", FloatType()), "wide": ("dec", DecimalType(9, 2))}
TRANSFORMS = {
    "b": ["identity"],
    "i": ["identity", "bucket[3]", "truncate[10]"],
    "l": ["identity", "bucket[4]", "truncate[7]"],
    "dec": ["identity", "bucket[3]"],
    "day": ["identity", "year", "month", "day", "bucket[3]"],
    "ts": ["identity", "year", "month", "day", "hour", "bucket[3]"],
    "tz": ["identity", "year", "month", "day", "hour", "bucket[3]"],
    "s": ["identity", "truncate[2]", "bucket[5]"],
    "u": ["identity", "bucket[3]"],
    "bin": ["identity", "truncate[1]", "bucket[3]"],
}
# PyIceberg cannot write partitions of NaN, of times, and of decimals that truncate takes out of their
# precision; the fixtures part_float and part_truncate have some of them.


class Column:
    """A column of a table: its name, its kind (a key of TYPES), and how it came to be what it is."""

    def __init__(self, name, kind, parent=None):
        self.name, self.kind, self.parent = name, kind, parent
        self.promoted = self.added = False

    def path(self):
        """The path as the filter's grammar has it."""
        quoted = self.name if self.name.isidentifier() and self.name.isascii() else '"' + self.name + '"'
        return f"{self.parent}.{quoted}" if self.parent else quoted

    def sql(self):
        quoted = '"' + self.name + '"'
        return f'"{self.parent}".{quoted}' if self.parent else quoted


def pick_columns(r):
    """The columns of a table, some of them in a struct, one with a dot in its name."""
    kinds = r.sample(list(TYPES), r.randint(3, len(TYPES)))
    columns = [Column(k, k) for k in kinds]
    if r.random() < 0.4:
        columns.append(Column("a.b", r.choice(["i", "l", "s"])))
    if r.random() < 0.4:
        columns.append(Column("x", r.choice(["i", "s", "d"]), "st"))
        columns.append(Column("y", r.choice(["l", "s", "day"]), "st"))
    return columns


def value_of(r, column, narrow):
    if r.random() < 0.2:
        return None
    pool = POOLS[column.kind]
    v = r.choice(pool)
    if narrow and column.kind == "l":
        v = r.choice(POOLS["i"])
    if narrow and column.kind == "d":
        v = r.choice(POOLS["f"])
    return v


def arrow_type(column, narrow):
    kind = column.kind
    if narrow:
        kind = NARROW[kind][0]
    return TYPES[kind][1]


def stored(kind, v):
    return v.bytes if isinstance(v, uuid.UUID) else v


def make_table(catalog, name, r):
    """Makes a table, and returns its columns and rows."""
    columns = pick_columns(r)
    top = [c for c in columns if c.parent is None]
    inside = [c for c in columns if c.parent]
    parts = []
    if r.random() < 0.6:
        for c in r.sample(top, min(len(top), r.randint(1, 2))):
            if c.kind in TRANSFORMS and "." not in c.name:
                parts.append((c, r.choice(TRANSFORMS[c.kind])))
    partitioned = {c.name for c, _ in parts}
    for c in top:
        if c.kind in ("l", "d") and c.name not in partitioned and r.random() < 0.3:
            c.promoted = True
        elif c.name not in partitioned and r.random() < 0.15:
            c.added = True
    if all(c.added for c in top) and not inside:
        top[0].added = False
    fields = [NestedField(1, "id", LongType(), required=False)]
    n = 1
    for c in top:
        n += 1
        c.id = n
        if not c.added:
            fields.append(NestedField(n, c.name, NARROW[c.kind][1] if c.promoted else TYPES[c.kind][0], required=False))
    if inside:
        struct_fields = []
        for c in inside:
            n += 1
            struct_fields.append(NestedField(n, c.name, TYPES[c.kind][0], required=False))
        fields.append(NestedField(n + 1, "st", StructType(*struct_fields), required=False))
    spec = PartitionSpec()
    schema = Schema(*fields)
    properties = {
        "write.parquet.row-group-limit": str(r.choice([1, 2, 5, 1000])),
        "write.metadata.metrics.default": r.choice(["truncate(16)", "truncate(2)", "full", "counts", "none"]),
    }
    table = catalog.create_table(f"lab.{name}", schema, properties=properties)
    if parts:
        with table.update_spec() as update:
            for k, (c, transform) in enumerate(parts):
                update.add_field(c.name, parse_transform(transform), f"p{k}")
        table = catalog.load_table(f"lab.{name}")
    rows = []
    files = r.randint(1, 5)
    change = r.randint(0, files - 1)
    late = False
    for k in range(files):
        if k == change and k > 0:
            with table.update_schema() as update:
                for c in top:
                    if c.promoted:
                        update.update_column((c.name,), TYPES[c.kind][0])
                    if c.added:
                        update.add_column((c.name,), TYPES[c.kind][0])
            late = True
            table = catalog.load_table(f"lab.{name}")
        new = []
        sort_by = r.choice(top) if r.random() < 0.5 else None
        for _ in range(r.choice([0, 2, 10, 40])):
            row = {"id": 0}
            for c in top:
                row[c.name] = None if c.added and not late else value_of(r, c, c.promoted and not late)
            if inside:
                row["st"] = None if r.random() < 0.2 else {c.name: value_of(r, c, False) for c in inside}
            new.append(row)
        if sort_by:
            new.sort(key=lambda row: (row[sort_by.name] is None, str(row[sort_by.name])))
        for row in new:
            row["id"] = len(rows)
            rows.append(row)
        if new:
            table.append(arrow_table(new, top, inside, late))
            table = catalog.load_table(f"lab.{name}")
    if not late:
        for c in top:
            if c.added and files == 1:
                c.gone = True
        if any(c.promoted or c.added for c in top):
            with table.update_schema() as update:
                for c in top:
                    if c.promoted:
                        update.update_column((c.name,), TYPES[c.kind][0])
                    if c.added:
                        update.add_column((c.name,), TYPES[c.kind][0])
    return columns, rows


def arrow_table(rows, top, inside, late):
    arrays = {"id": pa.array([row["id"] for row in rows], pa.int64())}
    for c in top:
        if c.added and not late:
            continue
        kind = arrow_type(c, c.promoted and not late)
        arrays[c.name] = pa.array([stored(c.kind, row[c.name]) for row in rows], kind)
    if inside:
        kind = pa.struct([(c.name, TYPES[c.kind][1]) for c in inside])
        arrays["st"] = pa.array([None if row["st"] is None else {k: v for k, v in row["st"].items()} for row in rows], kind)
    return pa.table(arrays)


def duck_table(connection, columns, rows):
    """The rows in DuckDB, under the name t."""
    top = [c for c in columns if c.parent is None]
    inside = [c for c in columns if c.parent]
    arrays = {"id": pa.array([row["id"] for row in rows], pa.int64())}
    for c in top:
        values = [row[c.name] for row in rows]
        if c.kind == "u":
            arrays[c.name] = pa.array([None if v is None else str(v) for v in values], pa.string())
        elif c.kind == "fx":
            arrays[c.name] = pa.array(values, pa.binary())
        else:
            arrays[c.name] = pa.array(values, TYPES[c.kind][1])
    if inside:
        arrays["st"] = pa.array([row["st"] for row in rows], pa.struct([(c.name, TYPES[c.kind][1]) for c in inside]))
    source = pa.table(arrays)
    projected = ", ".join(
        f'CAST("{n}" AS UUID) AS "{n}"' if n in {c.name for c in top if c.kind == "u"} else f'"{n}"' for n in source.column_names
    )
    connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {projected} FROM source")


class Literal:
    """A literal as the filter has it and as DuckDB has it; column says how to compare with it there."""

    def __init__(self, text, sql, widen=False):
        self.text, self.sql, self.widen = text, sql, widen


def number_literal(r, v, kind):
    """A whole number or decimal, a little beside or between values now and then."""
    v = D(v) + r.choice([0, 0, 0, 1, -1])
    if r.random() < 0.15:
        v += r.choice([D("0.5"), D("0.001"), D("-0.25")])
    if r.random() < 0.05:
        v = r.choice([D(10) ** 25, -D(10) ** 25])
    text = format(v, "f")
    if kind == "big":
        return Literal(text, f"CAST('{text}' AS DECIMAL(38,10))") if abs(v) < D(10) ** 28 and -v.as_tuple().exponent <= 10 else Literal("0", "CAST(0 AS DECIMAL(38,10))")
    return Literal(text, f"CAST('{text}' AS DECIMAL(38,6))", widen=True)


def float_text(v):
    if math.isnan(v):
        return "'NaN'"
    if math.isinf(v):
        return "'Infinity'" if v > 0 else "'-Infinity'"
    return repr(v)


def literal(r, kind):
    if r.random() < 0.06:
        return Literal("NULL", f"CAST(NULL AS {TYPES[kind][2]})")
    v = r.choice(POOLS[kind])
    sql_type = TYPES[kind][2]
    if kind == "b":
        return Literal(str(v).upper(), str(v).upper())
    if kind in ("i", "l", "dec", "big"):
        return number_literal(r, v, kind)
    if kind in ("f", "d"):
        if r.random() < 0.2 and math.isfinite(v) and abs(v) < 1e6:
            v += r.choice([1, -1, 0.5])
        text = float_text(v)
        return Literal(text, f"CAST('{text.strip(chr(39))}' AS {sql_type})")
    if kind == "day":
        if r.random() < 0.3 and 1 < v.year < 9999:
            v += datetime.timedelta(days=r.choice([1, -1, 31]))
        return Literal(f"'{v.isoformat()}'", f"CAST('{v.isoformat()}' AS DATE)")
    if kind == "tod":
        return Literal(f"'{v.isoformat()}'", f"CAST('{v.isoformat()}' AS TIME)")
    if kind in ("ts", "tz"):
        if r.random() < 0.3 and 1 < v.year < 9999:
            v += datetime.timedelta(microseconds=r.choice([1, -1, 3_600_000_000]))
        text = v.replace(tzinfo=None).isoformat(r.choice(["T", " "])) + ("+00:00" if kind == "tz" else "")
        return Literal(f"'{text}'", f"CAST('{text}' AS {sql_type})")
    if kind == "s":
        if r.random() < 0.2:
            v = v + r.choice(["a", "\x01"]) if r.random() < 0.5 else v[:1]
        quoted = "'" + v.replace("'", "''") + "'"
        return Literal(quoted, quoted)
    if kind == "u":
        return Literal(f"'{v}'", f"CAST('{v}' AS UUID)")
    if r.random() < 0.2 and kind == "bin":
        v += b"\x00"
    return Literal(f"X'{v.hex()}'", f"unhex('{v.hex()}')")


def operand(column, *literals):
    """The column as DuckDB compares it: widened where a literal is no value of its type."""
    if any(l.widen for l in literals):
        return f"CAST({column.sql()} AS DECIMAL(38,6))"
    return column.sql()


def predicate(r, columns):
    c = r.choice(columns)
    kind = c.kind
    what = r.random()
    if what < 0.12:
        word = r.choice(["IS NULL", "IS NOT NULL"])
        return f"{c.path()} {word}", f"{c.sql()} {word}"
    if what < 0.2 and kind in ("f", "d"):
        if r.random() < 0.5:
            return f"{c.path()} IS NAN", f"isnan({c.sql()})"
        return f"{c.path()} IS NOT NAN", f"NOT isnan({c.sql()})"
    if what < 0.3 and kind == "s":
        prefix = r.choice(TEXTS)
        if r.random() < 0.5:
            prefix = prefix[:2]
        word = r.choice(["", "NOT "])
        quoted = prefix.replace("'", "''")
        if r.random() < 0.5:
            pattern = quoted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"{c.path()} {word}LIKE '{pattern}%'", f"{word}starts_with({c.sql()}, '{quoted}')"
        return f"{c.path()} {word}STARTS WITH '{quoted}'", f"{word}starts_with({c.sql()}, '{quoted}')"
    if what < 0.45:
        literals = [literal(r, kind) for _ in range(r.randint(1, 5))]
        word = r.choice(["IN", "NOT IN"])
        return (
            f"{c.path()} {word} ({', '.join(l.text for l in literals)})",
            f"{operand(c, *literals)} {word} ({', '.join(l.sql for l in literals)})",
        )
    if what < 0.55:
        a, b = literal(r, kind), literal(r, kind)
        word = r.choice(["BETWEEN", "NOT BETWEEN"])
        return f"{c.path()} {word} {a.text} AND {b.text}", f"({operand(c, a, b)} {word} {a.sql} AND {b.sql})"
    if what < 0.58:
        word = r.choice(["TRUE", "FALSE", "NULL"])
        return word, f"CAST({word} AS BOOLEAN)"
    l = literal(r, kind)
    op = r.choice(["=", "!=", "<>", "<", "<=", ">", ">="])
    if r.random() < 0.2:
        return f"{l.text} {op} {c.path()}", f"{l.sql} {op} {operand(c, l)}"
    return f"{c.path()} {op} {l.text}", f"{operand(c, l)} {op} {l.sql}"


def condition(r, columns, depth):
    if depth == 0 or r.random() < 0.3:
        return predicate(r, columns)
    if r.random() < 0.25:
        text, sql = condition(r, columns, depth - 1)
        return f"NOT ({text})", f"NOT ({sql})"
    word = r.choice(["AND", "OR"])
    parts = [condition(r, columns, depth - 1) for _ in range(2)]
    return f" {word} ".join(f"({t})" for t, _ in parts), f" {word} ".join(f"({s})" for _, s in parts)


def main():
    seed, tables, filters, out = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    r = random.Random(seed)
    os.makedirs(out, exist_ok=True)
    catalog = SqlCatalog("src", uri=f"sqlite:///{out}/src.db", warehouse=f"file://{out}/wh")
    catalog.create_namespace("lab")
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'; SET threads=1")
    with open(os.path.join(out, "cases.jsonl"), "w") as cases:
        for n in range(tables):
            columns, rows = make_table(catalog, f"t{n}", r)
            duck_table(connection, columns, rows)
            for _ in range(filters):
                text, sql = condition(r, columns, r.randint(0, 5))
                ids = [row[0] for row in connection.execute(f"SELECT id FROM t WHERE {sql} ORDER BY id").fetchall()]
                cases.write(json.dumps({"table": f"lab.t{n}", "filter": text, "sql": sql, "ids": ids}) + "\n")


if __name__ == "__main__":
    main()
