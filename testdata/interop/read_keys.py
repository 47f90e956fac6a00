#!/usr/bin/env python3
"""read_keys.py LISTFILE OUTDIR: whether keys are unique and every named file exists at each snapshot of upserts.

A line of LISTFILE is an object: name, db, catalog, identifier, keys (columns), nulls (whether a key with a
null is a key). OUTDIR/NAME.json gets {"snapshots", "reader", "wrong"}: how many snapshots of jobs were looked at,
who read the keys, and what is wrong. A key that was there more than once before the first of these snapshots may be
as often.
"""

import collections
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines

MARK = "iceberg-ops.migration-job"


def job_snapshots(table):
    """The snapshots of a table that a job made, oldest first."""
    made = [s for s in table.snapshots() if MARK in s.summary.additional_properties]
    return sorted(made, key=lambda s: s.sequence_number or 0) if table.metadata.format_version > 1 else made


def missing_files(table, snapshot):
    """The files that a snapshot names and that do not exist."""
    missing = []

    def see(location):
        if not os.path.exists(engines.local_path(location)):
            missing.append(location)

    see(snapshot.manifest_list)
    for manifest in snapshot.manifests(table.io):
        see(manifest.manifest_path)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            see(entry.data_file.file_path)
    return missing


def part(value):
    """A value of a key: NaN is NaN, and -0.0 is 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def count(rows, nulls):
    """How often each key is there."""
    keys = (tuple(part(v) for v in row) for row in rows)
    return collections.Counter(key for key in keys if nulls or None not in key)


def by_pyiceberg(table, snapshot, keys):
    """The keys of a snapshot's rows, in the names that its schema has for the columns."""
    now, then = table.schema(), table.schemas()[snapshot.schema_id]
    names = [then.find_column_name(now.find_field(k).field_id) for k in keys]
    columns = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(names)).to_arrow()
    return zip(*(columns.column(n).to_pylist() for n in names))


def by_spark(spark, name, snapshot, keys):
    """The same by Spark, for tables whose key columns were not renamed."""
    columns = ", ".join(f"`{k}`" for k in keys)
    return [tuple(r) for r in spark.sql(f"SELECT {columns} FROM {name} VERSION AS OF {snapshot.snapshot_id}").collect()]


def look(table, keys, nulls, spark):
    """What read_keys tells of a table; spark(), called where PyIceberg cannot read it, returns a session and the table's name in it."""
    wrong, reader = [], "pyiceberg"
    made = job_snapshots(table)
    allowed = collections.Counter()
    before = made and made[0].parent_snapshot_id
    for snapshot in ([table.snapshot_by_id(before)] if before else []) + made:
        try:
            rows = by_pyiceberg(table, snapshot, keys)
        except ValueError as problem:
            if "equality deletes" not in str(problem):
                raise
            reader = "spark"
            rows = by_spark(*spark(), snapshot, keys)
        found = count(rows, nulls)
        if snapshot.snapshot_id == before:
            allowed = found
            continue
        often = [f"{key}: {n} times" for key, n in found.items() if n > max(1, allowed[key])]
        for what in [f"key {text}" for text in often[:3]] + [f"no file {path}" for path in missing_files(table, snapshot)[:3]]:
            wrong.append(f"snapshot {snapshot.snapshot_id}: {what}")
    return {"snapshots": len(made), "reader": reader, "wrong": wrong}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    os.makedirs(sys.argv[2], exist_ok=True)
    with open(sys.argv[1], encoding="utf-8") as lines:
        wanted = [json.loads(line) for line in lines]
    sessions = []

    def session(one):
        if not sessions:
            sessions.append(engines.start_spark({w["catalog"]: (w["db"], None) for w in wanted}))
        return sessions[0], one["catalog"] + "." + ".".join(f"`{p}`" for p in one["identifier"].split("."))

    for one in wanted:
        table = engines.open_catalog(one["db"], one["catalog"]).load_table(one["identifier"])
        found = look(table, one["keys"], one["nulls"], lambda: session(one))
        with open(os.path.join(sys.argv[2], one["name"] + ".json"), "w", encoding="utf-8") as out:
            json.dump(found, out)


if __name__ == "__main__":
    main()
