#!/usr/bin/env python3
"""overwrite.py BIN DIR: random tables of every format version, with specs that changed, deletes of every kind
and nested columns, are made by Spark, twice each. icepipe overwrites partitions of the one; what is to be
there is said by Spark's dynamic INSERT OVERWRITE of the other where the spec never changed, by Spark's own
partition functions where it did, and by PyIceberg's dynamic_partition_overwrite where it can. Spark and
PyIceberg read the result. Prints what is wrong, and exits 1 then. Without ICEPIPE_TORTURE=1 each case has two of
the three versions.
"""

import math
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines

COLUMNS = "id BIGINT, p STRING, q INT, ts TIMESTAMP_NTZ, f DOUBLE, n STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>"
FLOATS = ["NULL", "double(0.5)", "double('-0.0')", "double('NaN')"]  # -0.0 without quotes is a decimal, which has no such zero
DAYS = ["2023-12-31 23:59:59.999999", "2024-01-01 00:00:00", "2024-01-31 12:00:00", "2024-02-01 00:00:00.000001", "1969-12-31 23:00:00"]

# Name, first partitioning, what becomes of it and, at the end, the partition of a row for Spark.
CASES = [
    ("identity", "p", [], ["p"]),
    ("composite", "bucket(4, id), days(ts)", [], ["{c}.system.bucket(4, id)", "{c}.system.days(ts)"]),
    ("whole", "", [], []),
    ("grown", "", ["ADD PARTITION FIELD p"], ["p"]),
    ("grown_more", "p", ["ADD PARTITION FIELD bucket(3, q)"], ["p", "{c}.system.bucket(3, q)"]),
    ("shrunk", "p, q", ["DROP PARTITION FIELD p"], ["q"]),
    ("other", "months(ts)", ["REPLACE PARTITION FIELD ts_month WITH years(ts)", "ADD PARTITION FIELD truncate(1, p)"], ["{c}.system.years(ts)", "{c}.system.truncate(1, p)"]),
    ("void", "p", ["DROP PARTITION FIELD p"], []),
]


def row(rnd, at):
    def text(v):
        return "NULL" if v is None else "'" + v + "'"

    n = rnd.choice([None, (1, []), (None, ["x", None]), (7, None)])
    nested = "NULL" if n is None else "named_struct('a', CAST({} AS INT), 'b', CAST({} AS ARRAY<STRING>))".format(
        "NULL" if n[0] is None else n[0], "NULL" if n[1] is None else "array(" + ", ".join(text(x) for x in n[1]) + ")")
    m = rnd.choice(["NULL", "map()", "map('k', 1)", "map('k', 1, 'l', CAST(NULL AS INT))"])
    return (
        f"({at}L, {text(rnd.choice([None, '', 'null', 'a', 'ab', 'b c/d']))}, {rnd.choice(['NULL', '0', '1', '2'])}, "
        f"{rnd.choice(['NULL'] + [f'TIMESTAMP_NTZ{text(d)}' for d in DAYS])}, {rnd.choice(FLOATS)}, "
        f"{nested}, CAST({m} AS MAP<STRING, INT>))"
    )


def insert(spark, table, rnd, first, n):
    rows = ", ".join(row(rnd, i) for i in range(first, first + n))
    # One write a partition and commit: rows are not in order.
    spark.sql(f"INSERT INTO {table} SELECT * FROM VALUES {rows} AS t(id, p, q, ts, f, n, m)")


def build(spark, java, name, version, case, seed):
    """A destination with several files of each spec it has had, and deletes of them."""
    rnd = random.Random(seed)
    _, first, changes, _ = case
    table = f"dst.lab.{name}"
    spec = f"PARTITIONED BY ({first})" if first else ""
    spark.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {spec} TBLPROPERTIES ('format-version'='{version}', 'write.distribution-mode'='none', "
        "'write.spark.fanout.enabled'='true', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='partition')"
    )
    at = 0
    for step in [None] + changes:
        if step:
            spark.sql(f"ALTER TABLE {table} {step}")
        for _ in range(2):
            insert(spark, table, rnd, at, 12)
            at += 12
        if version > 1:
            spark.sql(f"DELETE FROM {table} WHERE id % 7 = {rnd.randrange(7)}")
            loaded = java.load("dst", name)
            if not loaded.spec().isPartitioned():
                keys = [[str(rnd.randrange(at))] for _ in range(3)]
                loaded.newRowDelta().addDeletes(java.equality_delete(loaded, ["id"], keys)).commit()
    return table


