#!/usr/bin/env python3
"""torture.py: makes tables and looks at them, a request a line on stdin, an answer a line on stdout.

  {"do": "source", "dir": DIR}              makes DIR/src.db with lab.rows and lab.changes, 12 rows in two files each, and
                                            lab.copied, those of lab.rows in a file a batch and partition
  {"do": "fresh", "dir": DIR, "version": N} makes DIR/dst.db with an empty lab.rows in two partitions; with "mode" it
                                            has the rows that lab.changes changes (torture_upsert.py)
  {"do": "check", "dir": DIR}               reads lab.rows of DIR/dst.db and DIR/job.json; "check unswept"
                                            allows temporary files of the checkpoint
  {"do": "orphans", "dir": DIR}             looks for files that nothing names
  {"do": "state", "dir": DIR}               how far lab.rows has come: a whole number of batches

An answer is {"wrong": TEXT, ...}; TEXT is empty where all is right. Rows are read by PyIceberg, and
from the data files by DuckDB. SQLite is asked whether the catalog's database is sound.
"""

import collections
import glob
import json
import os
import shutil
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb
import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import engines
import torture_upsert
from table_files import live_files, manifests

ROWS = 12
BATCH_ROWS = 4
BATCHES = ROWS // BATCH_ROWS

# The source has a column more than the destination: the migration adds it there.
SOURCE = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "part", StringType()),
    NestedField(3, "text", StringType()),
    NestedField(4, "extra", LongType()),
)
DESTINATION = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "text", StringType()),
    NestedField(3, "part", StringType()),
)


def rows():
    """The rows of the source. Each batch has rows of both partitions."""
    return [{"id": i, "part": "ab"[i % 2], "text": f"row {i}", "extra": i * i} for i in range(ROWS)]


def source(folder):
    """Makes the sources."""
    catalog = engines.open_catalog(os.path.join(folder, "src.db"), "src", folder)
    catalog.create_namespace("lab")
    for name, content in (("rows", rows()), ("changes", sum(torture_upsert.BATCHES, []))):
        table = catalog.create_table(f"lab.{name}", SOURCE, location=os.path.join(folder, "src", name))
        half = ROWS // 2
        for part in (content[:half], content[half:]):
            table.append(pa.Table.from_pylist(part, schema=SOURCE.as_arrow()))
    copied = catalog.create_table("lab.copied", SOURCE, location=os.path.join(folder, "src", "copied"))
    for first in range(0, ROWS, BATCH_ROWS):
        for part in "ab":
            content = [r for r in rows()[first : first + BATCH_ROWS] if r["part"] == part]
            copied.append(pa.Table.from_pylist(content, schema=SOURCE.as_arrow()))


def fresh(folder, version, mode):
    """Makes a destination. PyIceberg writes no version 3: there the document of version 2 is changed."""
    catalog = engines.open_catalog(os.path.join(folder, "dst.db"), "dst", folder)
    catalog.create_namespace("lab")
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "part"))
    props = {
        "format-version": str(min(version, 2)),
        "commit.manifest.min-count-to-merge": "2",  # so that three commits merge
        "commit.retry.min-wait-ms": "1",
        "commit.retry.max-wait-ms": "5",
    }
    if mode:
        props[torture_upsert.MODE] = mode
    table = catalog.create_table("lab.rows", DESTINATION, partition_spec=spec, properties=props, location=os.path.join(folder, "dst"))
    if mode:
        torture_upsert.fill(table)
    if version == 3:
        path = engines.local_path(table.metadata_location)
        with open(path, encoding="utf-8") as text:
            document = json.load(text)
        document.update({"format-version": 3, "next-row-id": 0})
        with open(path, "w", encoding="utf-8") as text:
            json.dump(document, text)


def check(folder):
    """What is wrong with a destination that must be complete."""
    table = engines.open_catalog(os.path.join(folder, "dst.db"), "dst", folder).load_table("lab.rows")
    if mode := table.properties.get(torture_upsert.MODE):
        return torture_upsert.check(folder, table, mode) + database(folder)
    wrong = []

    def want(what, got, expected):
        if got != expected:
            wrong.append(f"{what}: {got}, want {expected}")

    key = lambda r: json.dumps(r, sort_keys=True)
    expected = sorted(map(key, rows()))
    want("rows read by PyIceberg", sorted(map(key, table.scan().to_arrow().to_pylist())), expected)
    want("columns", [f.name for f in table.schema().fields], ["id", "text", "part", "extra"])
    wrong += marks(table)
    paths, problems = files(table)
    wrong += problems
    found = duckdb.sql("SELECT * FROM read_parquet($paths, hive_partitioning=false, union_by_name=true)", params={"paths": paths})
    want("rows read by DuckDB", sorted(map(key, found.to_arrow_table().to_pylist())), expected)
    wrong += checkpoint(folder, table)
    return wrong + database(folder)


def marks(table):
    """What is wrong with the snapshots: one a batch, in order, each with the marks of the one job."""
    wrong = []
    chain, at = [], table.current_snapshot()
    while at is not None:
        chain.insert(0, at)
        at = table.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id else None
    if len(chain) != BATCHES or len(table.snapshots()) != BATCHES:
        wrong.append(f"{len(table.snapshots())} snapshots, {len(chain)} of them in the history, want {BATCHES}")
    jobs, before = set(), None
    for n, snapshot in enumerate(chain):
        summary = snapshot.summary.additional_properties
        jobs.add(summary.get("iceberg-ops.migration-job"))
        told = (summary.get("iceberg-ops.migration-batch"), summary.get("icepipe.source-rows"), summary.get("added-records"))
        if told != (str(n), str(BATCH_ROWS), str(BATCH_ROWS)):
            wrong.append(f"snapshot {n} is marked as batch {told[0]} of {told[1]} rows, with {told[2]} added")
        if before is not None and summary.get("icepipe.cursor-from") != before:
            wrong.append(f"snapshot {n} starts at {summary.get('icepipe.cursor-from')}, the one before ends at {before}")
        before = summary.get("icepipe.cursor")
        if summary.get("total-records") != str(BATCH_ROWS * (n + 1)):
            wrong.append(f"snapshot {n} says total-records {summary.get('total-records')}")
    if len(jobs) != 1 or None in jobs:
        wrong.append(f"the snapshots are of jobs {jobs}")
    return wrong


