"""Runs jobs by icepipe and by others, one after another, and prints the ratios: see README.md.

usage: run.py DEPS BIN [--only NAME ...] [--without NAME ...] [--rows N] [--repeat N] [--json FILE] [--assert] [--work DIR]
       run.py --print FILE [--assert]

DEPS is what testdata/interop/setup.sh made, and keeps the tables; BIN holds icepipe's programs. Seconds, CPU and
memory are those of whole processes, start-up included; what others say that they took without it is told beside.
With --repeat each scenario goes round so often, and medians are told. --json notes each run as it ends, and
--print prints tables of such a file again. --assert fails unless promises.py holds.
"""
import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict

import promises
import report
from measure import disk, measured, warm
from programs import Programs
from scenarios import Scenarios
from tables import Tables


class Bench:
    def __init__(self, args):
        self.work = args.work
        self.programs = Programs(args.deps, args.bin)
        self.scenarios = Scenarios(Tables(args.deps), self.programs, args.work, args.rows)

    def script(self, name, job, *args):
        """The JSON that a script prints."""
        out = subprocess.run(self.programs.script(name, job, *args), check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out) if out else None

    def once(self, run, grows):
        """Runs a program over a new destination, looks whether the rows are there, and returns what there is to tell."""
        if run.writes:
            shutil.rmtree(self.work, ignore_errors=True)
            os.makedirs(self.work)
            if run.iceberg:
                self.script("make_destination.py", run.job)
        out, cost = measured(*run.commands)
        told = {"run": run.name, "commit": run.commit, "encodes": run.encodes, "part": run.job.most is not None, **asdict(cost)}
        if not run.writes:
            return told
        said = last_json(out)
        if "seconds" in said:
            told["inner"] = said["seconds"]
        checked = self.script("check.py", run.job, *([] if run.iceberg else ["files"]))
        if said.get("rows", said.get("rows_moved", checked["rows"])) != checked["rows"]:
            raise SystemExit(f"{run.name} says that it moved {said}, and there are {checked['rows']} rows")
        times = checked.pop("times", None)
        if times and grows:
            told["tenths"] = tenths(times, run.job.most)
        return {**told, **checked, "written": disk(self.work)}

    def rounds(self, name, repeat, without):
        """Goes round the runs of a scenario, each time in the same order."""
        scenario = self.scenarios.make(name)
        scenario.runs = [run for run in scenario.runs if not run.name.startswith(tuple(without))]
        for source in {run.job.data() for run in scenario.runs}:
            warm(source)
        for number in range(repeat):
            for run in scenario.runs:
                told = self.once(run, scenario.grows)
                print(f"{name}: {run.name}, {run.commit} a commit: {told['seconds']:.1f} s", file=sys.stderr, flush=True)
                yield {"scenario": name, "about": scenario.about, "base": scenario.base, "round": number, **told}


def tenths(times, most):
    """Seconds that the first tenth and the last tenth of the commits took; of who made only the first, that one."""
    n = len(times) if most else len(times) // 10
    return [(times[n - 1] - times[0]) / 1000] + ([] if most else [(times[-1] - times[-n]) / 1000])


def last_json(out):
    """The last object that a program printed: a line of it, or all of its output."""
    for text in (out, out.strip().rpartition("\n")[2]):
        try:
            said = json.loads(text)
            return said if isinstance(said, dict) else {}
        except ValueError:
            pass
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deps", nargs="?")
    parser.add_argument("bin", nargs="?")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=Scenarios.names(), metavar="NAME", help=f"some of: {', '.join(Scenarios.names())}")
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME", help="leave out programs whose name begins so: Spark, PyIceberg, …")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--print", metavar="FILE")
    parser.add_argument("--assert", action="store_true", dest="holds")
    parser.add_argument("--work", default=None, help="folder for destinations, made anew (default: beside the tables)")
    args = parser.parse_args()
    if args.print:
        with open(args.print) as f:
            records = [json.loads(line) for line in f]
    elif args.deps and args.bin:
        records = run_all(args)
    else:
        parser.error("DEPS and BIN are needed")
    report.tables(records)
    kept = promises.table(records)
    if args.holds and not kept:
        raise SystemExit("not all that is promised holds")


def run_all(args):
    """Runs the scenarios and notes each run."""
    args.deps, args.bin = os.path.abspath(args.deps), os.path.abspath(args.bin)
    args.work = os.path.abspath(args.work or os.path.join(args.deps, "bench_work"))
    bench = Bench(args)
    bench.programs.build()
    machine = {"machine": f"{os.cpu_count()} cores, {platform.machine()}", "size": args.rows}
    records = []
    with open(args.json, "w") if args.json else tempfile.TemporaryFile("w") as notes:
        for name in args.only or Scenarios.names():
            for told in bench.rounds(name, args.repeat, args.without):
                records.append({**machine, **told})
                print(json.dumps(records[-1]), file=notes, flush=True)
    shutil.rmtree(args.work, ignore_errors=True)
    return records


if __name__ == "__main__":
    main()
