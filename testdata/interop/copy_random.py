"""Random tables copied, and read by others.

    copy_random.py BIN OUT SEED COUNT [--spark N] [--older PYTHON]

makes COUNT tables of random types, nested ones too, whose files PyArrow writes with random codecs, encodings, versions
of pages, dictionaries, statistics, checksums, page indexes, row groups, nulls, with or without field IDs; each into two
destinations of other field IDs, with columns renamed, promoted, added, required or optional otherwise, partitioned or
not, with a row filter or without: by ice-migrate with --copy auto (or require, where it may refuse) and with --copy never. PyIceberg, PyArrow and
DuckDB, and for the first N Spark, vectorised and not, read both; an older PyIceberg, in the environment of that
PYTHON, reads what was copied. Rows are held against the values that were written;
every file's field IDs, counts of nulls and bounds against its own columns; filters against the rows that pass. It
prints a line for each table, with what the receipt says was copied, and exits 1 if one is wrong.
"""

import argparse
import datetime as dt
import json
import os
import random
import subprocess
import sys
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.types as T
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record

import canon
import engines
import fixtures
from copy_judge import judge_damage, judge_files, judge_filters, judge_older, judge_spark, loose, narrow, read_duckdb, read_pyarrow, same

R = random.Random()
PROMOTIONS = {T.IntegerType: T.LongType(), T.FloatType: T.DoubleType()}
NAN = float("nan")


def flat_type():
    return R.choice([T.BooleanType(), T.IntegerType(), T.IntegerType(), T.LongType(), T.FloatType(), T.DoubleType(), T.DateType(), T.TimeType(),
                     T.TimestampType(), T.TimestamptzType(), T.StringType(), T.StringType(), T.BinaryType(), T.FixedType(5), T.UUIDType(),
                     T.DecimalType(9, 2), T.DecimalType(9, 2), T.DecimalType(18, 4), T.DecimalType(25, 3)])


def nested_type(depth=0):
    def inside():
        if depth < 2 and R.random() < 0.4:
            return nested_type(depth + 1)
        kind = flat_type()
        return T.FixedType(16) if isinstance(kind, T.UUIDType) else kind  # which PyArrow puts into no list

    kind = R.choice("slm")
    if kind == "s":
        return fixtures.struct(*((f"f{i}", inside(), *(["required"] if R.random() < 0.2 else [])) for i in range(R.randint(1, 3))))
    if kind == "l":
        return fixtures.list_of(inside(), R.random() < 0.2)
    return fixtures.map_of(R.choice([T.StringType(), T.IntegerType()]), inside(), R.random() < 0.2)


def value(kind, few):
    """A value of a type; few: of a handful."""
    n = R.randint(0, 5) if few else R.getrandbits(30)
    if isinstance(kind, T.StructType):
        return {f.name: None if not f.required and R.random() < 0.2 else value(f.field_type, few) for f in kind.fields}
    if isinstance(kind, T.ListType):
        return [None if not kind.element_required and R.random() < 0.2 else value(kind.element_type, few) for _ in range(R.choice([0, 1, 3]))]
    if isinstance(kind, T.MapType):
        keys = {value(kind.key_type, few) for _ in range(R.choice([0, 1, 3]))}
        return [(k, None if not kind.value_required and R.random() < 0.2 else value(kind.value_type, few)) for k in sorted(keys)]
    if isinstance(kind, T.BooleanType):
        return n % 2 == 0
    if isinstance(kind, (T.IntegerType, T.LongType)):
        return n - 2**29 if not few else n - 2
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        n %= 2**20  # what a float holds
        return R.choice([n / 4, -n / 8, 0.0, -0.0, 1.5, NAN if R.random() < 0.3 else 2.5, float("inf") if R.random() < 0.1 else 1.0])
    if isinstance(kind, T.DateType):
        return dt.date(1960, 1, 1) + dt.timedelta(days=n % 30000)
    if isinstance(kind, T.TimeType):
        return dt.time(n % 24, n % 60, n % 59, n % 1000000)
    if isinstance(kind, T.TimestampType):
        return dt.datetime(1960, 1, 1) + dt.timedelta(seconds=n, microseconds=n % 1000000)
    if isinstance(kind, T.TimestamptzType):
        return dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=n, microseconds=n % 1000000)
    if isinstance(kind, T.StringType):
        return R.choice(["", "a", "größer als sechzehn Zeichen", "\U0010ffff" * 20, f"text {n}", "z" * 30])
    if isinstance(kind, T.BinaryType):
        return R.choice([b"", b"\xff" * 20, n.to_bytes(5, "big")])
    if isinstance(kind, T.FixedType):
        return n.to_bytes(len(kind), "big")
    if isinstance(kind, T.UUIDType):
        return uuid.UUID(int=n * 2**97 + n).bytes
    return Decimal(n % 10 ** min(kind.precision, 9) * R.choice([1, -1])).scaleb(-kind.scale)


