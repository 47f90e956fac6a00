#!/usr/bin/env python3
"""Makes and reads tables in any place, by PyIceberg and by Spark.

    storage_party.py OUT CONFIG

CONFIG is {"catalogs": {NAME: PROPERTIES}, "spark": {NAME: [DATABASE, WAREHOUSE, SETTINGS]}}: Spark
opens the SQLite databases of the catalogs itself. Takes one JSON object a line from stdin, {"do": NAME, …},
and answers each with one on stdout. A table is {"catalog": NAME, "identifier": [LEVEL, …, NAME]} and, to make it,
"by" (pyiceberg or spark), "location", "rows", "first", "shift" (which value a row has), "properties", "partitioned" (by
default it is).
"""

import gzip
import json
import random
import sys

import pyarrow as pa
import sqlalchemy
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import engines
from party import serve

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
BY_P = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))

# Values that want care in the name of a folder; row i has the value i, from the start again behind the last.
VALUES = ["a", "b c", "d%e", "f%20g", "h+i", "j/k", "l=m", "n#o", "p?q", "größe", "表", "r&s", "t:u", "..", None, "'\""]


def value(i, shift=0):
    return VALUES[(i + shift) % len(VALUES)]


def sql_name(t):
    return ".".join("`" + part.replace("`", "``") + "`" for part in [t["catalog"]] + t["identifier"])


def sql_text(text):
    return "NULL" if text is None else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def without_snapshot(document):
    assert not document.get("snapshots"), "the table is not empty"
    document["current-snapshot-id"] = -1
    document.pop("refs", None)


def plain_v1(document):
    """Format version 1 as it was at first: one schema, one partition spec, no UUID, no last IDs."""
    assert document["format-version"] == 1
    schemas = {s["schema-id"]: s for s in document.pop("schemas")}
    specs = {s["spec-id"]: s for s in document.pop("partition-specs")}
    document["schema"] = {k: v for k, v in schemas[document.pop("current-schema-id")].items() if k in ("type", "fields")}
    document["partition-spec"] = specs[document.pop("default-spec-id")]["fields"]
    for key in ("table-uuid", "last-partition-id", "sort-orders", "default-sort-order-id", "refs", "statistics", "partition-statistics"):
        document.pop(key, None)
    for s in document.get("snapshots", []):
        s.pop("schema-id", None)
        s.pop("sequence-number", None)


AGES = {
    "no snapshot": without_snapshot,
    "no uuid": lambda document: document.pop("table-uuid"),
    "plain v1": plain_v1,
}


