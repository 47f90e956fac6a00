"""What copy_random.py holds a destination to: its rows by several readers, and what its manifests say of its files."""

import os
import random
import subprocess
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.types as T
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import EqualTo

import canon
import engines


def columns_of(schema):
    """The primitive fields of an Iceberg schema that are in no list or map, by ID with their path."""
    out = {}

    def walk(fields, path):
        for f in fields:
            if isinstance(f.field_type, T.StructType):
                walk(f.field_type.fields, path + [f.name])
            elif f.field_type.is_primitive:
                out[f.field_id] = (path + [f.name], f.field_type)

    walk(schema.fields, [])
    return out


def judge_files(table):
    """Holds what manifests say of each file, and its field IDs, against the file."""
    counted = 0
    for task in table.scan().plan_files():
        f, path = task.file, engines.local_path(task.file.file_path)
        rows = pq.read_table(path)
        assert rows.num_rows == f.record_count, "record count"
        ids = {int(x.metadata[b"PARQUET:field_id"]) for x in pq.read_schema(path)}
        assert ids == {x.field_id for x in table.schema().fields}, f"field IDs {ids}"
        names = {x.field_id: x.name for x in table.schema().fields}
        assert {int(x.metadata[b"PARQUET:field_id"]): x.name for x in pq.read_schema(path)} == names, "names"
        for field_id, (where, kind) in columns_of(table.schema()).items():
            column = rows.column(where[0])
            for step in where[1:]:
                column = pa.chunked_array([c.flatten()[c.type.get_field_index(step)] for c in column.chunks], column.type.field(step).type)
            column = canon._array(column)
            low, high = (f.lower_bounds or {}).get(field_id), (f.upper_bounds or {}).get(field_id)
            nulls = (f.null_value_counts or {}).get(field_id)
            assert nulls is None or nulls == sum(v is None for v in column), f"{where}: {nulls} nulls"
            assert (f.value_counts or {}).get(field_id, len(column)) == len(column), f"{where}: values"
            nans = (f.nan_value_counts or {}).get(field_id)
            assert nans is None or nans == column.count("NaN"), f"{where}: {nans} NaNs"
            counted += low is not None
            for bound, below in ((low, True), (high, False)):
                if bound is None:
                    continue
                b = from_bytes(kind, bound)
                for raw in raw_values(rows, where):
                    if raw is None or raw != raw:
                        continue
                    raw = comparable(raw, kind)
                    b = comparable(b, kind)
                    assert b <= raw if below else b >= raw or isinstance(raw, (str, bytes)) and raw.startswith(b), f"{where}: bound {b!r} of {raw!r}"
    return counted


def raw_values(rows, where):
    column = rows.column(where[0]).combine_chunks()
    values = column.to_pylist() if not isinstance(column, pa.ChunkedArray) else [v for c in column.chunks for v in c.to_pylist()]
    for step in where[1:]:
        values = [None if v is None else v[step] for v in values]
    return values


def comparable(v, kind):
    """A value in the form that bounds have in PyIceberg."""
    if isinstance(kind, T.DateType):
        return canon.days(v)
    if isinstance(kind, T.TimeType):
        return canon.time_micros(v)
    if isinstance(kind, (T.TimestampType, T.TimestamptzType)):
        return canon.micros(v)
    if isinstance(kind, T.UUIDType):
        return v.bytes if isinstance(v, uuid.UUID) else bytes(v)
    return v


def judge_filters(case, table):
    """A filter on one value of a column finds the rows that have it."""
    for field in table.schema().fields:
        if not isinstance(field.field_type, (T.IntegerType, T.LongType, T.StringType, T.DateType, T.DecimalType)):
            continue
        source = next((s for s, d in case.names.items() if d == field.name), None)
        values = [r[source] for r in case.passing if r[source] is not None] if source else []
        if not values:
            continue
        v = random.choice(values)
        got = table.scan(row_filter=EqualTo(field.name, v)).to_arrow().num_rows
        assert got == values.count(v), f"{field.name} = {v!r}: {got} rows, want {values.count(v)}"


def read_duckdb(table):
    """The rows of the table's files by DuckDB, which finds columns by name."""
    paths = [engines.local_path(t.file.file_path) for t in table.scan().plan_files()]
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'; SET arrow_lossless_conversion=true")
    if not paths:
        return []
    names = ", ".join(f'"{f.name}"' for f in table.schema().fields)
    out = []
    for p in paths:
        out += canon.arrow_rows(con.sql(f"SELECT {names} FROM read_parquet('{p}', hive_partitioning=false)").to_arrow_table())
    return out


def read_pyarrow(table):
    """The rows of the table's files by PyArrow."""
    paths = [engines.local_path(t.file.file_path) for t in table.scan().plan_files()]
    return [row for p in paths for row in canon.arrow_rows(pq.read_table(p, partitioning=None))]