def arrow_field(field, ids):
    """The Arrow field of an Iceberg field, at all levels with field IDs or without."""
    kind = field.field_type
    if isinstance(kind, T.StructType):
        arrow = pa.struct([arrow_field(f, ids) for f in kind.fields])
    elif isinstance(kind, T.ListType):
        arrow = pa.list_(arrow_field(kind.element_field, ids))
    elif isinstance(kind, T.MapType):
        arrow = pa.map_(arrow_field(kind.key_field, ids), arrow_field(kind.value_field, ids))
    else:
        arrow = engines.arrow_type(kind)
    return pa.field(field.name, arrow, not field.required, {"PARQUET:field_id": str(field.field_id)} if ids else None)


class Writing:
    """How a table's files are written."""

    def __init__(self):
        self.codec = R.choice(["NONE", "SNAPPY", "SNAPPY", "GZIP", "ZSTD", "ZSTD", "LZ4", "BROTLI"])
        self.options = {
            "version": R.choice(["1.0", "2.4", "2.6"]),
            "data_page_version": R.choice(["1.0", "1.0", "2.0"]),
            "compression": self.codec,
            "write_statistics": R.random() < 0.85,
            "write_page_index": R.random() < 0.3,
            "write_page_checksum": R.random() < 0.4,
            "store_decimal_as_integer": R.random() < 0.8,
            "data_page_size": R.choice([100, 2000, 1 << 20]),
            "store_schema": R.random() < 0.5,
        }
        self.dictionary = R.choice(["yes", "yes", "yes", "no", "full", "other"])
        if self.dictionary == "full":
            self.options["dictionary_pagesize_limit"] = 64
        if R.random() < 0.08:
            self.options["use_deprecated_int96_timestamps"] = True

    def write(self, table, path, flat, group):
        o = dict(self.options)
        if self.dictionary in ("no", "other"):
            o["use_dictionary"] = False
        if self.dictionary == "other":
            other = {}
            for name, kind in flat.items():
                if isinstance(kind, (T.IntegerType, T.LongType)):
                    other[name] = "DELTA_BINARY_PACKED"
                elif isinstance(kind, T.StringType):
                    other[name] = R.choice(["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
                elif isinstance(kind, (T.FloatType, T.DoubleType)):
                    other[name] = "BYTE_STREAM_SPLIT"
            if other:
                o["column_encoding"] = other
        pq.write_table(table, path, row_group_size=group, **o)


class Case:
    """A table, its destinations and its rows."""

    def __init__(self, src, dst, number):
        self.name, self.src, self.dst = f"copy{number}", src, dst
        columns = [("id", T.LongType(), "required")]
        for i in range(R.randint(2, 6)):
            kind = nested_type() if R.random() < 0.35 else flat_type()
            columns.append((f"c{i}", kind, *(["required"] if R.random() < 0.25 else [])))
        self.schema = fixtures.schema(*columns)
        self.writing, self.ids = Writing(), R.random() < 0.85
        self.partition = R.choice([None, None, None, "identity", "bucket[4]", "truncate[3]"])
        self.part = next((f for f in self.schema.fields[1:] if isinstance(f.field_type, (T.IntegerType, T.StringType, T.LongType))), None) if self.partition else None
        if any("timestamp" in str(f.field_type) for f in self.schema.fields if not f.field_type.is_primitive):
            self.writing.options.pop("use_deprecated_int96_timestamps", None)  # INT96 inside others is refused
        self.rows, self.flags, self.names = [], [], {}
        self.make_source()
        self.passing = self.rows
        if R.random() < 0.5:
            self.filter()
        self.make_destinations()

    def make_source(self):
        spec = UNPARTITIONED_PARTITION_SPEC
        self.transform = parse_transform(self.partition) if self.part else None
        if self.part and R.random() < 0.6:
            spec = PartitionSpec(PartitionField(self.part.field_id, 1000, self.transform, "part"))
        table = self.src.create_table(f"lab.{self.name}", self.schema, partition_spec=spec)
        self.schema = table.schema()
        if not self.ids:
            with table.transaction() as change:
                change.set_properties({"schema.name-mapping.default": create_mapping_from_schema(self.schema).model_dump_json()})
        folder = engines.local_path(table.location()) + "/data"
        os.makedirs(folder, exist_ok=True)
        arrow = pa.schema([arrow_field(f, self.ids) for f in self.schema.fields])
        flat = {f.name: f.field_type for f in self.schema.fields if f.field_type.is_primitive}
        files = []
        for n in range(R.randint(1, 4)):
            count, fixed, few = R.choice([0, 1, 40, 200]), value(self.part.field_type, True) if self.part else None, {f.name: R.random() < 0.5 for f in self.schema.fields}
            nulls = {f.name: 0 if f.required else R.choice([0, 0, 0.3, 1]) for f in self.schema.fields}
            rows = []
            for _ in range(count):
                row = {f.name: None if R.random() < nulls[f.name] else value(f.field_type, few[f.name]) for f in self.schema.fields}
                row["id"] = len(self.rows) + len(rows)
                if self.part:
                    row[self.part.name] = fixed
                rows.append(row)
            path = f"{folder}/{n}.parquet"
            columns = [pa.array([r[f.name] for r in rows], arrow.field(f.name).type) for f in self.schema.fields]
            self.writing.write(pa.Table.from_arrays(columns, schema=arrow), path, flat, R.choice([1000, 1000, 70]))
            values = Record(self.transform.transform(self.part.field_type)(fixed)) if spec.fields else Record()
            files.append(DataFile.from_args(content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET, partition=values, record_count=count,
                                            file_size_in_bytes=os.path.getsize(path), sort_order_id=None, spec_id=table.spec().spec_id, equality_ids=None, key_metadata=None))
            self.rows += rows
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            for f in files:
                append.append_data_file(f)

    def filter(self):
        """Lets rows pass singly, in runs, by whole files, or by nulls."""
        n, some = len(self.rows), R.randint(2, 9)
        f = R.choice(self.schema.fields)
        gone = sorted(R.sample(range(n), min(n, some)))
        low, high = sorted((R.randint(0, n), R.randint(0, n)))
        text, test = R.choice([
            (f"id NOT IN ({', '.join(map(str, gone))})" if len(gone) > 1 else "id >= 0", lambda r: len(gone) < 2 or r["id"] not in gone),
            (f"id >= {low} AND id < {high}", lambda r: low <= r["id"] < high),
            (f"id < {low} OR id >= {high}", lambda r: r["id"] < low or r["id"] >= high),
            (f"{f.name} IS NOT NULL", lambda r: r[f.name] is not None),
            (f"{f.name} IS NULL OR id >= {high}", lambda r: r[f.name] is None or r["id"] >= high),
        ])
        self.flags += ["--row-filter", text]
        self.passing = [r for r in self.rows if test(r)]

    def make_destinations(self):
        fields = []
        for f in self.schema.fields:
            name, kind, required = f.name, f.field_type, f.required
            if R.random() < 0.3:
                name = f.name + "_new"
                self.flags += ["--column-mapping", f"{f.name}:{name}"]
            if R.random() < 0.25 and type(kind) in PROMOTIONS and f is not self.part:
                kind = PROMOTIONS[type(kind)]
            elif isinstance(kind, T.DecimalType) and R.random() < 0.5:
                kind = T.DecimalType(kind.precision + R.choice([1, 7]), kind.scale)
            if R.random() < 0.3 and f.field_type.is_primitive:
                required = not required and all(r[f.name] is not None for r in self.rows)
            self.names[f.name] = name
            fields.append(T.NestedField(500 + f.field_id, name, kind, required=required))
        if R.random() < 0.5:
            fields.append(T.NestedField(900, "added", nested_type() if R.random() < 0.3 else T.StringType(), required=False))
            self.flags += ["--on-missing-in-source", "null"]
        R.shuffle(fields)
        schema, spec = Schema(*fields), UNPARTITIONED_PARTITION_SPEC
        if self.part:
            spec = PartitionSpec(PartitionField(500 + self.part.field_id, 1000, self.transform, "part"))
        self.made = schema, spec, {"write.metadata.metrics.default": R.choice(["full", "truncate(16)", "truncate(3)", "counts", "none"]), "write.parquet.compression-codec": R.choice(["zstd", "snappy"])}
        for suffix in ("", "_never"):
            self.create(suffix)
        self.expected = sorted(self.wanted(r) for r in self.passing)

    def create(self, suffix):
        schema, spec, props = self.made
        self.dst.create_table(f"lab.{self.name}{suffix}", schema, partition_spec=spec, properties=props)

    def wanted(self, row):
        schema = self.dst.load_table(f"lab.{self.name}").schema()
        return canon.line(canon.canon_row({self.names[k]: v for k, v in row.items()}, schema))

    def move(self, program, out):
        """Moves by both ways; returns what the receipts say."""
        receipts = []
        mode = R.choice(["auto", "auto", "require"])
        promoted = ["--copy-promoted"] if R.random() < 0.4 else []
        rows = R.choice(["auto", "auto", "auto", "100000", "60"])
        for suffix, copy in (("", [f"--copy={mode}", *promoted]), ("_never", ["--copy=never"])):
            call = [program, "--output", "json", "-q", "--batch-rows", rows, *self.flags, *copy]
            for side, name in (("src", self.name), ("dst", self.name + suffix)):
                call += [f"--{side}-catalog", "sqlite", f"--{side}-catalog-name", side, f"--{side}-db-path", f"{out}/{side}.db",
                         f"--{side}-warehouse", f"{out}/{side}_wh", f"--{side}-namespace", "lab", f"--{side}-table", name]
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode and mode == "require" and not suffix and "cannot be copied" in done.stderr:
                self.refused = done.stderr.splitlines()[0]
                call[call.index("--copy=require")] = "--copy=auto"
                self.dst.drop_table(f"lab.{self.name}")  # with what was committed before
                self.create("")
                done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode:
                raise AssertionError(f"exit code {done.returncode}: {done.stderr.strip()}")
            receipts.append(json.loads(done.stdout))
        return receipts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("out", type=os.path.abspath)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--spark", type=int, default=0)
    parser.add_argument("--older")
    args = parser.parse_args()
    program, out, seed, count = args.bin, args.out, args.seed, args.count
    os.makedirs(out, exist_ok=True)
    src, dst = (engines.open_catalog(f"{out}/{n}.db", n, f"file://{out}/{n}_wh") for n in ("src", "dst"))
    for c in (src, dst):
        c.create_namespace_if_not_exists("lab")
    wrong, copied, transcoded, encoded, bounded, cases = 0, 0, 0, 0, 0, []
    for n in range(count):
        R.seed(seed * 1_000_003 + n)
        random.seed(n)
        case = None
        try:
            case = Case(src, dst, n)
            receipts = case.move(program, out)
            for suffix, r in zip(("", "_never"), receipts):
                table = dst.load_table(f"lab.{case.name}{suffix}")
                # PyIceberg 0.12 reads a null list of structs as an empty one, of the source too.
                got = map(canon.line, map(loose, canon.arrow_rows(table.scan().to_arrow())))
                same(f"PyIceberg{suffix}", got, sorted(canon.line(loose(json.loads(r))) for r in case.expected))
                same(f"PyArrow{suffix}", map(canon.line, narrow(read_pyarrow(table), table.schema())), case.expected)
                same(f"DuckDB{suffix}", map(canon.line, narrow(read_duckdb(table), table.schema())), case.expected)
                bounded += judge_files(table)
                judge_filters(case, table)
            assert receipts[1]["bytes_copied"] == 0
            copied += receipts[0]["bytes_copied"] > 0
            transcoded += receipts[0]["bytes_transcoded"] > 0
            encoded += receipts[0]["bytes_encoded"] > 0
            cases.append(case)
            said = getattr(case, "refused", "").split("cannot be copied: ")[-1]
            print(f"{n}: {len(case.rows)} rows, {case.writing.codec}, {[receipts[0][k] for k in ('bytes_copied', 'bytes_transcoded', 'bytes_encoded')]} {said}", flush=True)
        except Exception as problem:  # the line says which table, and the seed makes it again
            wrong += 1
            print(f"{n}: WRONG {type(problem).__name__}: {problem} {case and (case.schema, case.writing.options, case.flags)}", flush=True)
    wrong += judge_damage(program, out, src, dst)
    if args.older:
        wrong += judge_older(args.older, out, cases)
    if args.spark:
        def timeless(case):
            return "time" not in str(dst.load_table(f"lab.{case.name}").schema().as_struct()).replace("timestamp", "")

        wrong += judge_spark(out, [c for c in cases if timeless(c)][:args.spark])  # which Spark has no type for
    print(f"{count} tables: {copied} with copied, {transcoded} with transcoded, {encoded} with encoded columns; {bounded} bounds; {wrong} wrong")
    sys.exit(1 if wrong or copied < count // 4 else 0)


if __name__ == "__main__":
    main()
