"""Upserts for torture.py: the rows of its second source, lab.changes, a destination that holds some of their keys,
and what must have become of it after each batch. A destination's property torture.mode says that it is one."""

import collections
import glob
import json
import os

import duckdb
import pyarrow as pa
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent, ManifestEntryStatus
from pyiceberg.table.puffin import PuffinFile

import engines
from table_files import entries, listed, live_files, manifests, read_whole

MODE = "torture.mode"
MARK = "iceberg-ops.migration-job"
COUNTS = ("inserted", "updated", "unchanged", "surplus")


def row(i, part, text, extra=None):
    return {"id": i, "part": part, "text": text, "extra": extra}


def before():
    """The rows of the destination, in two files of each partition."""
    return [row(i, "ab"[i % 2], f"old {i}") for i in range(10)]


# Each batch adds rows, puts some in the place of others, in another partition too, and leaves some as they are. The
# later ones come back to keys of the former.
BATCHES = [
    [row(0, "a", "old 0"), row(20, "a", "new 20", 400), row(1, "b", "changed 1", 1), row(6, "b", "moved 6", 36)],
    [row(21, "b", "new 21", 441), row(1, "b", "changed 1", 1), row(2, "a", "changed 2"), row(20, "a", "again 20", 400)],
    [row(22, "a", "new 22", 1), row(5, "b", "old 5"), row(6, "a", "back 6"), row(8, None, "changed 8", 64)],
]
ROWS = sum(map(len, BATCHES))


def steps(mode):
    """How many batches are there after each commit."""
    return [len(BATCHES)] if mode.endswith("once") else list(range(1, len(BATCHES) + 1))


def after(commits, mode):
    """The rows by their keys when so many commits are there, and what became of those of each."""
    wins, once = mode.startswith("first"), mode.endswith("once")
    batches = ([0] + steps(mode))[commits]
    rows, met, told = {r["id"]: r for r in before()}, set(), []
    for batch in BATCHES[:batches]:
        counts = dict.fromkeys(COUNTS, 0)
        for r in batch:
            if wins and r["id"] in met:
                counts["surplus"] += 1
            elif once and r["id"] in met and rows[r["id"]] != r:
                counts["surplus"] += 1  # the row of a former batch, which never lands
            elif r["id"] not in rows:
                counts["inserted"] += 1
            else:
                counts["unchanged" if rows[r["id"]] == r else "updated"] += 1
            if not wins or r["id"] not in met:
                rows[r["id"]] = r
            met.add(r["id"])
        told.append(counts)
    if once:
        told = [{k: sum(t[k] for t in told) for k in COUNTS}]
    return rows, told


def text(rows):
    """Rows as sorted text; before the job there is no column extra."""
    return sorted(json.dumps({"extra": None, **r}, sort_keys=True) for r in rows)


def fill(table):
    """Puts the rows of before into a destination, in two commits."""
    rows = [{k: v for k, v in r.items() if k != "extra"} for r in before()]
    for part in (rows[:5], rows[5:]):
        table.append(pa.Table.from_pylist(part, schema=table.schema().as_arrow()))


def job_snapshots(table):
    """The snapshots of the history with a job's marks, oldest first, and the one before them."""
    chain, at = [], table.current_snapshot()
    while at is not None:
        chain.insert(0, at)
        at = table.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id else None
    ours = [s for s in chain if MARK in s.summary.additional_properties]
    return ours, chain[len(chain) - len(ours) - 1]


def state(table, mode):
    """How many commits are there, and what is wrong with the rows."""
    batches = len(job_snapshots(table)[0])
    got, want = text(table.scan().to_arrow().to_pylist()), text(after(batches, mode)[0].values())
    return batches, "" if got == want else f"{batches} snapshots of the job, and the rows are {got}, want {want}"


def check(folder, table, mode):
    """What is wrong with a destination that must be complete."""
    wrong = []

    def want(what, got, expected):
        if got != expected:
            wrong.append(f"{what}: {got}, want {expected}")

    ours, first = job_snapshots(table)
    commits = len(steps(mode))
    want("snapshots", (len(ours), len(table.snapshots())), (commits, commits + 2))
    want("columns", [f.name for f in table.schema().fields], ["id", "text", "part", "extra"])
    told = after(commits, mode)[1]
    jobs, end, ids = set(), None, {}
    for n, snapshot in enumerate([first] + ours):
        rows = text(after(n, mode)[0].values())
        want(f"rows of snapshot {n} read by PyIceberg", text(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()), rows)
        live, problems = files(table, snapshot)
        wrong += problems
        if n == 0:
            continue
        read = list(by_duckdb(live))
        want(f"rows of snapshot {n} read by DuckDB", text({k: r[k] for k in ("id", "part", "text", "extra")} for r in read), rows)
        if table.format_version >= 3:
            now = {r["id"]: r["row_id"] for r in read}
            want(f"row IDs of snapshot {n}", [i for i, times in collections.Counter(now.values()).items() if times > 1 or i is None or i >= table.metadata.next_row_id], [])
            want(f"row IDs that changed in snapshot {n}", {k: (v, now[k]) for k, v in ids.items() if now[k] != v}, {})
            ids = now
        wrong += marks(n - 1, snapshot, told[n - 1], end, len(rows))
        jobs.add(snapshot.summary.additional_properties[MARK])
        end = snapshot.summary.additional_properties.get("icepipe.cursor")
    want("jobs", len(jobs), 1)
    return wrong + checkpoint(folder, table, first, told)


