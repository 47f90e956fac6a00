"""What is promised of the ratios and of memory, held against runs."""
from report import head, row, runs_of

NEVER, AUTO, PIPE, PYICEBERG, DUCKDB = ("ice-migrate --copy never", "ice-migrate --copy auto", "ice-scan \\| ice-reconcile \\| ice-write",
                                        "PyIceberg", "DuckDB, no catalog")
MILLION, SMALL, AUTOMATIC, ALL = "1,000,000", "50,000", "auto", "all"
MEMORY_MB = 300


class Runs:
    """The runs of a scenario by name; what is asked of one that was not run is None."""

    def __init__(self, records, scenario):
        self.runs = {(r["run"], r["commit"]): r for r in runs_of(records, scenario)}

    def rate(self, name, commit, other, others_commit):
        """How many times the rows a second of another."""
        one, two = self.runs.get((name, commit)), self.runs.get((other, others_commit))
        return one and two and (one["rows"] / one["seconds"]) / (two["rows"] / two["seconds"])

    def more(self, key, name, other):
        """How many times as much of something, both at 1M rows a commit."""
        one, two = self.runs.get((name, MILLION)), self.runs.get((other, MILLION))
        return one and two and one[key] / two[key]

    def memory(self):
        """The largest peak of ice-migrate."""
        return max((r["peak"] for r in self.runs.values() if r["run"].startswith("ice-migrate")), default=None)


def held(records):
    """Each promise: what is promised, "≥" or "≤", the bound, what was seen or None, and how it is told."""
    append, rename, filter, deletes = (Runs(records, name) for name in ("append", "rename", "filter", "deletes"))
    times = "{:.2f} times"
    yield "append: rows/s of never against PyIceberg, 1M rows a commit", "≥", 1.6, append.rate(NEVER, MILLION, PYICEBERG, MILLION), times
    yield "append: rows/s of never against PyIceberg, 50,000 rows a commit", "≥", 5, append.rate(NEVER, SMALL, PYICEBERG, SMALL), times
    yield "append: rows/s of never against DuckDB", "≥", 1, append.rate(NEVER, MILLION, DUCKDB, ALL), times
    yield "append: rows/s of auto, 2 of 12 columns promoted, against PyIceberg, 1M", "≥", 6, append.rate(AUTO, AUTOMATIC, PYICEBERG, MILLION), times
    yield "rename: rows/s of auto against PyIceberg, 1M", "≥", 20, rename.rate(AUTO, AUTOMATIC, PYICEBERG, MILLION), times
    yield "filter: CPU of never that keeps 90 % against all rows", "≤", 1.2, filter.more("cpu", NEVER, NEVER + ", no filter"), times
    yield "deletes: CPU of never without the 10 % that are deleted against all rows", "≤", 1.2, deletes.more("cpu", NEVER, NEVER + ", no deletes"), times
    yield "append: seconds of the pipe against never", "≤", 1.5, append.more("seconds", PIPE, NEVER), times
    yield "append: memory of ice-migrate", "≤", MEMORY_MB, append.memory(), "{:.0f} MB"
    yield "rename: memory of ice-migrate", "≤", MEMORY_MB, rename.memory(), "{:.0f} MB"


def table(records):
    """Prints which promises hold; returns whether all do that are of scenarios that were run."""
    ran = {r["scenario"] for r in records}
    asked = [h for h in held(records) if h[0].split(":")[0] in ran]
    if not asked:
        return True
    print("\n### What is promised\n")
    head("", "promised", "seen", "holds")
    kept = True
    for what, way, bound, seen, form in asked:
        holds = seen is not None and (seen >= bound if way == "≥" else seen <= bound)
        kept = kept and holds
        row(what, f"{way} {form.format(bound)}", "not run" if seen is None else form.format(seen), "yes" if holds else "**no**")
    return kept
