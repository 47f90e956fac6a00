"""Prints the tables of docs/PERFORMANCE.md from what runs were noted as."""
from statistics import median

NEAR = 0.03  # bytes that differ by no more are equal


def runs_of(records, scenario):
    """The runs of a scenario in their order, each as the medians of its rounds."""
    rounds = {}
    for r in records:
        if r["scenario"] == scenario:
            rounds.setdefault((r["run"], r["commit"]), []).append(r)
    return [medians(rs) for rs in rounds.values()]


def medians(rounds):
    first = rounds[0]
    told = dict(first)
    for key in ("seconds", "cpu", "inner", "written"):
        if key in first:
            told[key] = median(r[key] for r in rounds)
    told["peaks"] = {name: median(r["peaks"][name] for r in rounds) for name in first["peaks"]}
    told["peak"] = sum(told["peaks"].values())
    if "tenths" in first:
        told["tenths"] = [median(r["tenths"][i] for r in rounds) for i in range(len(first["tenths"]))]
    return told


def base_of(runs):
    """The run that the others of its scenario are held against."""
    return next(r for r in runs if r["run"] == r["base"])


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def tables(records):
    """A table of each scenario."""
    rounds = 1 + max(r["round"] for r in records)
    print(f"{records[0]['size']:,} rows of orders, {records[0]['machine']}, {f'medians of {rounds} rounds' if rounds > 1 else 'one round'}.")
    for scenario in dict.fromkeys(r["scenario"] for r in records):
        runs = runs_of(records, scenario)
        base = base_of(runs)
        of_rows = next((f", {r['rows']:,} rows" for r in runs if "rows" in r), "")
        print(f"\n### {scenario}{of_rows}\n{runs[0]['about'][0].upper()}{runs[0]['about'][1:]}.\n")
        costs(runs, base)
        notes(runs, base)
        tenths(runs)


def costs(runs, base):
    head("", "rows a commit", "seconds", "without start-up", "rows/s", "CPU seconds", "peak memory", "written",
         "times the seconds", "of the CPU", "of the memory", "of the bytes")
    for r in runs:
        rate = f"{r['rows'] / r['seconds']:,.0f}" if "rows" in r else ""
        against = [f"{r['seconds'] / base['seconds']:.2f}", f"{r['cpu'] / base['cpu']:.2f}", f"{r['peak'] / base['peak']:.2f}",
                   f"{r['written'] / base['written']:.3f}" if "written" in r and base.get("written") else ""]
        row(r["run"], r["commit"], f"{r['seconds']:.1f}", f"{r['inner']:.1f}" if "inner" in r else "", rate, f"{r['cpu']:.1f}",
            f"{r['peak']:.0f} MB", f"{r['written'] / 2**20:.1f} MB" if "written" in r else "", *([""] * 4 if r["part"] else against))


def notes(runs, base):
    """What is not seen in the table: the pipe's peaks, and who does not write the same bytes."""
    for r in runs:
        if len(r["peaks"]) > 1:
            print("\nPeaks of the pipe's programs: " + ", ".join(f"{name} {peak:.0f} MB" for name, peak in r["peaks"].items()) + ".")
    apart = [f"{r['run']}, {r['commit']}, by {100 * (r['written'] / base['written'] - 1):+.1f} %" for r in runs
             if r.get("encodes") and "written" in r and base.get("written") and r["rows"] == base["rows"]
             and abs(r["written"] / base["written"] - 1) > NEAR]
    if apart:
        print(f"\nOther bytes at the same codec and level: {'; '.join(apart)}.")


def tenths(runs):
    """How the cost of a commit grows."""
    if not any("tenths" in r for r in runs):
        return
    print()
    head("", "commits", "seconds of the first tenth", "of the last tenth", "times")
    for r in runs:
        if "tenths" in r:
            first, *last = r["tenths"]
            row(r["run"], f"{r['commits']:,}", f"{first:.1f}", f"{last[0]:.1f}" if last else "", f"{last[0] / first:.2f}" if last else "")