def files(table):
    """The live data files, and what is wrong with the files that the metadata names and with row IDs."""
    wrong, live, ids = [], {}, collections.Counter()

    def there(path, size=None):
        path = engines.local_path(path)
        if not os.path.exists(path):
            wrong.append(f"{path} is named and not there")
        elif size is not None and os.path.getsize(path) != size:
            wrong.append(f"{path} has {os.path.getsize(path)} bytes, {size} are named")

    for entry in table.metadata.metadata_log:
        there(entry.metadata_file)
    for snapshot in table.snapshots():
        there(snapshot.manifest_list)
        current = snapshot.snapshot_id == table.current_snapshot().snapshot_id
        for manifest, next_row_id in manifests(table, snapshot):
            there(manifest.manifest_path, manifest.manifest_length)
            for file, row_id in live_files(table, manifest):
                there(file.file_path, file.file_size_in_bytes)
                if not current:
                    continue
                if file.file_path in live:
                    wrong.append(f"{file.file_path} is in the table twice")
                live[file.file_path] = file.record_count
                if table.format_version >= 3:
                    if row_id is None:
                        row_id, next_row_id = next_row_id, next_row_id + file.record_count
                    ids.update(range(row_id, row_id + file.record_count))
    if sum(live.values()) != ROWS:
        wrong.append(f"the files hold {sum(live.values())} rows")
    if table.format_version == 3:
        if len(ids) != ROWS or set(ids.values()) != {1}:
            wrong.append(f"row IDs {sorted(ids.elements())}")
        if max(ids) >= table.metadata.next_row_id:
            wrong.append(f"row ID {max(ids)} with next-row-id {table.metadata.next_row_id}")
    return [engines.local_path(p) for p in live], wrong


def checkpoint(folder, table):
    """What is wrong with the checkpoint of a complete job."""
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as text:
        note = json.load(text)
    summary = table.current_snapshot().summary.additional_properties
    told = {
        "state": note["state"], "batches": note["batches"], "job": note["job"], "last": note.get("last_snapshot"),
        "moved": note["totals"]["rows_moved"], "inserted": note["totals"]["rows_inserted"],
        "pending": note.get("pending"), "before": note["dest_snapshot_before"],
    }  # fmt: skip
    expected = {
        "state": "complete", "batches": BATCHES, "job": summary.get("iceberg-ops.migration-job"),
        "last": str(table.current_snapshot().snapshot_id), "moved": ROWS, "inserted": ROWS,
        "pending": None, "before": None,
    }  # fmt: skip
    return [f"checkpoint: {k} is {told[k]}, want {expected[k]}" for k in told if told[k] != expected[k]]


def temporaries(folder):
    """The temporary files of the checkpoint, which a run sweeps when it begins."""
    return [f"{os.path.basename(p)} is left" for p in glob.glob(os.path.join(folder, "job.json.tmp-*"))]


def database(folder):
    """What is wrong with the catalog's database."""
    path = os.path.join(folder, "dst.db")
    wrong = [f"{os.path.basename(p)} is left" for p in glob.glob(path + "-*") if os.path.getsize(p)]
    with sqlite3.connect(path) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return wrong + ([] if sound == "ok" else [f"SQLite says of the database: {sound}"])


def state(folder):
    """How many batches a destination holds, and what is wrong with it. The database is read in a copy:
    a journal that is left would be rolled back by the reader."""
    with tempfile.TemporaryDirectory() as copy:
        for path in glob.glob(os.path.join(folder, "dst.db*")):
            shutil.copy(path, copy)
        table = engines.open_catalog(os.path.join(copy, "dst.db"), "dst", folder).load_table("lab.rows")
    if mode := table.properties.get(torture_upsert.MODE):
        batches, wrong = torture_upsert.state(table, mode)
    else:
        batches = len(table.snapshots())
        got = sorted(r["id"] for r in table.scan().to_arrow().to_pylist())
        wrong = "" if got == list(range(batches * BATCH_ROWS)) else f"{batches} snapshots, and the rows are {got}"
    path = os.path.join(folder, "job.json")
    note = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as text:
            note = json.load(text)
    return {"wrong": wrong, "batches": batches, "noted": note.get("state", "")}


def answer(request):
    """What to say to a request."""
    folder = request["dir"]
    match request["do"]:
        case "source":
            source(folder)
        case "fresh":
            fresh(folder, request["version"], request.get("mode"))
        case "check":
            return {"wrong": "; ".join(check(folder) + temporaries(folder))}
        case "check unswept":
            return {"wrong": "; ".join(check(folder))}
        case "orphans":
            table = engines.open_catalog(os.path.join(folder, "dst.db"), "dst", folder).load_table("lab.rows")
            return {"wrong": "; ".join(torture_upsert.orphans(table))}
        case "state":
            return state(folder)
        case other:
            raise ValueError(other)
    return {"wrong": ""}


def main():
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as problem:
            said = {"wrong": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
