#!/usr/bin/env python3
"""The other party of upserts, and their judge: makes tables in a SQLite and a REST catalog, changes them by Spark while
a job is held, and holds every snapshot of a job against the one before it.

    upsert_party.py OUT CONFIG

CONFIG is {"catalogs": {NAME: PROPERTIES}, "spark": {NAME: [DATABASE, WAREHOUSE]}}: Spark opens the databases of both
catalogs itself. Takes one JSON object a line from stdin, {"do": NAME, …}, and answers each with one on stdout.
"""

import collections
import json
import sys
import urllib.request

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import engines
import torture_upsert
from party import serve

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))
MARK = "iceberg-ops.migration-job"


def arrow(rows):
    ids, texts = zip(*rows)
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(texts, pa.string())})


class Party:
    """The tables, and what is done to them."""

    def __init__(self, out):
        config = json.loads(sys.argv[2])
        self.properties = config["catalogs"]
        self.catalogs = {name: load_catalog(name, **p) for name, p in self.properties.items()}
        self.databases = config["spark"]
        self.sources = {}  # rows by UUID
        self.spark = None

    def make(self, tables):
        """Tables with rows [[id, text], …] in so many files; "version" 3 by an upgrade, since PyIceberg makes none."""
        for t in tables:
            catalog = self.catalogs[t["catalog"]]
            try:
                catalog.create_namespace(t["identifier"].rsplit(".", 1)[0])
            except NamespaceAlreadyExistsError:
                pass
            version = t.get("version", 2)
            props = {"format-version": str(min(version, 2)), "commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}
            table = catalog.create_table(t["identifier"], SCHEMA, properties=props)
            rows, files = t["rows"], t.get("files", 1)
            for i in range(files):
                table.append(arrow(rows[len(rows) * i // files : len(rows) * (i + 1) // files]))
            if version == 3:
                self.upgrade(t["catalog"], table)
            self.sources[str(table.metadata.table_uuid)] = rows

    def upgrade(self, catalog, table):
        if self.properties[catalog]["type"] == "rest":
            space, name = table.name()
            body = {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 3}]}
            url = f"{self.properties[catalog]['uri']}/v1/namespaces/{space}/tables/{name}"
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})):
                return
        path = engines.local_path(table.metadata_location)
        with open(path, encoding="utf-8") as text:
            document = json.load(text)
        document.update({"format-version": 3, "next-row-id": 0})
        with open(path, "w", encoding="utf-8") as text:
            json.dump(document, text)

    def act(self, catalog, identifier, statements):
        """Statements in Spark; {table} is the table's name, {name} the same without its catalog."""
        if self.spark is None:
            self.spark = engines.start_spark({name: tuple(place) for name, place in self.databases.items()})
        for text in statements:
            text = text.replace("{table}", f"{catalog}.{identifier}").replace("{name}", identifier).replace("{catalog}", catalog)
            self.spark.sql(text).collect()
        return {"operation": self.catalogs[catalog].load_table(identifier).current_snapshot().summary.operation.value}

    def judge(self, tables):
        """What is wrong with tables, by identifier; "final" are rows that a job must have left: {id: text}."""
        answer = {"wrong": {}, "snapshots": 0}
        for t in tables:
            table = self.catalogs[t["catalog"]].load_table(t["identifier"])
            look = Look(table, self.sources)
            wrong = look.judge({int(k): v for k, v in t.get("final", {}).items()}, t.get("before"))
            answer["snapshots"] += look.seen
            if wrong:
                answer["wrong"][f"{t['catalog']} {t['identifier']}"] = wrong[:5]
        return answer


class Look:
    """A look at every snapshot of a job in a table."""

    def __init__(self, table, sources):
        self.table, self.sources, self.seen = table, sources, 0
        self.read = {}  # rows and row IDs of snapshots
        self.wrong = []

    def want(self, what, got, expected):
        if got != expected:
            self.wrong.append(f"{what}: {got}, want {expected}")

    def rows(self, snapshot):
        """The rows of a snapshot as (id, text), by PyIceberg, and the row ID of each id; DuckDB must read the same."""
        if snapshot.snapshot_id not in self.read:
            found = self.table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pydict()
            rows = sorted(zip(found["id"], found["text"]))
            live, problems = torture_upsert.files(self.table, snapshot)
            self.wrong += problems
            again = list(torture_upsert.by_duckdb(live))
            self.want(f"rows of snapshot {snapshot.snapshot_id} by DuckDB", sorted((r["id"], r["text"]) for r in again), rows)
            ids = [r["row_id"] for r in again if r["row_id"] is not None]
            self.want(f"row IDs of snapshot {snapshot.snapshot_id}", len(set(ids)), len(ids))
            self.read[snapshot.snapshot_id] = rows, {r["id"]: r["row_id"] for r in again}
        return self.read[snapshot.snapshot_id]

    def judge(self, final, before):
        chain, at = [], self.table.current_snapshot()
        while at is not None:
            chain.insert(0, at)
            at = self.table.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id else None
        moved = collections.Counter()  # source rows of each job so far
        for snapshot, parent in zip(chain[1:], chain):
            summary = snapshot.summary.additional_properties
            if MARK not in summary:
                continue
            self.seen += 1
            job, n = summary[MARK], int(summary["icepipe.source-rows"])
            batch = self.sources[summary["icepipe.source-uuid"]][moved[job] : moved[job] + n]
            moved[job] += n
            self.step(snapshot, parent, [tuple(r) for r in batch], summary)
        rows = self.rows(chain[-1])[0]
        self.want("keys that are there more than once", [k for k, n in collections.Counter(i for i, _ in rows).items() if n > 1], [])
        for i, text in final.items():
            self.want(f"rows of id {i}", [r for r in rows if r[0] == i], [(i, text)])
        if before is not None:
            self.want("the rows", rows, sorted(tuple(r) for r in before))
        return self.wrong

    def step(self, snapshot, parent, batch, summary):
        """Holds a snapshot against the one before it and the rows of its batch."""
        was, ids = self.rows(parent)
        now, ids_now = self.rows(snapshot)
        counts = collections.Counter()
        expected = dict(was)
        for key, text in batch:
            counts["inserted" if key not in expected else "unchanged" if expected[key] == text else "updated"] += 1
            expected[key] = text
        name = f"snapshot {snapshot.snapshot_id}"
        self.want(f"rows of {name}", now, sorted(expected.items()))
        for what in ("inserted", "updated", "unchanged"):
            self.want(f"{what} rows of {name}", summary.get(f"icepipe.rows-{what}"), str(counts[what]))
        if self.table.format_version >= 3:
            changed = {k: (v, ids_now.get(k)) for k, v in ids.items() if v is not None and ids_now.get(k) != v}
            self.want(f"row IDs that changed in {name}", changed, {})


if __name__ == "__main__":
    serve(Party)
