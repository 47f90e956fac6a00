#!/usr/bin/env python3
"""The other party of a job: what PyIceberg and Spark do to a table while a job of icepipe is stopped.

    between.py OUT

Makes OUT/src.db and OUT/dst.db, with the source lab.src of 1,200 rows in three files, and then takes one
JSON object a line from stdin, {"do": NAME, "table": NAME, …}, and answers each with one on stdout. Spark is
started by the first thing that asks for it.
"""

import os
import time

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

import engines
from party import serve

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
ROWS, FILES = 1200, 3


def rows(first, n, name="ours"):
    """n rows from an id on."""
    ids = range(first, first + n)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"{name} {i}" for i in ids])})


class Party:
    """The tables, and what is done to them."""

    def __init__(self, out):
        self.out = out
        self.catalogs = {}
        for name in engines.CATALOGS:
            folder = os.path.join(out, name + "_wh")
            os.makedirs(folder, exist_ok=True)
            self.catalogs[name] = engines.open_catalog(os.path.join(out, name + ".db"), name, f"file://{folder}")
            self.catalogs[name].create_namespace(engines.NAMESPACE)
        source = self.catalogs["src"].create_table(f"{engines.NAMESPACE}.src", SCHEMA)
        for i in range(FILES):
            source.append(rows(i * ROWS // FILES, ROWS // FILES))
        self.spark = None

    def name(self, table):
        return f"{engines.NAMESPACE}.{table}"

    def load(self, table):
        return self.catalogs["dst"].load_table(self.name(table))

    def call(self, text):
        """A statement in Spark, which is started when it is not there."""
        if self.spark is None:
            self.spark = engines.start_spark(
                {c: (os.path.join(self.out, c + ".db"), os.path.join(self.out, c + "_wh")) for c in engines.CATALOGS}
            )
        return [r.asDict() for r in self.spark.sql(text).collect()]

    # By PyIceberg, but for tables of version 3, which it cannot write.

    def create(self, table, version="2"):
        if version == "3":
            self.call(f"CREATE TABLE dst.{self.name(table)} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')")
            return
        self.catalogs["dst"].create_table(self.name(table), SCHEMA, properties={"format-version": version})

    def append(self, table, first=100_000, n=10):
        t = self.load(table)
        if t.format_version == 3:
            self.call(f"INSERT INTO dst.{self.name(table)} SELECT id, concat('theirs ', id) FROM range({first}, {first + n})")
            return
        t.append(rows(first, n, "theirs"))

    def recreate(self, table):
        self.catalogs["dst"].drop_table(self.name(table))
        self.create(table)

    def rollback(self, table, back):
        """Back by so many snapshots."""
        t = self.load(table)
        at = t.current_snapshot()
        for _ in range(back):
            at = t.snapshot_by_id(at.parent_snapshot_id)
        t.manage_snapshots().rollback_to_snapshot(at.snapshot_id).commit()

    def expire(self, table):
        """All snapshots but the heads of branches."""
        t = self.load(table)
        heads = {r.snapshot_id for r in t.refs().values()}
        old = [s.snapshot_id for s in t.snapshots() if s.snapshot_id not in heads]
        t.maintenance.expire_snapshots().by_ids(old).commit()

    def branch(self, table, branch):
        t = self.load(table)
        t.manage_snapshots().create_branch(t.current_snapshot().snapshot_id, branch).commit()

    def delete(self, table, where):
        self.load(table).delete(where)

    def add_column(self, table, column):
        with self.load(table).update_schema() as update:
            update.add_column(column, LongType())

    # By Spark.

    def compact(self, table):
        done = self.call(
            f"CALL dst.system.rewrite_data_files(table => '{self.name(table)}', options => map('rewrite-all', 'true'))"
        )
        if done[0]["rewritten_data_files_count"] < 2:
            raise SystemExit(f"compaction rewrote {done}")

    def rewrite_manifests(self, table):
        self.call(f"CALL dst.system.rewrite_manifests('{self.name(table)}')")

    def expire_and_remove(self, table):
        """As a nightly job does: one snapshot is left, and files that nothing names are removed."""
        time.sleep(0.01)  # older_than is exclusive and in milliseconds
        self.call(
            f"CALL dst.system.expire_snapshots(table => '{self.name(table)}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )

    def replace_branch(self, table, branch, snapshot):
        self.call(f"ALTER TABLE dst.{self.name(table)} REPLACE BRANCH {branch} AS OF VERSION {snapshot}")

    def drop_branch(self, table, branch):
        self.call(f"ALTER TABLE dst.{self.name(table)} DROP BRANCH {branch}")

    def remove_orphans(self, table):
        """Spark's own removal, at an age that takes whatever no snapshot names."""
        java = engines.Java(self.spark) if self.spark else None
        if java is None:
            self.call("SELECT 1")
            java = engines.Java(self.spark)
        actions = java.jvm.org.apache.iceberg.spark.actions.SparkActions.get()
        action = actions.deleteOrphanFiles(java.load("dst", table)).olderThan(int(time.time() * 1000) + 60_000)
        return {"removed": len(list(action.execute().orphanFileLocations()))}

    # What is there.

    def look(self, table, branch="main"):
        """How many rows and how many different ids there are of either party, read by PyIceberg."""
        t = self.load(table)
        head = t.refs().get(branch)
        if head is None:
            return {"ours": 0, "ours_distinct": 0, "theirs": 0}
        got = t.scan(snapshot_id=head.snapshot_id).to_arrow().to_pylist()
        ours = [r["id"] for r in got if r["name"] == f"ours {r['id']}" and 0 <= r["id"] < ROWS]
        return {"ours": len(ours), "ours_distinct": len(set(ours)), "theirs": len(got) - len(ours), "snapshot": str(head.snapshot_id)}

    def look_by_spark(self, table):
        """The same by Spark, and that its metadata tables can be read."""
        full = f"dst.{self.name(table)}"
        for meta in ("files", "manifests", "all_data_files", "snapshots"):
            self.call(f"SELECT count(*) FROM {full}.{meta}")
        got = self.call(f"SELECT count(*) AS n, count(DISTINCT id) AS d FROM {full} WHERE name = concat('ours ', id)")[0]
        return {"ours": got["n"], "ours_distinct": got["d"]}


if __name__ == "__main__":
    serve(Party)
