#!/usr/bin/env python3
"""read_commits.py LISTFILE OUTDIR: what each snapshot of append-only tables added, as DuckDB reads its files.

A line of LISTFILE is NAME<tab>DB<tab>CATALOG<tab>IDENTIFIER. OUTDIR/NAME.json gets a list, oldest
snapshot first, of {"snapshot_id", "summary", "files", "rows"}: rows are canonical lines, sorted.
Columns are taken by name, so the table's columns must have been the same in all schemas.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb
from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

import canon
import engines


def added(table, snapshot):
    """The data files that a snapshot added."""
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id:
                if entry.data_file.content != DataFileContent.DATA:
                    raise ValueError(f"snapshot {snapshot.snapshot_id} adds deletes")
                yield engines.local_path(entry.data_file.file_path)


def lines(connection, table, paths):
    """The canonical rows of the files."""
    if not paths:
        return []
    names = ", ".join('"' + f.name.replace('"', '""') + '"' for f in table.schema().fields)
    source = connection.sql("SELECT * FROM read_parquet(?, hive_partitioning=false)", params=[paths])
    return sorted(canon.line(row) for row in canon.arrow_rows(source.project(names).to_arrow_table()))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.splitlines()[0])
    os.makedirs(sys.argv[2], exist_ok=True)
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'; SET arrow_lossless_conversion=true")
    with open(sys.argv[1], encoding="utf-8") as wanted:
        for name, db, catalog, identifier in (text.rstrip("\n").split("\t") for text in wanted if text.strip()):
            table = engines.open_catalog(db, catalog).load_table(identifier)
            commits = []
            for snapshot in sorted(table.snapshots(), key=lambda s: s.sequence_number or 0):
                files = list(added(table, snapshot))
                commits.append(
                    {
                        "snapshot_id": str(snapshot.snapshot_id),
                        "summary": {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties},
                        "files": len(files),
                        "rows": lines(connection, table, files),
                    }
                )
            with open(os.path.join(sys.argv[2], f"{name}.json"), "w", encoding="utf-8") as out:
                json.dump(commits, out, ensure_ascii=False)


if __name__ == "__main__":
    main()