def text_rows(spark, query):
    return sorted(r[0] for r in spark.sql(f"SELECT to_json(struct(id, p, q, ts, f, n, m), map('ignoreNullFields', 'false')) FROM ({query})").collect())


def norm(v):
    if isinstance(v, float):
        return "NaN" if math.isnan(v) else repr(v)
    if isinstance(v, dict):
        return tuple(sorted((k, norm(x)) for k, x in v.items()))
    if isinstance(v, list):
        if v and isinstance(v[0], tuple) and len(v[0]) == 2:
            return norm(dict(v))
        return tuple(norm(x) for x in v)
    return v


def py_rows(db, name):
    table = engines.open_catalog(db, "dst").load_table(f"lab.{name}")
    return sorted((repr(norm(with_map(r))) for r in table.scan().to_arrow().to_pylist()))


def with_map(r):
    return {**r, "m": None if r["m"] is None else dict(r["m"])}


def spark_rows(spark, query):
    return sorted(repr(norm(r.asDict(recursive=True))) for r in spark.sql(query).collect())


def icepipe(bin, folder, src, dst, piped, mode, batch=7):
    """Moves src.lab.SRC into dst.lab.DST; mode are the flags of the program that writes."""
    def table(prefix, db, name):
        return [f"--{prefix}catalog", "sqlite", f"--{prefix}db-path", os.path.join(folder, db), f"--{prefix}namespace", "lab", f"--{prefix}table", name]

    checkpoint = os.path.join(folder, f"{dst}.json")
    if not piped:
        args = [f"{bin}/ice-migrate", *table("src-", "src.db", src), *table("dst-", "dst.db", dst), "--batch-rows", str(batch), "--checkpoint", checkpoint, *mode]
        return subprocess.run(args, capture_output=True, text=True)
    stages = [
        [f"{bin}/ice-scan", *table("", "src.db", src), "--batch-rows", str(batch)],
        [f"{bin}/ice-reconcile", *table("", "dst.db", dst)],
        [f"{bin}/ice-write", "--checkpoint", checkpoint, *mode],
    ]
    out = b""
    for i, args in enumerate(stages):
        done = subprocess.run(args, input=out if i else None, capture_output=True)
        if done.returncode:
            return subprocess.CompletedProcess(args, done.returncode, "", done.stderr.decode())
        out = done.stdout
    return done