class Party:
    def __init__(self, out):
        self.config = json.loads(sys.argv[2])
        self.catalogs = {name: load_catalog(name, **p) for name, p in self.config["catalogs"].items()}
        self.session = None

    @property
    def spark(self):
        if self.session is None:
            of = self.config["spark"]
            self.session = engines.start_spark({name: (db, warehouse) for name, (db, warehouse, _) in of.items()},
                                               config_of={name: settings for name, (_, _, settings) in of.items()})
        return self.session

    def make(self, tables):
        """Makes tables; answers {"failed": {index: text}} for those that the engine cannot make there."""
        failed = {}
        for n, t in enumerate(tables):
            catalog, identifier = self.catalogs[t["catalog"]], tuple(t["identifier"])
            for depth in range(1, len(identifier)):
                catalog.create_namespace_if_not_exists(identifier[:depth])
            try:
                (self.by_spark if t.get("by") == "spark" else self.by_pyiceberg)(t, catalog, identifier)
            except Exception as err:  # whatever it is, the place is not one for this engine
                failed[n] = f"{type(err).__name__}: {err}"[:300]
        return {"failed": failed}

    def by_pyiceberg(self, t, catalog, identifier):
        props = {k: str(v) for k, v in (t.get("properties") or {}).items()}
        table = catalog.create_table(identifier, SCHEMA, location=t.get("location"), properties=props,
                                     **({"partition_spec": BY_P} if t.get("partitioned", True) else {}))
        ids = range(t.get("first", 0), t.get("first", 0) + t.get("rows", 0))
        for part in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
            if len(part):
                values = [value(i, t.get("shift", 0)) for i in part]
                table.append(pa.table({"id": pa.array(part, pa.int64()), "p": pa.array(values, pa.string())}))

    def by_spark(self, t, catalog, identifier):
        text = f"CREATE TABLE {sql_name(t)} (id BIGINT, p STRING) USING iceberg"
        if t.get("partitioned", True):
            text += " PARTITIONED BY (p)"
        if t.get("location"):
            text += f" LOCATION {sql_text(t['location'])}"
        if t.get("properties"):
            text += " TBLPROPERTIES (" + ", ".join(f"{sql_text(k)} {sql_text(str(v))}" for k, v in t["properties"].items()) + ")"
        self.spark.sql(text)
        ids = range(t.get("first", 0), t.get("first", 0) + t.get("rows", 0))
        if len(ids):
            rows = ", ".join(f"({i}L, {sql_text(value(i))})" for i in ids)
            self.spark.sql(f"INSERT INTO {sql_name(t)} VALUES {rows}")

    def age(self, tables):
        """Gives tables metadata as old writers left it: "forms" are those of AGES; "file" is the name of the file."""
        for t in tables:
            catalog = self.catalogs[t["catalog"]]
            table = catalog.load_table(tuple(t["identifier"]))
            with table.io.new_input(table.metadata_location).open() as f:
                text = f.read()
            document = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
            for form in t.get("forms", []):
                AGES[form](document)
            location = f"{table.metadata_location.rsplit('/', 1)[0]}/{t.get('file', 'v7.metadata.json')}"
            text = json.dumps(document).encode()
            with table.io.new_output(location).create() as f:
                f.write(gzip.compress(text) if ".gz." in location else text)
            with catalog.engine.begin() as c:
                c.execute(sqlalchemy.text("UPDATE iceberg_tables SET metadata_location = :l WHERE metadata_location = :o"),
                          {"l": location, "o": table.metadata_location})

    def state(self, tables, spark=True):
        """What is in tables, one answer each in "tables": "ids", "snapshots", and "wrong" for what should not be."""
        return {"tables": [self.look(t, spark and t.get("spark", True)) for t in tables]}

    def look(self, t, spark):
        table = self.catalogs[t["catalog"]].load_table(tuple(t["identifier"]))
        wrong = []
        found = table.scan().to_arrow().to_pydict()
        rows = sorted(zip(found["id"], found["p"]))
        wrong += [f"row {i} has {p!r}" for i, p in rows if p != value(i)]
        for p in set(found["p"]) if t.get("filters", True) else ():
            row_filter = "p is null" if p is None else "p = '" + p.replace("'", "''") + "'"
            some = sorted(table.scan(row_filter=row_filter).to_arrow()["id"].to_pylist()) if p is None or "'" not in p else None
            if some is not None and some != [i for i, q in rows if q == p]:
                wrong.append(f"{row_filter} finds {some}")
        snapshots = []
        folder = table.properties.get("write.metadata.path", table.location().rstrip("/") + "/metadata").rstrip("/")
        data = table.properties.get("write.data.path", table.location().rstrip("/") + "/data").rstrip("/")
        places = [table.metadata_location]
        for s in table.metadata.snapshots:
            snapshots.append({"id": str(s.snapshot_id), "operation": s.summary.operation.value})
            places += [s.manifest_list]
            places += [m.manifest_path for m in s.manifests(table.io)]
        wrong += [f"{p} is not in {folder}" for p in places if not p.startswith(folder + "/")]
        files = [] if table.current_snapshot() is None else table.inspect.files()["file_path"].to_pylist()
        wrong += [f"{f} is not in {data}" for f in files if not f.startswith(data + "/")]
        wrong += [f"{f} is not there" for f in files if not table.io.new_input(f).exists()]
        if spark:
            again = sorted((r["id"], r["p"]) for r in self.spark.sql(f"SELECT id, p FROM {sql_name(t)}").collect())
            if again != rows:
                wrong.append(f"Spark reads {again[:5]} of {len(again)}")
        return {"ids": [i for i, _ in rows], "snapshots": snapshots, "wrong": wrong[:5], "files": files,
                "location": table.location(), "metadata": table.metadata_location, "properties": dict(table.properties)}

    def wide(self, catalog, identifier, names, location=None, files=(), group=100_000):
        """Makes a table of longs that no codec makes smaller, with these names of columns, and files of so many rows each."""
        self.catalogs[catalog].create_namespace_if_not_exists(tuple(identifier[:-1]))
        schema = Schema(*(NestedField(n, name, LongType()) for n, name in enumerate(names, 1)))
        table = self.catalogs[catalog].create_table(tuple(identifier), schema, location=location,
                                                    properties={"write.parquet.row-group-limit": str(group)})
        draw = random.Random(repr(identifier))
        for n in files:
            table.append(pa.table({name: pa.Array.from_buffers(pa.int64(), n, [None, pa.py_buffer(draw.randbytes(8 * n))]) for name in names}))

    def same(self, catalog, source, destination):
        """Whether two tables have the same rows, whatever their columns are called."""
        a, b = (self.catalogs[catalog].load_table(tuple(i)).scan().to_arrow() for i in (source, destination))
        by = [(name, "ascending") for name in a.column_names[:2]]
        b = b.rename_columns(a.column_names)
        return {"rows": a.num_rows, "same": a.sort_by(by).equals(b.sort_by(by))}

    def container(self, connection, name):
        """Makes a container of Azure's."""
        from azure.storage.blob import BlobServiceClient

        BlobServiceClient.from_connection_string(connection).create_container(name)


if __name__ == "__main__":
    serve(Party)
