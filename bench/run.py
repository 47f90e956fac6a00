"""Runs the benchmark's job by ice-migrate and by the others, one after another, and prints the ratios.

usage: run.py DEPS BIN [--rows N] [--only NAME ...] [--work DIR]

DEPS is what testdata/interop/setup.sh made, and keeps the source; BIN holds ice-migrate. Seconds, memory and
CPU are those of whole processes, start-up included; what the others say that they took without it is told
beside. This script imports nothing large: a child
begins with the peak memory of its parent. On a machine that has other work the CPU seconds tell more
than the seconds.
"""
import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def measured(command):
    """Runs a command; returns its output, seconds, peak of resident memory in MB, and seconds of CPU."""
    os.sync()
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return out, time.monotonic() - began, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def orders(python, deps, rows):
    """The folder of sales.orders with so many rows below deps, made unless it is there."""
    folder = os.path.join(deps, f"orders_{rows}")
    if not os.path.exists(os.path.join(folder, "made")):
        subprocess.run([python, os.path.join(HERE, "make_orders.py"), folder, "--rows", str(rows)], check=True)
        open(os.path.join(folder, "made"), "w").close()
    return folder


def disk(folder):
    """MB of Parquet below a folder."""
    sizes = (os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(folder) for f in files if f.endswith(".parquet"))
    return sum(sizes) / 2**20


class Bench:
    """The source, the programs and the results."""

    def __init__(self, args):
        self.python = os.path.join(args.deps, "venv", "bin", "python")
        self.rows, self.bin, self.work = args.rows, args.bin, args.work
        self.source = orders(self.python, args.deps, args.rows)

    def script(self, name, *args):
        return [self.python, os.path.join(HERE, name), self.source, self.work, *map(str, args)]

    def peer(self, name, *args):
        """Runs another's script."""
        out, seconds, peak, cpu = measured(self.script(name, *args))
        told = json.loads(out.splitlines()[-1])
        print(f"{name}: {told['seconds']:.1f} of {seconds:.1f} s without start-up", file=sys.stderr)
        return told["rows"], seconds, peak, cpu

    def ice_migrate(self, batch_rows, copy="never", *destination):
        """Runs ice-migrate over a new destination: seconds are those of the process."""
        subprocess.run(self.script("make_destination.py", *destination), check=True)
        command = [os.path.join(self.bin, "ice-migrate"), "--batch-rows", str(batch_rows), "--output", "json", "--copy", copy,
                   "--column-mapping", "order_total:total_amount", "--on-missing-in-source", "null",
                   "--checkpoint", os.path.join(self.work, "checkpoint.json")]
        for side, folder, namespace in (("src", self.source, "sales"), ("dst", self.work, "warehouse")):
            command += [f"--{side}-catalog", "sqlite", f"--{side}-catalog-name", "default",
                        f"--{side}-db-path", f"{folder}/{side}.db", f"--{side}-warehouse", f"{folder}/{side}_wh",
                        f"--{side}-namespace", namespace, f"--{side}-table", "orders"]
        out, seconds, peak, cpu = measured(command)
        receipt = json.loads(out)
        if not receipt["complete"]:
            raise SystemExit(f"ice-migrate did not complete: {out}")
        return receipt["rows_moved"], seconds, peak, cpu

    def verified(self):
        """Verifies what ice-migrate moved by partition_hash, against a scan of both tables."""
        def places(prefixes):
            out = []
            for prefix, folder, side, namespace in prefixes:
                out += [f"--{prefix}catalog", "sqlite", f"--{prefix}catalog-name", "default",
                        f"--{prefix}db-path", f"{folder}/{side}.db", f"--{prefix}warehouse", f"{folder}/{side}_wh",
                        f"--{prefix}namespace", namespace, f"--{prefix}table", "orders"]
            return out

        source, dest = (self.source, "src", "sales"), (self.work, "dst", "warehouse")
        scans = [os.path.join(self.bin, "ice-scan") + " " + " ".join(places([("", *t)])) + " > /dev/null" for t in (source, dest)]
        _, seconds, peak, cpu = measured(["sh", "-c", " && ".join(scans)])
        yield "ice-scan > /dev/null of both tables", seconds, peak, cpu
        for method in ("partition_hash", "diff"):
            _, seconds, peak, cpu = measured([os.path.join(self.bin, "ice-verify"), "--method", method, "-q",
                                              "--checkpoint", os.path.join(self.work, "checkpoint.json")])
            yield f"ice-verify --method {method}", seconds, peak, cpu

    def runs(self):
        """(name, rows a commit, the call) of each run."""
        for batch_rows in (50_000, 1_000_000):
            yield "ice-migrate", batch_rows, lambda n=batch_rows: self.ice_migrate(n)
            yield "PyIceberg", batch_rows, lambda n=batch_rows: self.peer("peer_pyiceberg.py", n)
        yield "DuckDB", None, lambda: self.peer("peer_duckdb.py")
        yield "ice-migrate --copy never", "auto", lambda: self.ice_migrate("auto")
        yield "ice-migrate, copied, 2 of 12 promoted", "auto", lambda: self.ice_migrate("auto", "auto")
        yield "ice-migrate, copied, renamed only", "auto", lambda: self.ice_migrate("auto", "require", "renamed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deps")
    parser.add_argument("bin")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="+", help="run these alone: ice-migrate, PyIceberg, DuckDB, ice-verify")
    parser.add_argument("--work", default=None, help="folder for destinations, made anew (default: beside the source)")
    args = parser.parse_args()
    args.deps, args.bin = os.path.abspath(args.deps), os.path.abspath(args.bin)
    args.work = os.path.abspath(args.work or os.path.join(args.deps, "bench_work"))
    bench, results = Bench(args), []
    for name, batch_rows, call in bench.runs():
        if args.only and not any(name.startswith(o) for o in args.only):
            continue
        rows, seconds, peak, cpu = call()
        if rows != bench.rows:
            raise SystemExit(f"{name} moved {rows} of {bench.rows} rows")
        results.append((name, batch_rows, rows / seconds, seconds, peak, cpu, disk(args.work)))
        print(f"{name} {batch_rows or ''}: {seconds:.1f} s", file=sys.stderr, flush=True)
    if not args.only or "ice-verify" in args.only:
        bench.ice_migrate(1_000_000)
        checks = list(bench.verified())
    else:
        checks = []
    shutil.rmtree(args.work, ignore_errors=True)
    report(bench.rows, results)
    if checks:
        print("\n| | seconds | CPU seconds | times the scans | of their CPU | peak memory |\n|---|---|---|---|---|---|")
    for name, seconds, peak, cpu in checks:
        print(f"| {name} | {seconds:.1f} | {cpu:.1f} | {seconds / checks[0][1]:.2f} | {cpu / checks[0][3]:.2f} | {peak:.0f} MB |")


