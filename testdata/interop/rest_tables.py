#!/usr/bin/env python3
"""Makes, reads and writes the small tables of the tests with a REST catalog, by PyIceberg.

  rest_tables.py make  < LIST     makes namespaces and tables
  rest_tables.py state < LIST     prints what is in them, one JSON object
  rest_tables.py delete < LIST    deletes the rows with ids below 5
  rest_tables.py compact < LIST   writes all rows of a table anew, into one file
  rest_tables.py append NAME CATALOG IDENTIFIER FIRST COUNT    appends COUNT rows from id FIRST on, one a commit

LIST is {"catalogs": {NAME: PROPERTIES}, "tables": [{"catalog": NAME, "identifier": I, "first": I, "rows": N,
"files": F, "properties": {}}]}; for append CATALOG is PROPERTIES as JSON. A table has the columns id (N of
them from I on, in F files) and text.
"""

import json
import random
import sys
import time

import pyarrow as pa
import sqlalchemy.exc
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))


def rows(first, count):
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {i}" for i in ids], pa.string())})


def tables(listed):
    catalogs = {name: load_catalog(name, **p) for name, p in listed["catalogs"].items()}
    for t in listed["tables"]:
        yield t, catalogs[t["catalog"]]


def make(listed):
    for t, catalog in tables(listed):
        try:
            catalog.create_namespace(t["identifier"].rsplit(".", 1)[0])
        except NamespaceAlreadyExistsError:
            pass
        fill(catalog.create_table(t["identifier"], SCHEMA, properties=t.get("properties") or {}), t)


def fill(table, t):
    """Appends the rows that a list says of a table."""
    count, files = t.get("rows", 0), t.get("files") or 1
    for i in range(files if count else 0):
        first, end = count * i // files, count * (i + 1) // files
        table.append(rows(t.get("first", 0) + first, end - first))


def state(listed):
    json.dump({t["identifier"]: look(catalog.load_table(t["identifier"]), t["identifier"]) for t, catalog in tables(listed)}, sys.stdout)


def look(table, name):
    """What is in a table."""
    found = table.scan().to_arrow().to_pydict()
    if any(text != f"row {i}" for i, text in zip(found["id"], found["text"])):
        raise ValueError(f"{name}: a row's columns do not belong together")
    snapshots = [
        {"id": str(s.snapshot_id), "parent": str(s.parent_snapshot_id or ""), "summary": dict(s.summary.additional_properties)}
        # of the file, since a server may hide all but the heads
        for s in StaticTable.from_metadata(table.metadata_location, dict(table.io.properties)).snapshots()
    ]
    files = [] if table.current_snapshot() is None else table.inspect.files()["file_path"].to_pylist()
    return {
        "ids": sorted(found["id"]),
        "snapshots": snapshots,
        "head": str(table.current_snapshot().snapshot_id) if snapshots else "",
        "gone": [f for f in files if not table.io.new_input(f).exists()],
        "properties": dict(table.properties),
    }


def delete(listed):
    for t, catalog in tables(listed):
        catalog.load_table(t["identifier"]).delete("id < 5")


def compact(listed):
    for t, catalog in tables(listed):
        table = catalog.load_table(t["identifier"])
        table.overwrite(table.scan().to_arrow())


def append(name, properties, identifier, first, count):
    """Appends as a patient program does: after a conflict it loads the table again."""
    catalog = load_catalog(name, **json.loads(properties))
    tries = []
    for i in range(first, first + count):
        for n in range(1, 1000):
            try:
                catalog.load_table(identifier).append(rows(i, 1))
                break
            except (CommitFailedException, sqlalchemy.exc.OperationalError):  # lost, or SQLite is locked
                time.sleep(random.uniform(0.01, 0.2))
        else:
            raise RuntimeError(f"row {i} was not appended")
        tries.append(n)
    json.dump(tries, sys.stdout)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "append":
        append(rest[0], rest[1], rest[2], int(rest[3]), int(rest[4]))
    else:
        {"make": make, "state": state, "delete": delete, "compact": compact}[command](json.load(sys.stdin))
