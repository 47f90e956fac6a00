#!/usr/bin/env python3
"""upsert_merge.py BIN DIR SEED COUNT [NUMBER ...]: random tables of every format version, with specs and schemas
that changed, deletes of every kind and nested columns, are made by Spark. icepipe upserts random rows into the one,
and Spark's MERGE puts them into a second one of the same metadata. Both must hold the same rows, by Spark and by
PyIceberg; at every snapshot of the job keys and row IDs are unique and every file is there; rows keep their row IDs.
With NUMBERs, those of the COUNT upserts alone. Prints what is wrong, and exits 1 then.
"""

import collections
import itertools
import json
import os
import random
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines
import overwrite
import read_keys

KINDS = {
    "id": "BIGINT",
    "p": "STRING",
    "q": "INT",
    "ts": "TIMESTAMP_NTZ",
    "f": "DOUBLE",
    "n": "STRUCT<a: INT, b: ARRAY<STRING>>",
    "m": "MAP<STRING, INT>",
}
COLUMNS = list(KINDS)
TABLE = ", ".join(f"{c} {k}" for c, k in KINDS.items())
VERSIONS = [1, 2, 3, 23]  # 23: made as 2, then upgraded
KINDS_OF_DELETES = ["copies", "positions", "vectors", "equality"]
MODES = ["auto", "copy-on-write", "position"]
SPECS = {
    "whole": ("", []),
    "identity": ("p", []),
    "bucket": ("bucket(4, id)", []),
    "grown": ("", ["ADD PARTITION FIELD p"]),
    "other": ("p, days(ts)", ["DROP PARTITION FIELD p", "ADD PARTITION FIELD bucket(3, id)"]),
    "void": ("p", ["DROP PARTITION FIELD p"]),
}
VALUES = {
    "p": ["NULL", "''", "'null'", "'a'", "'ab'", "'b c/d'"],
    "q": ["NULL", "0", "1", "2"],
    "ts": ["NULL"] + [f"TIMESTAMP_NTZ'{d}'" for d in overwrite.DAYS],
    "f": ["NULL", "double(0.5)", "double(0.0)", "double('-0.0')", "double('NaN')"],  # -0.0 without quotes is a decimal, which has no such zero
    "n": ["NULL"] + [f"named_struct('a', CAST({a} AS INT), 'b', CAST({b} AS ARRAY<STRING>))" for a in ("NULL", "1", "7") for b in ("NULL", "array()", "array(NULL)", "array('x', NULL)")],
    "m": [f"CAST({m} AS MAP<STRING, INT>)" for m in ("NULL", "map()", "map('k', 1)", "map('k', NULL)", "map('k', 1, 'l', NULL)")],
}
KEYS = [["id"], ["id"], ["id", "p"], ["ts", "id", "q"], ["id", "f"]]


def rest(rnd):
    """Values for all columns but id."""
    return {c: rnd.choice(VALUES[c]) for c in COLUMNS[1:]}


def key_of(row, keys):
    """The key of a row as Spark's literals; None where a column is null."""
    if any(row[k] == "NULL" for k in keys):
        return None
    return strict_key(row, keys)


def strict_key(row, keys):
    """The same where null equals null."""
    return tuple(row[k].replace("'-0.0'", "0.0") for k in keys)


