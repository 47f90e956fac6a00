"""The programs that take part, and how each is asked to do a job."""
import os
import subprocess
from dataclasses import dataclass

from job import Job

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Run:
    """A program with a job. Its files are the Iceberg table's, or Parquet files alone."""
    name: str
    commit: str        # what it commits at a time, for people
    job: Job
    commands: list     # more than one have pipes between them
    iceberg: bool = True
    writes: bool = True    # into a new destination; else it reads what the run before it left
    encodes: bool = True   # its bytes can be held against the others'


class Programs:
    def __init__(self, deps, bin):
        self.python, self.bin = os.path.join(deps, "venv", "bin", "python"), bin
        self.go = os.path.join(bin, "bench-iceberg-go")

    def build(self):
        """Builds the program with iceberg-go alone, which `go run` would do while it is measured."""
        subprocess.run(["go", "build", "-o", self.go, os.path.join(HERE, "peer_iceberg_go.go")], check=True, cwd=HERE)

    def place(self, job, side, prefix=""):
        """The flags of icepipe that name a table."""
        folder, table = (job.source, job.table) if side == "src" else (job.out, job.destination)
        namespace, name = table.split(".")
        return [f"--{prefix}catalog", "sqlite", f"--{prefix}catalog-name", "default", f"--{prefix}db-path", f"{folder}/{side}.db",
                f"--{prefix}warehouse", f"{folder}/{side}_wh", f"--{prefix}namespace", namespace, f"--{prefix}table", name]

    def mapping(self, job):
        flags = [f for old, new in job.rename.items() for f in ("--column-mapping", f"{old}:{new}")]
        return flags + (["--on-missing-in-source", "null"] if job.fill else [])

    def rows(self, job, batch):
        return ["--batch-rows", str(batch), *(["--row-filter", job.condition] if job.filter else [])]

    def icepipe(self, name, *args):
        return [os.path.join(self.bin, name), *args]

    def migrate(self, job, copy, batch=None, note=""):
        """ice-migrate; "auto" takes whole row groups a commit, so that they can be copied."""
        batch = batch or ("auto" if copy == "auto" else job.batch_rows)
        command = self.icepipe("ice-migrate", *self.place(job, "src", "src-"), *self.place(job, "dst", "dst-"), *self.mapping(job),
                               *self.rows(job, batch), "--copy", copy, "--output", "json", "--checkpoint", f"{job.out}/checkpoint.json")
        return Run(f"ice-migrate --copy {copy}{note}", shown(batch), job, [command], encodes=copy == "never")

    def pipe(self, job):
        checkpoint = ["--checkpoint", f"{job.out}/checkpoint.json"]
        return Run("ice-scan \\| ice-reconcile \\| ice-write", shown(job.batch_rows), job, [
            self.icepipe("ice-scan", *self.place(job, "src"), *self.rows(job, job.batch_rows), *checkpoint),
            self.icepipe("ice-reconcile", *self.place(job, "dst"), *self.mapping(job)),
            self.icepipe("ice-write", *self.place(job, "dst"), *checkpoint)])

    def script(self, name, job, *args):
        return [self.python, os.path.join(HERE, name), job.text(), *args]

    def iceberg_go(self, job):
        return Run("iceberg-go", shown(job.batch_rows), job, [[self.go, job.text()]])

    def pyiceberg(self, job):
        return Run("PyIceberg", shown(job.batch_rows), job, [self.script("peer_pyiceberg.py", job)])

    def spark(self, job):
        return Run("Spark", shown(None), job, [self.script("peer_spark.py", job)])

    def duckdb(self, job):
        return Run("DuckDB, no catalog", shown(None), job, [self.script("peer_duckdb.py", job)], iceberg=False)

    def cp(self, job):
        return Run("cp -r", shown(None), job, [["cp", "-r", job.data(), job.out]], iceberg=False, encodes=False)

    def all(self, job, *without):
        """The runs of everybody who can do a job, but for some."""
        yield self.migrate(job, "never")
        yield self.migrate(job, "auto")
        for name in ("pipe", "iceberg_go", "pyiceberg", "spark", "duckdb", "cp"):
            if name not in without:
                yield getattr(self, name)(job)

    def verification(self, job):
        """Scans of both tables, and verifications that are held against them."""
        yield self.migrate(job, "never")
        scans = [" ".join(self.icepipe("ice-scan", *self.place(job, side))) + " > /dev/null" for side in ("src", "dst")]
        yield Run("ice-scan > /dev/null of both tables", "", job, [["sh", "-c", " && ".join(scans)]], writes=False)
        for method in ("partition_hash", "diff"):
            command = self.icepipe("ice-verify", "--method", method, "-q", "--checkpoint", f"{job.out}/checkpoint.json")
            yield Run(f"ice-verify --method {method}", "", job, [command], writes=False)



def shown(batch):
    """How a batch size is told."""
    return "all" if batch is None else f"{batch:,}" if isinstance(batch, int) else batch