def trial(spark, java, bin, folder, number, version, case):
    """What is wrong with one overwrite."""
    name, _, changes, keys = case
    wrong = []

    def same(what, got, want):
        if got != want:
            missing, more = [r for r in want if r not in got], [r for r in got if r not in want]
            wrong.append(f"v{version} {name}: {what}: {len(got)} rows, want {len(want)}; missing {missing[:3]}, too many {more[:3]}")

    seed = 1000 * version + number
    mine, theirs, source = f"mine_{number}", f"theirs_{number}", f"src_{number}"
    build(spark, java, mine, version, case, seed)
    spark.sql(f"CREATE TABLE src.lab.{source} ({COLUMNS}) USING iceberg")
    rnd = random.Random(seed + 500)
    insert(spark, f"src.lab.{source}", rnd, 10_000, rnd.choice([2, 9]))
    on = " AND ".join(f"{k.format(c='dst').replace('id)', 'a.id)').replace('ts)', 'a.ts)').replace('q)', 'a.q)').replace(', p)', ', a.p)') if '(' in k else 'a.' + k} <=> b.k{i}" for i, k in enumerate(keys)) or "true"
    spark.sql(f"SELECT {', '.join([k.format(c='dst') + f' AS k{i}' for i, k in enumerate(keys)] or ['1 AS k'])} FROM src.lab.{source}").createOrReplaceTempView("touched")
    stay = f"SELECT a.* FROM dst.lab.{mine} a LEFT ANTI JOIN touched b ON {on}"
    staying = [r[0] for r in spark.sql(f"SELECT id FROM ({stay})").collect()]
    want = sorted(text_rows(spark, stay) + text_rows(spark, f"SELECT * FROM src.lab.{source}"))
    ids = {}
    if version == 3:
        ids = {r[0]: (r[1], r[2]) for r in spark.sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM dst.lab.{mine}").collect()}
    done = icepipe(bin, folder, source, mine, number % 2 == 1, ["--write-mode", "overwrite_partition"] + ([] if keys else ["--yes"]))
    if done.returncode:
        return [f"v{version} {name}: icepipe: {done.stderr}"]
    got = text_rows(spark, f"SELECT * FROM dst.lab.{mine}")
    same("Spark reads", got, want)
    read = read_by_pyiceberg(folder, mine)
    if read is not None:
        same("PyIceberg reads", read, spark_rows(spark, f"SELECT * FROM dst.lab.{mine}"))
    if not changes and keys:
        build(spark, java, theirs, version, case, seed)
        spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
        spark.sql(f"INSERT OVERWRITE dst.lab.{theirs} SELECT * FROM src.lab.{source}")
        same("Spark's own overwrite leaves", got, text_rows(spark, f"SELECT * FROM dst.lab.{theirs}"))
    if name == "identity" and version < 3:
        build(spark, java, f"py_{number}", version, case, seed)
        rows = engines.open_catalog(os.path.join(folder, "src.db"), "src").load_table(f"lab.{source}").scan().to_arrow()
        engines.open_catalog(os.path.join(folder, "dst.db"), "dst").load_table(f"lab.py_{number}").dynamic_partition_overwrite(rows)
        same("PyIceberg's own overwrite leaves", got, text_rows(spark, f"SELECT * FROM dst.lab.py_{number}"))
    if version == 3:
        now = {r[0]: (r[1], r[2]) for r in spark.sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM dst.lab.{mine}").collect()}
        if len({i for i, _ in now.values()}) != len(now) or None in {i for i, _ in now.values()}:
            wrong.append(f"v3 {name}: row IDs {now}")
        for i in staying:
            if ids[i] != now[i]:
                wrong.append(f"v3 {name}: row {i} had row ID and sequence number {ids[i]}, and has {now[i]}")
                break
    head = spark.sql(f"SELECT operation, summary FROM dst.lab.{mine}.snapshots ORDER BY committed_at DESC LIMIT 1").collect()[0]
    files = spark.sql(f"SELECT content, record_count, file_path FROM dst.lab.{mine}.files").collect()
    data = [f for f in files if f.content == 0]
    for key, value in {"total-data-files": len(data), "total-records": sum(f.record_count for f in data), "total-delete-files": len(files) - len(data)}.items():
        if int(head.summary[key]) != value:
            wrong.append(f"v{version} {name}: {key} is {head.summary[key]}, want {value}")
    if head.operation != "overwrite":
        wrong.append(f"v{version} {name}: operation {head.operation}")
    for f in files:
        if not os.path.exists(engines.local_path(f.file_path)):
            wrong.append(f"v{version} {name}: {f.file_path} is not there")
    return wrong


def read_by_pyiceberg(folder, name):
    """The rows that PyIceberg reads; None where equality deletes are left, which it refuses."""
    try:
        return py_rows(os.path.join(folder, "dst.db"), name)
    except ValueError as e:
        if "equality deletes" not in str(e):
            raise
        return None


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    bin, folder = sys.argv[1:]
    spark = engines.start_spark({"src": (os.path.join(folder, "src.db"), os.path.join(folder, "src")), "dst": (os.path.join(folder, "dst.db"), os.path.join(folder, "dst"))})
    java = engines.Java(spark)
    for catalog in ("src", "dst"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.lab")
    wrong, number = [], 0
    for i, case in enumerate(CASES):
        for version in (1, 2, 3):
            if os.environ.get("ICEPIPE_TORTURE") != "1" and (i + version) % 3 == 0:
                continue
            if version == 1 and case[0] in ("composite", "grown_more", "void"):
                continue
            number += 1
            try:
                found = trial(spark, java, bin, folder, number, version, case)
            except Exception as e:
                found = [f"v{version} {case[0]}: {type(e).__name__} {str(e).splitlines()[0][:600]}"]
            print(f"v{version} {case[0]}: {'wrong' if found else 'right'}", flush=True)
            wrong += found
    print("\n".join(wrong + [f"{number} overwrites"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