class Upsert:
    """One upsert and what it is told."""

    def __init__(self, seed, number, combination):
        self.number, (self.version, self.mode, self.spec) = number, combination
        self.rnd = rnd = random.Random(seed * 10_000 + number)
        self.keys = rnd.choice(KEYS)
        self.nulls = rnd.choice(["error", "match", "insert"])
        self.duplicates = rnd.choice(["within-batch", "error", "first", "last"])
        self.update_all = rnd.random() < 0.15
        self.change = rnd.choice(["none", "promote", "rename", "add"])
        self.batch = rnd.choice([4, 7, 1000])
        self.piped = rnd.random() < 0.5
        self.once = rnd.random() < 0.4 or self.piped and self.duplicates == "error"  # which a stream cannot tell before its end
        self.merge = rnd.choice(["merge-on-read", "copy-on-write"]) if self.version > 1 else "copy-on-write"
        self.kinds = set()  # of deletes that were made
        self.counts = [0, 0, 0, 0]  # rows inserted, updated, unchanged and surplus, by the receipt
        self.snapshots = self.kept = 0  # of the job; rows whose row IDs were held against those of before

    def __str__(self):
        words = [f"v{self.version}", self.mode, self.spec, f"keys {','.join(self.keys)}", f"nulls {self.nulls}", f"duplicates {self.duplicates}"]
        words += ["update all"] * self.update_all + [f"schema {self.change}", f"batches of {self.batch}", "the pipe" if self.piped else "ice-migrate"] + ["at once"] * self.once
        return f"{self.number}: {'; '.join(words)}; deletes {', '.join(sorted(self.kinds)) or 'none'}; rows {self.counts} in {self.snapshots} snapshots"

    def flags(self):
        """Flags of the program that writes."""
        flags = ["--write-mode", "upsert", "--upsert-keys", ",".join(self.keys), "--null-keys", self.nulls, "--on-duplicate-key", self.duplicates]
        flags += ["--delete-mode", self.mode, "--output", "json"]
        return flags + ["--commit", "once"] * self.once + ["--update-all"] * self.update_all + ["--float-keys"] * ("f" in self.keys)

    def twice(self, row, seen):
        """Whether a row's key is among those seen; it is from now on."""
        key = key_of(row, self.keys) if self.nulls != "match" else strict_key(row, self.keys)
        found = key in seen
        if key is not None:
            seen.add(key)
        return found and key is not None


