"""Compares the casts of pkg/plan with those of Spark and DuckDB.

    casts.py testdata/casts.golden

reads the values and results that the golden file has, makes each cast anew with Spark's TRY_CAST in
ANSI mode and with DuckDB's TRY_CAST, and prints what differs as JSON: a list of objects with engine,
from, to, value, ours and theirs. A result is the text that the golden file has, or "! RULE" of ours and
"!" of theirs where a value does not fit. Pairs that an engine has no types for are listed as skipped.
"""

import json
import math
import re
import struct
import sys
from decimal import Decimal

import pyarrow as pa

from engines import start_spark


def parse(path):
    """Yields (from, to, zone, [(value, result)])."""
    pair = None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if not line.startswith("\t"):
                if pair:
                    yield pair
                head, _, zone = line.partition(", assuming ")
                source, _, target = head.partition(" to ")
                pair = (source, target, zone, [])
                continue
            if line.startswith("\t! "):
                rule, _, values = line[3:].partition(":\t")
                pair[3].extend((v, "! " + rule) for v in split(values))
                continue
            value, result = line[1:].split("\t")
            pair[3].append((value, result))
    yield pair


def split(values):
    """The values of a line: quoted or not, with blanks between."""
    return re.findall(r'"(?:[^"\\]|\\.)*"|\S+', values)


def value_of(text, kind):
    """A Python value as pyarrow takes it."""
    if text == "null":
        return None
    if kind == "boolean":
        return text == "true"
    if kind == "double":
        return float(text.replace("Inf", "inf"))
    if kind == "float":
        return struct.unpack("f", struct.pack("f", float(text.replace("Inf", "inf"))))[0]
    if kind.startswith("decimal"):
        return Decimal(text)
    if kind == "string":
        return json.loads(re.sub(r"\\x(..)", r"\\u00\1", text))
    if text.startswith("0x"):
        return bytes.fromhex(text[2:])
    return int(text)


def arrow_type(kind):
    if kind.startswith("decimal"):
        return pa.decimal128(*map(int, re.findall(r"\d+", kind)))
    if kind.startswith("fixed") or kind in ("binary", "uuid"):
        return pa.binary()
    return {
        "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
        "date": pa.date32(), "time": pa.time64("us"), "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp_ns": pa.timestamp("ns"), "timestamptz_ns": pa.timestamp("ns", "UTC"), "string": pa.string(),
    }[kind]


def column(values, kind):
    """An Arrow array of values as the golden file has them; of an integer kind by its bits."""
    plain = [value_of(v, kind) for v in values]
    typ = arrow_type(kind)
    if pa.types.is_date32(typ):
        return pa.array(plain, pa.int32()).cast(typ)
    if pa.types.is_temporal(typ):
        bits = pa.array(plain, pa.int64())
        return pa.Array.from_buffers(typ, len(bits), bits.buffers())
    return pa.array(plain, typ)


def shown(array, kind):
    """The values of a result as the golden file has them, as Python values to compare."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    typ = array.type
    if pa.types.is_date32(typ):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_temporal(typ):
        unit = {"us": 1, "ns": 1000}
        want = 1000 if kind.endswith("_ns") else 1
        have = unit[typ.unit]
        bits = pa.Array.from_buffers(pa.int64(), len(array), array.buffers(), offset=array.offset)
        return [None if v is None else v * want // have if v * want % have == 0 else v * want / have for v in bits.to_pylist()]
    if kind == "uuid":
        return [None if v is None else bytes.fromhex(str(v).replace("-", "")) for v in array.to_pylist()]
    if pa.types.is_string(typ):
        return [None if v is None else v.decode("utf-8", "backslashreplace") for v in array.cast(pa.binary()).to_pylist()]
    return array.to_pylist()


def same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.copysign(1, ours) == math.copysign(1, theirs) and (ours == theirs or ours != ours and theirs != theirs) \
            or ours != ours and theirs != theirs
    return type(ours) is type(theirs) and ours == theirs


SPARK = {
    "boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "date": "date",
    "timestamp": "timestamp_ntz", "timestamptz": "timestamp_ltz", "string": "string", "binary": "binary",
}
DUCKDB = {
    "boolean": "boolean", "int": "integer", "long": "bigint", "float": "float", "double": "double", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "timestamptz", "timestamp_ns": "timestamp_ns", "string": "varchar", "uuid": "uuid", "binary": "blob",
}


def sql_type(kind, names):
    return kind if kind.startswith("decimal") else names.get(kind)


class Spark:
    name = "spark"
    types = SPARK

    def __init__(self):
        self.session = start_spark({})
        self.session.conf.set("spark.sql.ansi.enabled", "true")
        self.session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")

    def casts(self, source, zone, values, targets):
        """Casts of one column to many types."""
        self.session.conf.set("spark.sql.session.timeZone", zone or "UTC")
        frame = self.session.createDataFrame(pa.table({"c": column(values, source)})).coalesce(1)
        made = frame.selectExpr(*(f"try_cast(c as {sql_type(t, SPARK)}) as `{i}`" for i, t in enumerate(targets)))
        return [shown(made_column, t) for made_column, t in zip(made.toArrow().columns, targets)]

    def can(self, source, target):
        """TRY_CAST refuses pairs that have no meaning by an error."""
        try:
            self.session.sql(f"select try_cast(cast(null as {sql_type(source, SPARK)}) as {sql_type(target, SPARK)})")
        except Exception:
            return False
        return True


class DuckDB:
    name = "duckdb"
    types = DUCKDB

    def __init__(self):
        import duckdb

        self.session = duckdb.connect()
        self.session.execute("set threads = 1")

    def casts(self, source, zone, values, targets):
        self.session.execute(f"set TimeZone = '{zone or 'UTC'}'")
        table = pa.table({"c": column(values, source)})
        if source == "uuid":
            table = pa.table({"c": [None if v is None else v.hex() for v in table["c"].to_pylist()]})
        self.session.register("source", table)
        inner = f"cast(c as {sql_type(source, DUCKDB)})"
        out = []
        for t in targets:
            made = self.session.execute(f"select try_cast({inner} as {sql_type(t, DUCKDB)}) as c from source")
            out.append(shown(made.to_arrow_table()["c"], t))
        return out

    def can(self, source, target):
        try:
            self.session.execute(f"select try_cast(cast(null as {sql_type(source, DUCKDB)}) as {sql_type(target, DUCKDB)})")
        except Exception:
            return False
        return True


def main(path):
    pairs = list(parse(path))
    differences, skipped, compared = [], [], 0
    for engine in (DuckDB(), Spark()):
        groups = {}
        for source, target, zone, results in pairs:
            if not sql_type(source, engine.types) or not sql_type(target, engine.types) or not engine.can(source, target):
                skipped.append({"engine": engine.name, "from": source, "to": target})
                continue
            values = tuple(v for v, _ in results)
            groups.setdefault((source, zone, tuple(sorted(values))), []).append((target, dict(results)))
        for (source, zone, values), group in groups.items():
            made = engine.casts(source, zone, values, [t for t, _ in group])
            for (target, results), theirs in zip(group, made):
                for value, their in zip(values, theirs):
                    ours = results[value]
                    compared += 1
                    refused = ours.startswith("! ")
                    if refused and their is None or not refused and same(value_of(ours, target), their):
                        continue
                    if isinstance(their, bytes):
                        their = "0x" + their.hex()
                    differences.append({"engine": engine.name, "from": source, "to": target, "value": value, "ours": ours,
                                        "theirs": "!" if their is None else str(their)})
    json.dump({"compared": compared, "differences": differences, "skipped": skipped}, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1])
