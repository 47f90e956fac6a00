#!/usr/bin/env python3
"""Makes tables that are verified and undone, by PyIceberg and Spark, and reads them.

    verify_party.py OUT

Makes OUT/src.db and OUT/dst.db, then takes one JSON object a line from stdin, {"do": NAME, …}, and answers each
with one on stdout. Spark is started by the first thing that asks for it.
"""

import copy
import decimal
import json
import random
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyiceberg.types as T
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

import fixtures
from fixtures import Lab, World, list_of, map_of, partition, schema
from party import serve

D = decimal.Decimal
WHEN = datetime(2024, 2, 29, 12, tzinfo=UTC)


def mixed():
    """The columns in which differences are planted."""
    return schema(
        ("id", T.LongType()),
        ("p", T.StringType()),
        ("a", T.StringType()),
        ("b", T.StringType()),
        ("d", T.DoubleType()),
        ("dec", T.DecimalType(20, 4)),
        ("ts", T.TimestamptzType()),
        ("st", fixtures.struct(("bits", T.BinaryType()), ("li", list_of(T.FloatType())))),
    )


def mixed_rows():
    return [
        {
            "id": i,
            "p": f"p{i % 3}",
            "a": f"x{i % 4}",
            "b": "",
            "d": 0.0,
            "dec": D(f"1234567890123456.{i:04d}"),
            "ts": WHEN + timedelta(microseconds=i),
            "st": {"bits": b"\0\1\2", "li": [1.5, None]},
        }
        for i in range(30)
    ]


def change(row, **to):
    def do(rows):
        rows[row].update(to)

    return do


def doubled(rows):
    rows[3] = copy.deepcopy(rows[0])


def swapped_rows(rows):
    rows[2]["a"], rows[5]["a"] = rows[5]["a"], rows[2]["a"]


def gone(rows):
    del rows[29]


def more(rows):
    rows.append({**copy.deepcopy(rows[0]), "id": 99})


def nothing(rows):
    pass


# What is planted, what a diff by id says of it, and the partitions that differ.
PLANTS = {
    "bit": (change(4, st={"bits": b"\0\1\3", "li": [1.5, None]}), ["changed 4 st"], ["p=p1"]),
    "list": (change(4, st={"bits": b"\0\1\2", "li": [None, 1.5]}), ["changed 4 st"], ["p=p1"]),
    "doubled": (doubled, ["extra 0", "missing 3"], ["p=p0"]),
    "rows": (swapped_rows, ["changed 2 a", "changed 5 a"], ["p=p2"]),
    "columns": (change(7, a="", b="x3"), ["changed 7 a b"], ["p=p1"]),
    "null": (change(6, b=None), ["changed 6 b"], ["p=p0"]),
    "zero": (change(6, d=-0.0), ["changed 6 d"], ["p=p0"]),
    "digit": (change(9, dec=D("1234567890123456.0008")), ["changed 9 dec"], ["p=p0"]),
    "microsecond": (change(11, ts=WHEN + timedelta(microseconds=12)), ["changed 11 ts"], ["p=p2"]),
    "partition": (change(1, p="p2"), ["changed 1 p"], ["p=p1", "p=p2"]),
    "gone": (gone, ["missing 29"], ["p=p2"]),
    "more": (more, ["extra 99"], ["p=p0"]),
    "misplaced": (nothing, [], []),
    "same": (nothing, [], []),
}


def every():
    """Columns of every type that both engines write."""
    return schema(
        ("id", T.LongType()),
        ("b", T.BooleanType()),
        ("i", T.IntegerType()),
        ("f", T.FloatType()),
        ("d", T.DoubleType()),
        ("small", T.DecimalType(9, 2)),
        ("big", T.DecimalType(38, 10)),
        ("day", T.DateType()),
        ("ts", T.TimestampType()),
        ("tz", T.TimestamptzType()),
        ("s", T.StringType()),
        ("bin", T.BinaryType()),
        ("st", fixtures.struct(("x", T.IntegerType()), ("y", T.StringType()))),
        ("li", list_of(T.StringType())),
        ("m", map_of(T.StringType(), T.LongType())),
    )


