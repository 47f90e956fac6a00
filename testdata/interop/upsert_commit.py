#!/usr/bin/env python3
"""The other party of commits that take rows out: Spark makes tables, says where their rows lie, and judges what
became of them.

    upsert_commit.py OUT

Makes OUT/dst.db, then takes one JSON object a line from stdin, {"do": NAME, "table": NAME, …}, and answers each
with one on stdout. The tables are those of overwrite.py: specs that changed, nested columns, deletes of every kind.
"""

import json
import os

import engines
import overwrite
from party import serve

COLUMNS = ("id", "p", "q", "ts", "f", "n", "m")


class Party:
    """The tables as they were when a commit began."""

    def __init__(self, out):
        self.out = out
        self.spark = engines.start_spark({"dst": (os.path.join(out, "dst.db"), os.path.join(out, "dst"))})
        self.java = engines.Java(self.spark)
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS dst.lab")
        self.rows, self.ids = {}, {}

    def all(self, text):
        return self.spark.sql(text).collect()

    def build(self, table, version, case, seed):
        """A table of a case of overwrite.py; version 23 is one of 2 that was upgraded to 3."""
        found = next(c for c in overwrite.CASES if c[0] == case)
        overwrite.build(self.spark, self.java, table, min(version, 2) if version == 23 else version, found, seed)
        if version == 23:
            self.spark.sql(f"ALTER TABLE dst.lab.{table} SET TBLPROPERTIES ('format-version'='3')")

    def places(self, table):
        """Where each live row is: [id, file, position, row ID]. What there is is remembered for check."""
        name = f"dst.lab.{table}"
        self.rows[table] = {json.loads(text)["id"]: text for text in overwrite.text_rows(self.spark, f"SELECT * FROM {name}")}
        lineage = self.version(table) >= 3
        more = ", _row_id, _last_updated_sequence_number" if lineage else ", CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)"
        found = [list(r) for r in self.all(f"SELECT id, _file, _pos{more} FROM {name}")]
        self.ids[table] = {r[0]: (r[3], r[4]) for r in found}
        return {"rows": [r[:4] for r in found]}

    def version(self, table):
        return self.java.load("dst", table).operations().current().formatVersion()

    def check(self, table, rows, appended, copies, lineage):
        """What is wrong with a table in which rows took the place of those with their ids."""
        name = f"dst.lab.{table}"
        wrong = []

        def same(what, got, want):
            if got != want:
                wrong.append(f"{what}: {str(got)[:600]}, want {str(want)[:600]}")

        want = dict(self.rows[table])
        was = set(want)
        for r in rows:
            want[r["id"]] = json.dumps({c: r.get(c) for c in COLUMNS}, separators=(",", ":"), ensure_ascii=False)
        same("rows in Spark", overwrite.text_rows(self.spark, f"SELECT * FROM {name}"), sorted(want.values()))
        read = overwrite.read_by_pyiceberg(self.out, table)
        if read is not None:
            same("rows in PyIceberg", read, overwrite.spark_rows(self.spark, f"SELECT * FROM {name}"))
        wrong += self.metadata(table, appended, copies)
        if self.version(table) >= 3:
            wrong += self.lineage(table, {r["id"] for r in rows}, was, lineage)
        return {"wrong": [f"{table}: {w}" for w in wrong], "pyiceberg": read is not None, **self.kinds}

    def metadata(self, table, appended, copies):
        """files, entries, position_deletes and the summary are of one mind, and keep the rules of the format."""
        name = f"dst.lab.{table}"
        wrong = []

        def same(what, got, want):
            if got != want:
                wrong.append(f"{what}: {got}, want {want}")

        head = self.all(f"SELECT snapshot_id, operation, summary FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1")[0]
        files = self.all(f"SELECT * FROM {name}.files")
        data = {f.file_path: f for f in files if f.content == 0}
        vectors = [f for f in files if f.file_format == "PUFFIN"]
        positions = [f for f in files if f.content == 1 and f.file_format != "PUFFIN"]
        equality = [f for f in files if f.content == 2]
        for f in files:
            if not os.path.exists(engines.local_path(f.file_path)):
                wrong.append(f"{f.file_path} is not there")
        for v in vectors:
            same(f"{v.file_path} is for a data file of its partition", v.referenced_data_file in data and self.place(data[v.referenced_data_file]) == self.place(v), True)
            same("a vector has a place", v.content_offset is not None and v.content_size_in_bytes > 0, True)
        same("vectors of one data file", len({v.referenced_data_file for v in vectors}), len(vectors))
        if self.version(table) < 3:
            same("vectors", len(vectors), 0)
            for p in positions:
                if p.record_count and "icepipe-" in p.file_path:
                    same(f"{p.file_path} is for a data file of its partition", p.referenced_data_file in data and self.place(data[p.referenced_data_file]) == self.place(p), True)
        if positions or vectors:
            dead = self.all(f"SELECT file_path, pos FROM {name}.position_deletes")
            by_vector = {v.referenced_data_file for v in vectors}
            for v in vectors:
                same(f"positions in the vector of {v.referenced_data_file}", len({d.pos for d in dead if d.file_path == v.referenced_data_file}), v.record_count)
            if not equality:
                gone = {(d.file_path, d.pos) for d in dead if d.file_path in data}
                live = self.all(f"SELECT count(*) AS n FROM {name}")[0].n
                same("rows by metadata", sum(f.record_count for f in data.values()) - len(gone), live)
            for p in positions:
                if p.referenced_data_file in by_vector:
                    wrong.append(f"{p.file_path} stands beside a vector of its only data file")
        same("operation", head.operation, "append" if appended else "overwrite")
        summary = {k: int(v) for k, v in head.summary.items() if v.isdigit()}

        def size(f):
            return f.content_size_in_bytes if f.file_format == "PUFFIN" else f.file_size_in_bytes

        totals = {
            "total-data-files": len(data),
            "total-records": sum(f.record_count for f in data.values()),
            "total-delete-files": len(files) - len(data),
            "total-position-deletes": sum(f.record_count for f in positions + vectors),
            "total-equality-deletes": sum(f.record_count for f in equality),
            "total-files-size": sum(size(f) for f in files),
        }
        for key, value in totals.items():
            same(key, summary[key], value)
        entries = self.all(f"SELECT status, sequence_number, data_file.content AS content, data_file.file_format AS kind, data_file.record_count AS n FROM {name}.entries WHERE snapshot_id = {head.snapshot_id} AND status <> 0")
        for status, words in ((1, ("added", "added-data-files", "added-records")), (2, ("removed", "deleted-data-files", "deleted-records"))):
            of = [e for e in entries if e.status == status]
            counts = {
                words[1]: len([e for e in of if e.content == 0]),
                words[2]: sum(e.n for e in of if e.content == 0),
                f"{words[0]}-delete-files": len([e for e in of if e.content > 0]),
                f"{words[0]}-dvs": len([e for e in of if e.kind == "PUFFIN"]),
                f"{words[0]}-position-delete-files": len([e for e in of if e.content == 1 and e.kind != "PUFFIN"]),
                f"{words[0]}-position-deletes": sum(e.n for e in of if e.content == 1),
                f"{words[0]}-equality-delete-files": len([e for e in of if e.content == 2]),
                f"{words[0]}-equality-deletes": sum(e.n for e in of if e.content == 2),
            }
            for key, value in counts.items():
                same(key, summary.get(key, 0), value)
        if copies and not appended:
            same("delete files that a copy added", summary.get("added-delete-files", 0), 0)
        self.kinds = {"vectors": len(vectors), "positions": len(positions), "equality": len(equality)}
        return wrong

    def place(self, f):
        row = f.asDict(recursive=True)
        return json.dumps([row["spec_id"], row.get("partition")], default=str, sort_keys=True)

    def lineage(self, table, changed, was, kept):
        """Row IDs are used once, and stay what they were where the row was not changed, and where it was when the
        writer kept them."""
        name = f"dst.lab.{table}"
        now = {r[0]: (r[1], r[2]) for r in self.all(f"SELECT id, _row_id, _last_updated_sequence_number FROM {name}")}
        last = self.all(f"SELECT max(sequence_number) AS n FROM {name}.entries")[0].n
        used = [i for i, _ in now.values()]
        wrong = []
        if None in used or len(set(used)) != len(used):
            wrong.append(f"row IDs {sorted(map(str, used))}")
        for i, (row, sequence) in now.items():
            before = self.ids[table].get(i, (None, None))
            if i not in changed and before[0] is not None and (row, sequence) != before:
                wrong.append(f"row {i} had {before}, and has {(row, sequence)}")
            if i in changed and sequence != last:
                wrong.append(f"row {i} was changed by {sequence}, want {last}")
            if i in changed and i in was and kept and row != before[0]:
                wrong.append(f"row {i} had ID {before[0]}, and has {row}")
        return wrong[:5]

    def theirs(self, table):
        """Spark changes and compacts the table; the rows must be what it makes them."""
        name = f"dst.lab.{table}"
        rows = {json.loads(t)["id"]: t for t in overwrite.text_rows(self.spark, f"SELECT * FROM {name}")}
        some = sorted(rows)[::4]
        for mode in ("update", "merge", "delete"):
            self.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.{mode}.mode'='{'merge-on-read' if self.version(table) > 1 else 'copy-on-write'}')")
        source = ", ".join(f"({i}L, 'merged')" for i in some)
        self.spark.sql(f"MERGE INTO {name} t USING (SELECT * FROM VALUES {source} AS s(id, p)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.p = s.p")
        for i in some:
            r = json.loads(rows[i])
            r["p"] = "merged"
            rows[i] = json.dumps(r, separators=(",", ":"), ensure_ascii=False)
        wrong = []
        if overwrite.text_rows(self.spark, f"SELECT * FROM {name}") != sorted(rows.values()):
            wrong.append(f"{table}: rows after Spark's MERGE")
        if self.version(table) > 1 and len(self.java.load("dst", table).specs()) == 1:
            # Of two specs that give a file the same values, one of which is a null, Spark refuses the deletes: "All
            # scan tasks are expected to have same spec id". It does that to deletes of its own, too.
            self.spark.sql(f"CALL dst.system.rewrite_position_delete_files(table => 'lab.{table}', options => map('rewrite-all', 'true'))")
        self.spark.sql(f"CALL dst.system.rewrite_manifests(table => 'lab.{table}')")
        if overwrite.text_rows(self.spark, f"SELECT * FROM {name}") != sorted(rows.values()):
            wrong.append(f"{table}: rows after Spark rewrote deletes and manifests")
        return {"wrong": wrong}

    def compact(self, table):
        """Spark writes all data files anew, and lets all snapshots but the last go."""
        name = f"dst.lab.{table}"
        rows = overwrite.text_rows(self.spark, f"SELECT * FROM {name}")
        self.spark.sql(f"CALL dst.system.rewrite_data_files(table => 'lab.{table}', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))")
        self.spark.sql(f"CALL dst.system.expire_snapshots(table => 'lab.{table}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)")
        same = overwrite.text_rows(self.spark, f"SELECT * FROM {name}") == rows
        return {"wrong": [] if same else [f"{table}: rows after Spark compacted and expired"]}


if __name__ == "__main__":
    serve(Party)
