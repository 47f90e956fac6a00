"""Looks whether a job's rows are in the destination: counts them, and sums the first column, which numbers them.

usage: check.py JOB [files]

With "files" the destination is all Parquet files below OUT, else the Iceberg table's. Prints one JSON line: rows, commits,
and for a job of many commits when each was made. It fails when the rows are wrong.
"""
import glob
import json
import sys

import duckdb

from job import Job


def paths(table):
    """The data files and delete files of a table."""
    tasks = list(table.scan().plan_files())
    local = lambda files: sorted({f.file_path.removeprefix("file://") for f in files})
    return local(t.file for t in tasks), local(d for t in tasks for d in t.delete_files)


def rows_of(files, deletes, column, condition):
    """The number of rows, and the sum of a column."""
    if not files:
        return 0, None
    query = f"SELECT count(*), sum(\"{column}\") FROM read_parquet({files!r}, filename = true, file_row_number = true, hive_partitioning = false) d"
    if deletes:
        query += f""" ANTI JOIN (SELECT replace(file_path, 'file://', '') AS path, pos FROM read_parquet({deletes!r})) x
            ON d.filename = x.path AND d.file_row_number = x.pos"""
    return duckdb.execute(query + (f" WHERE {condition}" if condition else "")).fetchone()


job = Job.read()
source = job.load("src")
first = source.schema().fields[0].name
expected = rows_of(*paths(source), first, job.condition)
told = {}
if sys.argv[2:] == ["files"]:
    files = glob.glob(f"{job.out}/**/*.parquet", recursive=True)
    found = rows_of(files, [], first, None)
else:
    table = job.load("dst")
    files, deletes = paths(table)
    found = rows_of(files, deletes, first, None)
    told = {"commits": len(table.snapshots()), "files": len(files)}
    if len(table.snapshots()) >= 10:
        told["times"] = [s.timestamp_ms for s in table.snapshots()]
if job.most and found[0] == job.most * job.batch_rows:
    expected = found
if found != expected:
    raise SystemExit(f"the destination holds {found[0]} rows with the sum {found[1]}, not {expected[0]} with {expected[1]}")
print(json.dumps({"rows": found[0], **told}))
