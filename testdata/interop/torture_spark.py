#!/usr/bin/env python3
"""torture_spark.py DB N: Spark reads the N tables of torture.py that the catalog dst lists, with their
metadata tables. Prints what is wrong, and exits 1 then.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines
import torture
import torture_upsert


def look(spark, name):
    """What is wrong with a table."""
    wrong = []

    def want(what, got, expected):
        if got != expected:
            wrong.append(f"{name}: {what}: {got}, want {expected}")

    properties = {r.key: r.value for r in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    mode = properties.get(torture_upsert.MODE)
    expected = torture.rows() if mode is None else [r for _, r in sorted(torture_upsert.after(len(torture_upsert.steps(mode)), mode)[0].items())]
    rows = [r.asDict() for r in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
    want("rows", rows, [{k: r[k] for k in ("id", "text", "part", "extra")} for r in expected])
    if properties.get("format-version") == "3":
        ids = [r[0] for r in spark.sql(f"SELECT _row_id FROM {name}").collect()]
        want("row IDs", len({i for i in ids if i is not None}), len(expected))
    if mode is not None:
        return wrong + look_at_upserts(spark, name, mode)
    files = spark.sql(f"SELECT file_path, record_count FROM {name}.files").collect()
    every = spark.sql(f"SELECT file_path FROM {name}.all_data_files").collect()
    want("rows of files", sum(f.record_count for f in files), torture.ROWS)
    want("files named twice", len(files) - len({f.file_path for f in files}), 0)
    want("files of all_data_files", {f.file_path for f in every}, {f.file_path for f in files})
    for path in {f.file_path for f in every}:
        want(f"{path} is there", os.path.exists(engines.local_path(path)), True)
    listed = spark.sql(f"SELECT added_data_files_count + existing_data_files_count AS n FROM {name}.manifests").collect()
    want("files of manifests", sum(m.n for m in listed), len(files))
    snapshots = spark.sql(f"SELECT summary['iceberg-ops.migration-batch'] AS batch FROM {name}.snapshots ORDER BY committed_at").collect()
    want("batches", [s.batch for s in snapshots], [str(n) for n in range(torture.BATCHES)])
    return wrong


def look_at_upserts(spark, name, mode):
    """What is wrong with the snapshots and the files of a table that was upserted into."""
    wrong = []
    made = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots WHERE summary['iceberg-ops.migration-batch'] IS NOT NULL ORDER BY committed_at").collect()
    for n, snapshot in enumerate(made):
        got = {r.id: r.text for r in spark.sql(f"SELECT id, text FROM {name} VERSION AS OF {snapshot.snapshot_id}").collect()}
        if got != {i: r["text"] for i, r in torture_upsert.after(n + 1, mode)[0].items()}:
            wrong.append(f"{name}: commit {n}: {got}")
    if len(made) != len(torture_upsert.steps(mode)):
        wrong.append(f"{name}: {len(made)} commits")
    for path in {f.file_path for table in ("all_files", "files") for f in spark.sql(f"SELECT file_path FROM {name}.{table}").collect()}:
        if not os.path.exists(engines.local_path(path)):
            wrong.append(f"{name}: {path} is not there")
    counts = spark.sql(
        f"SELECT sum(CASE WHEN content = 0 THEN record_count END) AS data, sum(CASE WHEN content = 1 THEN record_count END) AS deletes FROM {name}.files"
    ).collect()[0]
    rows = spark.sql(f"SELECT count(*) AS n FROM {name}").collect()[0].n
    if counts.data - (counts.deletes or 0) != rows:
        wrong.append(f"{name}: files hold {counts.data} rows and {counts.deletes} deletes, and there are {rows} rows")
    return wrong


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    spark = engines.start_spark({"dst": (sys.argv[1], None)})
    names = [f"dst.lab.{r.tableName}" for r in spark.sql("SHOW TABLES IN dst.lab").collect()]
    wrong = [] if len(names) == int(sys.argv[2]) else [f"{len(names)} tables are listed, want {sys.argv[2]}"]
    for name in names:
        wrong += look(spark, name)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