def report(rows, results):
    """Prints the tables for docs/PERFORMANCE.md."""
    print(f"{rows:,} rows × 12 columns, {os.cpu_count()} cores, {platform.machine()}\n")
    print("| | rows a commit | seconds | rows/s | CPU seconds | peak memory | written |\n|---|---|---|---|---|---|---|")
    for name, batch_rows, rate, seconds, peak, cpu, written in results:
        print(f"| {name} | {f'{batch_rows:,}' if isinstance(batch_rows, int) else batch_rows or 'all'} | {seconds:.1f} | {rate / 1e6:.2f}M | {cpu:.1f} "
              f"| {peak:.0f} MB | {written:.0f} MB |")
    ours = {r[1]: r for r in results if r[0] == "ice-migrate"}
    others = [r for r in results if not r[0].startswith("ice-migrate")]
    copied = [r for r in results if r[1] == "auto"]
    if copied:
        print("\n| of the run that copies nothing | times the rows/s | of the CPU | of the memory |\n|---|---|---|---|")
        for name, _, rate, _, peak, cpu, _ in copied[1:]:
            print(f"| {name} | {rate / copied[0][2]:.1f} | {cpu / copied[0][5]:.2f} | {peak / copied[0][4]:.2f} |")
    if not ours or not others:
        return
    print("\n| ice-migrate against | rows a commit | times the rows/s | of the CPU | of the memory |\n|---|---|---|---|---|")
    for name, batch_rows, rate, _, peak, cpu, _ in others:
        for own, (_, _, own_rate, _, own_peak, own_cpu, _) in ours.items():
            if batch_rows in (None, own):
                print(f"| {name} | {own:,} | {own_rate / rate:.2f} | {own_cpu / cpu:.2f} | {own_peak / peak:.2f} |")


if __name__ == "__main__":
    main()