def loose(v):
    """A value with null for an empty list or map."""
    if isinstance(v, dict):
        return {k: loose(x) for k, x in v.items()}
    return [loose(x) for x in v] or None if isinstance(v, list) else v


def same(what, got, want):
    got = sorted(got)
    if got != want:
        first = next((pair for pair in zip(got, want) if pair[0] != pair[1]), (len(got), len(want)))
        raise AssertionError(f"{what}: {len(got)} rows, want {len(want)}; first difference {first}")


def narrow(rows, schema):
    """Rows of files in which promoted columns are of their old type, as the table's types say them."""
    wide = {f.name: f.field_type for f in schema.fields}
    for row in rows:
        for name, v in row.items():
            if isinstance(wide[name], T.DoubleType) and isinstance(v, (int, float)):
                row[name] = canon.float_json(v)
    return rows


def judge_older(python, out, cases):
    """An older PyIceberg reads of what was copied what it reads of the same rows encoded anew, in its own way: a null
    struct is one of nulls there. Returns how many are wrong."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "read_older.py")
    subprocess.run([python, "-W", "ignore", script, out, *(c.name + s for c in cases for s in ("", "_never"))], check=True)

    def read(name):
        with pa.ipc.open_file(f"{out}/{name}.arrow") as file:
            return list(map(canon.line, canon.arrow_rows(file.read_all())))

    wrong = 0
    for case in cases:
        try:
            got = read(case.name)
            assert len(got) == len(case.expected), f"{len(got)} rows, want {len(case.expected)}"
            same("an older PyIceberg", got, sorted(read(case.name + "_never")))
        except Exception as problem:
            wrong += 1
            print(f"{case.name}: WRONG older PyIceberg: {str(problem)[:600]}", flush=True)
    print(f"an older PyIceberg read {len(cases)} tables")
    return wrong


def judge_spark(out, cases):
    """Spark reads the tables, vectorised and not; returns how many are wrong."""
    from read_table import optional

    spark = engines.start_spark({n: (f"{out}/{n}.db", f"{out}/{n}_wh") for n in ("src", "dst")})
    wrong = 0
    for case in cases:
        for vectorised in ("true", "false"):
            try:
                frame = spark.read.option("vectorization-enabled", vectorised).table(f"dst.lab.{case.name}")
                same(f"Spark, vectorised {vectorised}", map(canon.line, canon.arrow_rows(frame.to(optional(frame.schema)).toArrow())), case.expected)
            except Exception as problem:
                wrong += 1
                print(f"{case.name}: WRONG Spark, vectorised {vectorised}: {str(problem)[:600]}", flush=True)
    print(f"Spark read {len(cases)} tables twice")
    spark.stop()
    return wrong


def judge_damage(program, out, src, dst):
    """A page whose bytes are not those of its checksum, and a file that was cut short, are refused; returns how many
    were not."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record

    schema, wrong = Schema(T.NestedField(1, "id", T.LongType(), required=True)), 0
    for name, said in (("checksum", "its checksum is"), ("cut", "")):
        table = src.create_table(f"lab.{name}", schema)
        dst.create_table(f"lab.{name}", schema)
        folder = engines.local_path(table.location()) + "/data"
        os.makedirs(folder, exist_ok=True)
        path = f"{folder}/damaged.parquet"
        arrow = pa.schema([pa.field("id", pa.int64(), False, {"PARQUET:field_id": "1"})])
        pq.write_table(pa.Table.from_arrays([pa.array(range(5000))], schema=arrow), path, write_page_checksum=True, use_dictionary=False)
        with open(path, "r+b") as file:
            if name == "checksum":
                file.seek(2000)
                byte = file.read(1)
                file.seek(2000)
                file.write(bytes([byte[0] ^ 1]))
            else:
                file.truncate(2000)
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            append.append_data_file(DataFile.from_args(
                content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET, partition=Record(), record_count=5000,
                file_size_in_bytes=os.path.getsize(path), sort_order_id=None, spec_id=0, equality_ids=None, key_metadata=None))
        call = [program, "-q", "--batch-rows", "auto"]
        for side in ("src", "dst"):
            call += [f"--{side}-catalog", "sqlite", f"--{side}-catalog-name", side, f"--{side}-db-path", f"{out}/{side}.db",
                     f"--{side}-warehouse", f"{out}/{side}_wh", f"--{side}-namespace", "lab", f"--{side}-table", name]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode != 1 or said not in done.stderr or "damaged.parquet" not in done.stderr or dst.load_table(f"lab.{name}").snapshots():
            wrong += 1
            print(f"{name}: WRONG exit code {done.returncode}: {done.stderr}")
    return wrong
