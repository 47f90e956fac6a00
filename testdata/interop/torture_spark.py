#!/usr/bin/env python3
"""torture_spark.py DB N: Spark reads the N tables of torture.py that the catalog dst lists, with their
metadata tables. Prints what is wrong, and exits 1 then.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines
import torture


def look(spark, name):
    """What is wrong with a table."""
    wrong = []

    def want(what, got, expected):
        if got != expected:
            wrong.append(f"{name}: {what}: {got}, want {expected}")

    rows = [r.asDict() for r in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
    want("rows", rows, [{k: r[k] for k in ("id", "text", "part", "extra")} for r in torture.rows()])
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
    properties = {r.key: r.value for r in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    if properties.get("format-version") == "3":
        ids = [r[0] for r in spark.sql(f"SELECT _row_id FROM {name}").collect()]
        want("row IDs", len({i for i in ids if i is not None}), torture.ROWS)
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