VALUES = {
    "b": [True, False],
    "i": [0, -1, 2**31 - 1, -(2**31)],
    "f": [0.0, -0.0, float("nan"), 1.5, float("inf")],
    "d": [0.0, -0.0, float("nan"), 0.1, float("-inf")],
    "small": [D("0.00"), D("-0.01"), D("9999999.99")],
    "big": [D("1.0000000001"), D("-9999999999999999999999999999.9999999999")],
    "day": [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    "ts": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 4)],
    "tz": [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC)],
    "s": ["", "null", "a", "a ", "größer"],
    "bin": [b"", b"\0", b"\xff\0"],
    "st": [{"x": 1, "y": None}, {"x": None, "y": ""}, {"x": None, "y": None}],
    "li": [[], [None], [""], ["a", "b"], ["b", "a"]],
    "m": [[], [("a", 1), ("b", None)], [("c", 2)]],
}
SPECS = ["", "s identity", "id bucket[3]", "ts day", "tz month", "day year", "s truncate[1]", "big bucket[2]", "i identity", "f identity"]


def every_rows(rnd, n):
    return [{"id": i, **{c: rnd.choice([None, *v]) if rnd.random() < 0.9 else None for c, v in VALUES.items()}} for i in range(n)]


class Party:
    """The tables, and what is done to them."""

    def __init__(self, out):
        self.world = World(out)
        self.rnd = random.Random(5)

    def lab(self, name, engine="pyiceberg"):
        return Lab(self.world, {"name": name, "engine": engine, "namespace": "lab"})

    def plants(self):
        """The tables dst.lab.ENGINE_PLANT, and the source src.lab.mixed."""
        source = self.lab("mixed")
        source.create(mixed())
        source.append(mixed_rows())
        out = []
        for engine in ("pyiceberg", "spark"):
            for name, (plant, want, partitions) in PLANTS.items():
                rows = mixed_rows()
                plant(rows)
                lab = self.lab(f"{engine}_{name}", engine)
                lab.create(mixed(), partition(mixed(), ("p", "identity")), where="dst")
                if name == "misplaced":
                    getattr(self, f"misplaced_{engine}")(lab, rows)
                else:
                    lab.append(rows, where="dst")
                out.append({"table": lab.name, "want": want, "partitions": partitions, "misplaced": name == "misplaced"})
        return {"tables": out}

    def misplaced_pyiceberg(self, lab, rows):
        """Every row where it belongs, but for those of p1, whose file says that it is of p2."""
        other = self.lab(lab.name + "_of")
        other.create(mixed(), partition(mixed(), ("p", "identity")), where="dst")
        other.append(rows, where="dst")
        names = ("file_path", "file_format", "record_count", "file_size_in_bytes")
        with lab.table("dst").transaction() as tx, tx.update_snapshot().fast_append() as update:
            for task in other.table("dst").scan().plan_files():
                of = task.file.partition[0]
                made = DataFile.from_args(
                    content=task.file.content, partition=Record("p2" if of == "p1" else of), **{n: getattr(task.file, n) for n in names}
                )
                made.spec_id = 0
                update.append_data_file(made)

    def misplaced_spark(self, lab, rows):
        other = self.lab(lab.name + "_of", "spark")
        other.create(mixed(), partition(mixed(), ("p", "identity")), where="dst")
        other.append(rows, where="dst")
        source, table = other.java_table("dst"), lab.java_table("dst")
        append = table.newAppend()
        for file in source.currentSnapshot().addedDataFiles(source.io()):
            of = file.partition().get(0, self.world.java.jvm.java.lang.Class.forName("java.lang.Object"))
            made = self.world.java.iceberg.DataFiles.builder(table.spec()).copy(file)
            append = append.appendFile(made.withPartitionPath("p=" + str(of).replace("p1", "p2")).build())
        append.commit()

    def equal(self, count):
        """The source src.lab.every, and so many tables dst.lab.equal_N of its rows in other layouts."""
        rows = every_rows(self.rnd, 40)
        source = self.lab("every")
        source.create(every())
        source.append(rows)
        for n in range(count):
            self.layout(n, rows)
        return {}

    def layout(self, n, rows):
        rnd = self.rnd
        engine = ("pyiceberg", "spark")[n % 2]
        lab = self.lab(f"equal_{n}", engine)
        # PyIceberg partitions neither by NaN nor with a map beside, and writes no version 3.
        spec = rnd.choice(SPECS[:-1] if engine == "pyiceberg" else SPECS)
        version = rnd.choice([1, 2, 2] if engine == "pyiceberg" else [1, 2, 2, 3])
        props = {
            "write.parquet.compression-codec": rnd.choice(["zstd", "snappy", "gzip", "uncompressed"]),
            "write.parquet.dict-size-bytes": str(rnd.choice([100, 2**20])),
            "write.parquet.page-row-limit": str(rnd.choice([3, 20000])),
            "write.parquet.row-group-limit": str(rnd.choice([7, 100000])),
            "write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write",
        }
        lab.create(every(), partition(every(), spec.split()) if spec else None, version, "dst", **{k.replace(".", "__"): v for k, v in props.items()})
        rows = copy.deepcopy(rows)
        rnd.shuffle(rows)
        pieces = rnd.randint(1, 3)
        size = -(-len(rows) // pieces)
        doomed = rnd.random() < 0.4
        for at in range(0, len(rows), size):
            piece = rows[at : at + size]
            if doomed:
                piece = piece + [{**piece[0], "id": 1000 + at}]
            lab.append(piece, where="dst")
        if doomed and engine == "spark":
            lab.sql("DELETE FROM {t} WHERE id >= 1000", where="dst")
        elif doomed:
            lab.table("dst").delete("id >= 1000")

    def orders(self, rows):
        """The source src.lab.orders of a job that adds a column."""
        lab = self.lab("orders")
        of = schema(("id", T.LongType()), ("name", T.StringType()))
        lab.create(of)
        for at in range(0, rows, 10):
            lab.append([{"id": i, "name": f"n{i}"} for i in range(at, min(rows, at + 10))])

    def destination(self, table, version, populated):
        lab = self.lab(table, "spark" if version == 3 else "pyiceberg")
        lab.create(schema(("id", T.LongType())), version=version, where="dst")
        if populated:
            lab.append([{"id": -1}, {"id": -2}], where="dst")
        return self.read(lab.table("dst").metadata_location)

    def append(self, table):
        self.lab(table).table("dst").append(pa.table({"id": pa.array([-9], pa.int64())}))

    def location(self, table):
        return {"location": self.lab(table).table("dst").metadata_location}

    def read(self, location):
        """What both engines find at a metadata file: columns, IDs and names, and the current snapshot."""
        table = StaticTable.from_metadata(location)
        at = table.current_snapshot()
        rows = table.scan().to_arrow().to_pylist()
        frame = self.world.spark.read.format("iceberg").load(location)
        seen = [r.asDict() for r in frame.collect()]
        text = [sorted(json.dumps(r, sort_keys=True) for r in got) for got in (rows, seen)]
        if text[0] != text[1]:
            raise SystemExit(f"PyIceberg reads {text[0]}, Spark {text[1]}")
        if [f.name for f in table.schema().fields] != frame.columns:
            raise SystemExit(f"PyIceberg has the columns {table.schema()}, Spark {frame.columns}")
        return {"columns": frame.columns, "rows": text[0], "snapshot": str(at.snapshot_id) if at else ""}


if __name__ == "__main__":
    serve(Party)