def marks(n, snapshot, told, end, rows):
    """What is wrong with what a snapshot says of itself."""
    summary = snapshot.summary.additional_properties
    got = {k: summary.get(f"icepipe.rows-{k}") for k in COUNTS}
    got |= {"batch": summary.get("iceberg-ops.migration-batch"), "source rows": summary.get("icepipe.source-rows")}
    expected = {k: str(v) for k, v in told.items()} | {"batch": str(n), "source rows": str(sum(told.values()))}
    if end is not None:
        got, expected = got | {"from": summary.get("icepipe.cursor-from")}, expected | {"from": end}
    total = int(summary.get("total-records")) - int(summary.get("total-position-deletes"))
    wrong = [f"snapshot {n} says of {k} {got[k]}, want {expected[k]}" for k in got if got[k] != expected[k]]
    return wrong + ([] if total == rows else [f"snapshot {n} says that it has {total} rows, and it has {rows}"])


def files(table, snapshot):
    """What a snapshot names: [live data files with first row IDs, live delete files]; and what of it is not there."""
    wrong, data, deletes = [], {}, {}

    def there(path, size=None):
        path = engines.local_path(path)
        if not os.path.exists(path):
            wrong.append(f"snapshot {snapshot.snapshot_id} names {path}, which is not there")
        elif size is not None and os.path.getsize(path) != size:
            wrong.append(f"{path} has {os.path.getsize(path)} bytes, {size} are named")

    there(snapshot.manifest_list)
    for manifest, next_row_id in manifests(table, snapshot):
        there(manifest.manifest_path, manifest.manifest_length)
        for file, row_id in live_files(table, manifest):
            there(file.file_path, file.file_size_in_bytes)
            if manifest.content == ManifestContent.DELETES:
                deletes[file.file_path] = file
                continue
            if file.file_path in data:
                wrong.append(f"{file.file_path} is in snapshot {snapshot.snapshot_id} twice")
            if row_id is None and next_row_id is not None:
                row_id, next_row_id = next_row_id, next_row_id + file.record_count
            data[file.file_path] = row_id
    return (data, deletes), wrong


def by_duckdb(live):
    """The live rows of data files, with their row IDs; positions in Puffin files are read by PyIceberg."""
    data, deletes = live
    gone = collections.defaultdict(set)
    for path, file in deletes.items():
        if file.content != DataFileContent.POSITION_DELETES:
            raise ValueError(f"{path} is no file of position deletes")
        if file.file_format == FileFormat.PUFFIN:
            with open(engines.local_path(path), "rb") as puffin:
                for of, positions in PuffinFile(puffin.read()).to_vector().items():
                    gone[of] |= set(positions.to_pylist())
        else:
            query = "SELECT file_path, pos FROM read_parquet($path, hive_partitioning=false)"
            for of, position in duckdb.execute(query, {"path": engines.local_path(path)}).fetchall():
                gone[of].add(position)
    for path, first in data.items():
        query = "SELECT * FROM read_parquet($path, hive_partitioning=false, file_row_number=true)"
        for r in duckdb.sql(query, params={"path": engines.local_path(path)}).to_arrow_table().to_pylist():
            at = r.pop("file_row_number")
            if at in gone[path]:
                continue
            own = r.pop("_row_id", None)
            r["row_id"] = own if own is not None or first is None else first + at
            yield {"extra": None, **r}


def checkpoint(folder, table, first, told):
    """What is wrong with the checkpoint of a complete job."""
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as document:
        note = json.load(document)
    got = {
        "state": note["state"], "batches": note["batches"], "last": note.get("last_snapshot"), "pending": note.get("pending"),
        "before": note["dest_snapshot_before"], "moved": note["totals"]["rows_moved"], "rejected": note["totals"].get("rows_rejected", 0),
    } | {k: note["totals"].get(f"rows_{k}", 0) for k in COUNTS}  # fmt: skip
    expected = {
        "state": "complete", "batches": len(told), "last": str(table.current_snapshot().snapshot_id), "pending": None,
        "before": str(first.snapshot_id), "moved": ROWS, "rejected": 0,
    } | {k: sum(t[k] for t in told) for k in COUNTS}  # fmt: skip
    return [f"checkpoint: {k} is {got[k]}, want {expected[k]}" for k in got if got[k] != expected[k]]


def orphans(table):
    """The files below a table's folder that nothing names, once ice-migrate clean was there, but for those of which
    nothing tells whose they are: metadata files, manifests and lists that are not whole, lists of nothing (whose first
    block was not written), and manifests that add no file where no whole list names them."""
    named = {engines.local_path(e.metadata_file) for e in table.metadata.metadata_log} | {engines.local_path(table.metadata_location)}
    for snapshot in table.snapshots():
        named.add(engines.local_path(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            named.add(engines.local_path(manifest.manifest_path))
            named |= {engines.local_path(e.data_file.file_path) for e in manifest.fetch_manifest_entry(table.io, discard_deleted=False)}
    found = glob.glob(os.path.join(engines.local_path(table.location()), "**"), recursive=True, include_hidden=True)
    left = [p for p in found if os.path.isfile(p) and p not in named and not p.endswith(".metadata.json")]
    lists = {p: read_whole(listed, table.io, p) for p in left if os.path.basename(p).startswith("snap-")}
    told = {engines.local_path(m.manifest_path) for names in lists.values() for m in names or []}

    def ours(path):
        """Whether a file says whose it is."""
        if not path.endswith(".avro"):
            return True
        if path in lists:
            return bool(lists[path])
        found = read_whole(entries, table.io, path)
        return found is not None and (path in told or any(e.status == ManifestEntryStatus.ADDED for e in found))

    return [f"{p} is named by nothing" for p in left if ours(p)]
