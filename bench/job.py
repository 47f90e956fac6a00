"""What is moved, and what becomes of it: the driver hands a job to every program that takes part, as JSON."""
import json
import sys
from dataclasses import asdict, dataclass, field


@dataclass
class Job:
    """Rows of a table SOURCE/src.db into OUT/dst.db, both SQLite catalogs named "default"."""
    source: str
    table: str                                     # namespace and name in the source
    out: str
    rename: dict = field(default_factory=dict)     # source column to destination column
    promote: dict = field(default_factory=dict)    # destination column to its wider type
    fill: dict = field(default_factory=dict)       # columns that the source lacks, with their types: filled with null
    partition: str = None                          # the destination's identity partition
    filter: dict = None                            # {"column": …, "below": …}
    batch_rows: int = 1_000_000
    most: int = None                               # commits after which to stop

    @staticmethod
    def read():
        """The job that a script was given as its first argument."""
        return Job(**json.loads(sys.argv[1]))

    def text(self):
        return json.dumps(asdict(self))

    @property
    def destination(self):
        return "warehouse." + self.table.split(".")[1]

    @property
    def condition(self):
        """The filter as PyIceberg, Spark, DuckDB and ice-migrate all take it."""
        return f"{self.filter['column']} < {self.filter['below']}" if self.filter else None

    def back(self, name):
        """The source's name of a destination column."""
        return {new: old for old, new in self.rename.items()}.get(name, name)

    def data(self):
        """The folder of the source's data files."""
        return f"{self.source}/src_wh/{self.table.replace('.', '/')}/data"

    def load(self, side):
        """A table in PyIceberg: "src" or "dst"."""
        return catalog(self.source if side == "src" else self.out, side).load_table(self.table if side == "src" else self.destination)


def catalog(folder, side):
    """A SQLite catalog in a folder."""
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("default", uri=f"sqlite:///{folder}/{side}.db", warehouse=f"file://{folder}/{side}_wh")
