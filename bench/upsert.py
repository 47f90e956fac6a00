"""Upserts by ice-migrate and by PyIceberg, one after another, and prints the ratios.

usage: upsert.py DEPS BIN [--rows N] [--work DIR]

DEPS is what testdata/interop/setup.sh made, and keeps the rows; BIN holds ice-migrate. Of N rows (10M) a tenth is
changed, in batches of 50,000 with keys that are scattered over the whole table; then as many changes go into twice
as many rows. PyIceberg makes the first four batches, which take it minutes, and a tenth of the rows is changed
by both too: what tells is the changes a second. Its seconds are without start-up and without making its table,
those of ice-migrate are of the whole process; both peaks are of whole processes.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

from measure import measured
from tables import HERE, Tables


class Upserts:
    """The rows, the programs and the results."""

    def __init__(self, args):
        self.python, self.bin, self.work = os.path.join(args.deps, "venv", "bin", "python"), args.bin, args.work
        self.source = Tables(args.deps).orders(args.rows)
        self.results = {}

    def script(self, name, *args):
        return [self.python, os.path.join(HERE, name), self.source, self.work, *map(str, args)]

    def note(self, who, size, done, seconds, peak, cpu):
        self.results[who, *size] = done, seconds, peak, cpu
        print(f"{who} {done:,} of {size[1]:,} into {size[0]:,}: {seconds:.1f} s", file=sys.stderr, flush=True)

    def pyiceberg(self, rows, changes, batch_rows, most):
        out, cost = measured(self.script("peer_pyiceberg_upsert.py", rows, changes, batch_rows, most))
        told = json.loads(out.splitlines()[-1])
        if told["inserted"] + told["updated"] != told["changes"]:
            raise SystemExit(f"PyIceberg: {told}")
        self.note("PyIceberg", (rows, changes, batch_rows), told["changes"], told["seconds"], cost.peak, None)

    def ice_migrate(self, rows, changes, batch_rows):
        subprocess.run(self.script("make_upsert.py", rows, changes), check=True)
        command = [os.path.join(self.bin, "ice-migrate"), "--write-mode", "upsert", "--upsert-keys", "order_id",
                   "--batch-rows", str(batch_rows), "--output", "json", "--checkpoint", os.path.join(self.work, "checkpoint.json")]
        for side, namespace, name in (("src", "sales", "changes"), ("dst", "warehouse", "orders")):
            command += [f"--{side}-catalog", "sqlite", f"--{side}-catalog-name", "default",
                        f"--{side}-db-path", f"{self.work}/{side}.db", f"--{side}-warehouse", f"{self.work}/{side}_wh",
                        f"--{side}-namespace", namespace, f"--{side}-table", name]
        out, cost = measured(command)
        receipt = json.loads(out)
        if (receipt["rows_inserted"], receipt["rows_updated"]) != (changes // 2, changes // 2):
            raise SystemExit(f"ice-migrate: {receipt}")
        self.note("ice-migrate", (rows, changes, batch_rows), changes, cost.seconds, cost.peak, cost.cpu)

    def report(self):
        """Prints the tables for docs/PERFORMANCE.md."""
        print(f"{os.cpu_count()} cores\n")
        print("| | rows | changes | of a commit | made | seconds | changes/s | CPU seconds | peak memory |\n|---|---|---|---|---|---|---|---|---|")
        for (who, rows, changes, batch_rows), (done, seconds, peak, cpu) in self.results.items():
            print(f"| {who} | {rows:,} | {changes:,} | {batch_rows:,} | {done:,} | {seconds:.1f} | {done / seconds:,.0f} "
                  f"| {f'{cpu:.1f}' if cpu else ''} | {peak:.0f} MB |")
        print("\n| ice-migrate against PyIceberg | times the changes/s | of the memory |\n|---|---|---|")
        for (who, *size), (done, seconds, peak, _) in self.results.items():
            other = self.results.get(("PyIceberg", *size))
            if who == "ice-migrate" and other:
                rate = (done / seconds) / (other[0] / other[1])
                print(f"| {size[1]:,} into {size[0]:,}, {size[2]:,} a commit | {rate:.1f} | {peak / other[2]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deps")
    parser.add_argument("bin")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--work", default=None, help="folder for destinations, made anew (default: beside the rows)")
    args = parser.parse_args()
    args.deps, args.bin = os.path.abspath(args.deps), os.path.abspath(args.bin)
    args.work = os.path.abspath(args.work or os.path.join(args.deps, "bench_upsert"))
    bench, n = Upserts(args), args.rows
    for rows in (n // 10, n):
        bench.pyiceberg(rows, n // 10, 50_000, 4)
        bench.ice_migrate(rows, n // 10, 50_000)
    bench.ice_migrate(2 * n, n // 10, 50_000)
    shutil.rmtree(args.work, ignore_errors=True)
    bench.report()
    once, twice = (bench.results["ice-migrate", rows, n // 10, 50_000] for rows in (n, 2 * n))
    print(f"\nWith twice the rows: {twice[1] / once[1]:.2f} times the seconds, {twice[3] / once[3]:.2f} times the CPU.")


main()
