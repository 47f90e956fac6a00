"""Runs programs and tells what they cost. It imports nothing large: a child begins with the peak memory of its
parent, which is why the driver does all that is heavy by other processes."""
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass


@dataclass
class Cost:
    """What a run took: seconds on the clock, seconds of CPU, and each program's peak of resident memory in MB."""
    seconds: float
    cpu: float
    peaks: dict

    @property
    def peak(self):
        """The sum of the programs' peaks: no less than what they held at one time."""
        return sum(self.peaks.values())


def measured(*commands):
    """Runs a command, or several with pipes between them; returns the last one's output and the cost. The CPU
    of what a program started and waited for counts, start-up too."""
    os.sync()
    with tempfile.TemporaryFile("w+") as errors:
        try:
            return followed(commands, errors)
        except SystemExit:
            errors.seek(0)
            sys.stderr.write(errors.read())
            raise


def followed(commands, errors):
    """Runs the commands; what they say on stderr is kept for when they fail."""
    began = time.monotonic()
    children, out = [], None
    for command in commands:
        child = subprocess.Popen(command, stdin=out or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
        if out:
            out.close()
        children.append(child)
        out = child.stdout
    text = out.read()
    out.close()
    peaks, cpu, failed = {}, 0.0, []
    for command, child in zip(commands, children):
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            failed.append(f"{' '.join(command)}: exit code {child.returncode}")
        peaks[os.path.basename(command[0])] = usage.ru_maxrss / 1024
        cpu += usage.ru_utime + usage.ru_stime
    seconds = time.monotonic() - began
    if failed:
        raise SystemExit("\n".join(failed))
    return text, Cost(seconds, cpu, peaks)


def disk(folder):
    """Bytes of Parquet below a folder."""
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(folder) for f in files if f.endswith(".parquet"))


def warm(folder):
    """Reads a folder's files, so that the first program that reads them has no more to wait for than the others."""
    for d, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(d, name), "rb", buffering=0) as f:
                while f.read(1 << 22):
                    pass