class Bench:
    """Spark, its tables, and the rows that it was given."""

    def __init__(self, bin, folder):
        self.bin, self.folder = bin, folder
        self.spark = engines.start_spark({c: (os.path.join(folder, f"{c}.db"), os.path.join(folder, c)) for c in engines.CATALOGS})
        self.java = engines.Java(self.spark)
        for catalog in engines.CATALOGS:
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.lab")

    def insert(self, table, rows, columns=COLUMNS):
        """One commit of one file a partition, rows in order."""
        text = ", ".join("(" + ", ".join(f"CAST({r[c]} AS {KINDS[c]})" for c in columns) + ")" for r in rows)
        self.spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {text} AS t({', '.join(columns)})")

    def build(self, u, table, name):
        """The destination; returns its rows, those that were deleted later too."""
        rnd, sql = u.rnd, self.spark.sql
        first, steps = SPECS[u.spec]
        names = {c: c for c in COLUMNS if (c, u.change) != ("m", "add")}
        if u.change == "rename":
            names["q"] = "was_q"
        made = 2 if u.version == 23 else u.version
        sql(
            f"CREATE TABLE {table} ({', '.join(f'{n} {KINDS[c]}' for c, n in names.items())}) USING iceberg " + (f"PARTITIONED BY ({first}) " if first else "")
            + f"TBLPROPERTIES ('format-version'='{made}', 'write.distribution-mode'='none', 'write.spark.fanout.enabled'='true', 'write.merge.mode'='{u.merge}', "
            f"'write.delete.mode'='{'copy-on-write' if u.version == 1 else 'merge-on-read'}', 'write.delete.granularity'='{rnd.choice(['file', 'partition'])}')"
        )
        rows, seen, columns = [], set(), list(names)
        for phase, step in enumerate([None] + (steps or [None])):
            if step:
                sql(f"ALTER TABLE {table} {step}")
            if phase == 1:
                change = {"promote": "ALTER COLUMN q TYPE BIGINT", "rename": "RENAME COLUMN was_q TO q", "add": f"ADD COLUMN m {KINDS['m']}"}
                if u.change in change:
                    sql(f"ALTER TABLE {table} {change[u.change]}")
                columns = COLUMNS
            for _ in range(2 - phase % 2):
                batch = []
                for _ in range(10):
                    row = {"id": str(len(rows) + len(batch)), **rest(rnd)}
                    if rnd.random() < 0.06:
                        row["id"] = "NULL"
                    if rows and u.update_all and rnd.random() < 0.2:
                        row.update({k: rnd.choice(rows)[k] for k in u.keys})
                    if "m" not in columns:
                        row["m"] = VALUES["m"][0]
                    if u.update_all or not u.twice(row, seen):
                        batch.append(row)
                rows += batch
                self.insert(table, batch, columns)
            if u.version == 1 or rnd.random() < 0.7:
                self.delete(u, table, rnd.randrange(7))
            if u.version > 1 and rnd.random() < 0.4:
                self.equality(u, name, rows)
        if u.version == 23:
            sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
            if rnd.random() < 0.5:
                u.version = 3
                self.delete(u, table, rnd.randrange(7))
                u.version = 23
        return rows

    def delete(self, u, table, remainder):
        """Spark deletes rows, in the way of the format version."""
        self.spark.sql(f"DELETE FROM {table} WHERE id % 7 = {remainder}")
        u.kinds.add({1: "copies", 3: "vectors"}.get(u.version, "positions"))

    def equality(self, u, name, rows):
        """An equality delete of half of the IDs, in the partition of a data file."""
        table = self.java.load("dst", name)
        files, tasks = [], table.newScan().planFiles().iterator()
        while tasks.hasNext():
            files.append(tasks.next().file())
        if not files:
            return
        file = u.rnd.choice(sorted(files, key=lambda f: (f.specId(), str(f.partition()), f.recordCount())))
        spec = table.specs().get(file.specId())
        keys = [["null" if r["id"] == "NULL" else r["id"]] for r in rows if u.rnd.random() < 0.5]
        made = self.java.equality_delete(table, ["id"], keys or [["0"]], spec, file.partition() if spec.isPartitioned() else None)
        table.newRowDelta().addDeletes(made).commit()
        u.kinds.add("equality")

    def source(self, u, table, rows):
        """Rows to upsert, in two commits; returns those that count, where some have one key."""
        rnd, out, seen = u.rnd, [], set()
        many = rnd.choice([5, 20, 30])
        for n in itertools.count():
            if len(out) == many:
                break
            row = dict(rnd.choice(rows))
            dice = rnd.random()
            if dice < 0.25:
                row = {"id": str(1000 + n), **rest(rnd)}
            elif dice < 0.75:
                columns = COLUMNS[1:] if rnd.random() < 0.2 else [c for c in COLUMNS[1:] if c not in u.keys]
                for column in rnd.sample(columns, rnd.choice([1, 1, 2, len(columns)])):
                    row[column] = rnd.choice(VALUES[column])
            if "f" in u.keys and "0.0" in row["f"]:
                row["f"] = rnd.choice(["double(0.0)", "double('-0.0')"])
            if u.nulls == "error" and key_of(row, u.keys) is None or u.twice(row, seen):
                continue
            out.append(row)
        alone = len(out)
        if u.duplicates in ("first", "last"):
            for row in [dict(rnd.choice(out)) for _ in range(5)]:
                row.update({c: v for c, v in rest(rnd).items() if c not in u.keys})
                out.append(row)
            rnd.shuffle(out)
        self.spark.sql(f"CREATE TABLE {table} ({TABLE}) USING iceberg TBLPROPERTIES ('write.distribution-mode'='none')")
        half = rnd.randrange(1, len(out)) if len(out) > 1 else 1
        for part in (out[:half], out[half:]):
            if part:
                self.insert(table, part)
        if len(out) == alone:
            return out, out
        chosen, seen = [], set()
        for row in out if u.duplicates == "first" else out[::-1]:
            if not u.twice(row, seen):
                chosen.append(row)
        return out, chosen

    def rows(self, u, table):
        """Rows by key: lists of (JSON, row ID, sequence number of its last change)."""
        lineage = "_row_id, _last_updated_sequence_number" if u.version >= 3 and table.startswith("dst.") else "NULL, NULL"
        columns = ", ".join(COLUMNS)
        text = f"to_json(struct({columns}), map('ignoreNullFields', 'false'))"
        found = collections.defaultdict(list)
        for r in self.spark.sql(f"SELECT {text}, {lineage}, {', '.join(u.keys)} FROM {table}").collect():
            found[tuple(read_keys.part(v) for v in r[3:])].append((r[0], r[1], r[2]))
        return found

    def trial(self, u):
        """What is wrong with an upsert."""
        mine, theirs, source, chosen = (f"{n}_{u.number}" for n in ("mine", "theirs", "source", "chosen"))
        rows = self.build(u, f"dst.lab.{mine}", mine)
        given, winners = self.source(u, f"src.lab.{source}", rows)
        if winners is given:
            chosen = source
        else:
            self.spark.sql(f"CREATE TABLE src.lab.{chosen} ({TABLE}) USING iceberg")
            self.insert(f"src.lab.{chosen}", winners)
        location = engines.open_catalog(os.path.join(self.folder, "dst.db"), "dst").load_table(f"lab.{mine}").metadata_location
        self.spark.sql(f"CALL dst.system.register_table(table => 'lab.{theirs}', metadata_file => '{location}')")
        before, new = self.rows(u, f"dst.lab.{mine}"), self.rows(u, f"src.lab.{chosen}")
        done = overwrite.icepipe(self.bin, self.folder, source, mine, u.piped, u.flags(), u.batch)
        if done.returncode:
            return [f"icepipe: {done.stderr}"]
        same = "<=>" if u.nulls == "match" else "="
        on = " AND ".join(f"t.{k} {same} s.{k}" for k in u.keys)
        self.spark.sql(f"MERGE INTO dst.lab.{theirs} t USING src.lab.{chosen} s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
        after, want = self.rows(u, f"dst.lab.{mine}"), self.rows(u, f"dst.lab.{theirs}")
        wrong = differ("Spark reads", texts(after), texts(want))
        read = overwrite.read_by_pyiceberg(self.folder, mine)
        if read is not None:
            wrong += differ("PyIceberg reads", read, overwrite.spark_rows(self.spark, f"SELECT * FROM dst.lab.{theirs}"))
        wrong += counts(u, json.loads(done.stdout), given, winners, before, new)
        table = engines.open_catalog(os.path.join(self.folder, "dst.db"), "dst").load_table(f"lab.{mine}")
        found = read_keys.look(table, u.keys, u.nulls == "match", lambda: (self.spark, f"dst.lab.{mine}"))
        wrong += found["wrong"]
        u.snapshots = found["snapshots"]
        if u.once and u.snapshots > 1:
            wrong.append(f"{u.snapshots} snapshots of a job that lands at once")
        if u.version >= 3:
            wrong += self.lineage(u, mine, table, before, after, new, given is not winners)
        return wrong

    def lineage(self, u, mine, table, before, after, new, doubled):
        """Row IDs are unique at each snapshot, and stay with their rows; a row that did not change has not changed."""
        wrong = []
        selects = [f"SELECT {s.snapshot_id} AS s, _row_id FROM dst.lab.{mine} VERSION AS OF {s.snapshot_id}" for s in read_keys.job_snapshots(table)]
        if selects:
            for r in self.spark.sql(f"SELECT s, count(*) AS n, count(DISTINCT _row_id) AS ids FROM ({' UNION ALL '.join(selects)}) GROUP BY s").collect():
                if r.n != r.ids:
                    wrong.append(f"snapshot {r.s}: {r.ids} row IDs of {r.n} rows")
        for key, old in before.items():
            if None in key and u.nulls == "insert":
                continue
            now = after.get(key, [])
            ids = {i: (text, sequence) for text, i, sequence in now}
            for text, i, sequence in old:
                if i is None:
                    continue
                u.kept += 1
                if i not in ids:
                    wrong.append(f"key {key}: row ID {i} is gone, there are {sorted(ids, key=str)}")
                elif not doubled and ids[i][0] == text and ids[i][1] != sequence:
                    wrong.append(f"key {key}: sequence number {sequence} became {ids[i][1]}, and the row is as it was")
                elif ids[i][0] != text and (ids[i][1] <= sequence or key not in new):
                    wrong.append(f"key {key}: {text} of sequence number {sequence} became {ids[i]}")
        return wrong[:5]


def texts(found):
    """All rows, sorted."""
    return sorted(text for rows in found.values() for text, _, _ in rows)


def differ(what, got, want):
    """How rows differ, as a list of one text, or of none."""
    if got == want:
        return []
    missing, more = collections.Counter(want) - collections.Counter(got), collections.Counter(got) - collections.Counter(want)
    return [f"{what} {len(got)} rows, want {len(want)}; missing {list(missing.elements())[:3]}, too many {list(more.elements())[:3]}"]


def counts(u, receipt, given, winners, before, new):
    """What the receipt has wrong. Which rows of one key are surplus goes by batch with "last"."""
    got = u.counts = [receipt.get(f"rows_{n}", 0) for n in ("inserted", "updated", "unchanged", "surplus")]
    if receipt["rows_moved"] != len(given) or not receipt["complete"]:
        return [f"the receipt has moved {receipt['rows_moved']} of {len(given)} rows"]
    if u.duplicates == "last" and winners is not given:
        return [] if sum(got) == len(given) or u.update_all else [f"the receipt's {got} do not add up to {len(given)}"]
    want = [0, 0, 0, len(given) - len(winners)]
    for key, rows in new.items():
        for text, _, _ in rows:
            there = [] if None in key and u.nulls == "insert" else before.get(key, [])
            want[0] += not there
            want[1] += sum(old[0] != text for old in there)
            want[2] += sum(old[0] == text for old in there)
    return [] if got == want else [f"the receipt says inserted, updated, unchanged, surplus {got}, want {want}"]


def combinations(seed, count):
    """Combinations of format version, delete mode and spec, all of them once before one comes again."""
    every = [c for c in itertools.product(VERSIONS, MODES, SPECS) if c[:2] != (1, "position")]
    rnd, out = random.Random(seed), []
    while len(out) < count:
        out += rnd.sample(every, len(every))
    return out[:count]


def main():
    if len(sys.argv) < 5:
        raise SystemExit(__doc__.splitlines()[0])
    bin, folder, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    bench = Bench(bin, folder)
    failed, counts, snapshots, kept, kinds = [], [0, 0, 0, 0], 0, 0, collections.Counter()
    for number, combination in enumerate(combinations(seed, count)):
        if len(sys.argv) > 5 and str(number) not in sys.argv[5:]:
            continue
        u = Upsert(seed, number, combination)
        try:
            wrong = bench.trial(u)
        except Exception:
            wrong = [traceback.format_exc()]
        print(f"{'wrong' if wrong else 'right'} {u}", flush=True)
        for text in wrong:
            print(f"    {text}", flush=True)
        failed += [str(number)] * bool(wrong)
        counts = [a + b for a, b in zip(counts, u.counts)]
        snapshots, kept = snapshots + u.snapshots, kept + u.kept
        kinds.update(u.kinds)
    met = dict(zip(("inserted", "updated", "unchanged", "surplus"), counts), snapshots=snapshots, kept=kept, **{k: kinds[k] for k in KINDS_OF_DELETES})
    print(f"{count} upserts of seed {seed}: {met}; wrong: {', '.join(failed) or 'none'}")
    if len(sys.argv) == 5 and 0 in met.values():
        failed.append("not everything was met")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
