"""What is measured: each scenario is one job, or variants of one, with the programs that can do it."""
from dataclasses import dataclass, replace

from job import Job

PROMOTED = {"quantity": "long", "price": "decimal(14, 2)"}
FILTER = {"column": "customer_id", "below": 450_000}  # customer_id is random from 0 to 500,000


@dataclass
class Scenario:
    name: str
    about: str
    base: str          # the run that the others are held against: the first of that name
    runs: list
    grows: bool = False    # it is told how much longer late commits take than early ones


class Scenarios:
    """Makes the scenarios for so many rows; a scenario's tables are made when it is asked for."""

    def __init__(self, tables, programs, out, rows):
        self.tables, self.programs, self.out, self.rows = tables, programs, out, rows

    @classmethod
    def names(cls):
        """All of them, in the order in which they are run."""
        return [n for n, f in vars(cls).items() if not n.startswith("_") and n not in ("names", "make") and callable(f)]

    def make(self, name):
        return getattr(self, name)()

    def _orders(self, source, **more):
        return Job(source, "sales.orders", self.out, {"order_total": "total_amount"}, fill={"channel": "string"}, **more)

    def _scenario(self, name, about, runs, base="ice-migrate --copy never", grows=False):
        return Scenario(name, about, base, list(runs), grows)

    def append(self):
        p, job = self.programs, self._orders(self.tables.orders(self.rows), promote=PROMOTED)
        small = replace(job, batch_rows=50_000)
        return self._scenario("append", "12 columns, of which one is renamed and two are promoted, and one more is filled with null",
                              [*p.all(job), p.migrate(small, "never"), p.pyiceberg(small)])

    def rename(self):
        job = self._orders(self.tables.orders(self.rows))
        return self._scenario("rename", "the same, and no column is promoted", self.programs.all(job))

    def partition(self):
        job = self._orders(self.tables.orders(self.rows), promote=PROMOTED, partition="region")
        return self._scenario("partition", "the same as append into a table that is partitioned by region, of which there are five, "
                              "and by which the source is not in order", self.programs.all(job, "cp"))

    def partitioned(self):
        job = self._orders(self.tables.orders(self.rows, "partitioned"), promote=PROMOTED, partition="region")
        return self._scenario("partitioned", "the same from a source that is partitioned in the same way", self.programs.all(job))

    def nested(self):
        job = Job(self.tables.shape("nested", self.rows // 10), "shapes.nested", self.out, {"customer": "buyer"}, {"total": "long"})
        return self._scenario("nested", "a struct with a struct in it, a list of structs, a list, a map; one column is renamed and one promoted",
                              self.programs.all(job))

    def filter(self):
        p, all_rows = self.programs, self._orders(self.tables.orders(self.rows), promote=PROMOTED)
        some = replace(all_rows, filter=FILTER)
        return self._scenario("filter", "the same as append of nine tenths of the rows, by a column whose values are random",
                              [*p.all(some, "cp"), p.migrate(all_rows, "never", note=", no filter"), p.migrate(all_rows, "auto", note=", no filter")])

    def deletes(self):
        p = self.programs
        job = self._orders(self.tables.orders(self.rows, "deletes"), promote=PROMOTED)
        whole = self._orders(self.tables.orders(self.rows), promote=PROMOTED)
        return self._scenario("deletes", "the same as append from a table of which position deletes take out a tenth, scattered; "
                              "DuckDB without its extension does not know them",
                              [*p.all(job, "duckdb", "cp"), p.migrate(whole, "never", note=", no deletes"), p.migrate(whole, "auto", note=", no deletes")])

    def commits(self):
        p, rows = self.programs, self.rows // 10
        commits = min(2000, max(100, self.rows // 1000))
        job = self._orders(self.tables.orders(rows), promote=PROMOTED, batch_rows=rows // commits)
        first = replace(job, most=commits // 10)
        return self._scenario("commits", f"{commits:,} commits: what counts is how much longer the last tenth of them takes than the first; "
                              "the others make the first tenth alone",
                              [p.migrate(job, "never"), p.pyiceberg(first), p.iceberg_go(first)], grows=True)

    def big(self):
        megabytes = min(1000, max(20, self.rows // 10_000))
        job = Job(self.tables.big(megabytes), "bench.big", self.out, {"note": "remark"})
        return self._scenario("big", f"one file of {megabytes:,} MB with row groups of 128 MB; one column is renamed", self.programs.all(job))

    def wide(self):
        job = Job(self.tables.shape("wide", self.rows // 50), "shapes.wide", self.out, {"c1": "first"}, {"c2": "long"})
        return self._scenario("wide", "300 columns, of which one is renamed and one promoted", self.programs.all(job))

    def long(self):
        job = Job(self.tables.shape("long", max(52, self.rows // 20_000)), "shapes.long", self.out, {"body": "text"})
        return self._scenario("long", "rows of 1 MB, half text and half bytes that do not compress; one column is renamed", self.programs.all(job))

    def verify(self):
        job = self._orders(self.tables.orders(self.rows), promote=PROMOTED)
        return self._scenario("verify", "verification of what append moved, against a scan of both tables",
                              self.programs.verification(job), "ice-scan > /dev/null of both tables")
