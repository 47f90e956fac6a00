#!/usr/bin/env python3
"""Makes and reads small tables in the catalogs that .pyiceberg.yaml names, by PyIceberg, and users of databases.

  catalog_tables.py make  < LIST     makes namespaces and tables
  catalog_tables.py state < LIST     prints what is in them, a list in the same order
  catalog_tables.py users URI        makes users in a database; prints their URIs as JSON:
      odd (all rights, letters in name and password that a URI must encode), reader (may only read),
      poor (may only connect)
  catalog_tables.py layout URI V0|V1 takes the column iceberg_type from the catalog's tables, or gives it back, empty

LIST is [{"catalog": NAME, "identifier": [LEVEL, ..., NAME], "first": I, "rows": N, "files": F, "location": L}].
"""

import json
import sys
import tempfile

import sqlalchemy
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.utils.config import Config
from rest_tables import SCHEMA, fill, look

ODD = "odd@us:er", "p@ss:w/rd%40 #?&=+'\\"  # and, but for PyMySQL, which sends a password as Latin-1, the letter ü


class Folder:
    """A hadoop catalog, of which PyIceberg has none: the last metadata of a table gets a version's name, and
    is read by PyIceberg's StaticTable, which knows the hint."""

    def __init__(self, name, properties):
        self.properties = properties
        self.scratch = tempfile.TemporaryDirectory()
        self.made = SqlCatalog(name, **(properties | {"uri": f"sqlite:///{self.scratch.name}/made.db"}))

    def create_namespace_if_not_exists(self, namespace):
        self.made.create_namespace_if_not_exists(namespace)

    def location(self, identifier):
        return "/".join([self.properties["warehouse"].rstrip("/"), *identifier])

    def create_table(self, identifier, schema, location=None):
        return self.made.create_table(identifier, schema, location=self.location(identifier))

    def publish(self, table):
        version, folder = len(table.metadata.metadata_log) + 1, table.location() + "/metadata/"
        with table.io.new_input(table.metadata_location).open() as f:
            text = f.read()
        for name, content in ((f"v{version}.metadata.json", text), ("version-hint.text", str(version).encode())):
            with table.io.new_output(folder + name).create() as f:
                f.write(content)
        table.io.delete(table.metadata_location)

    def load_table(self, identifier):
        return StaticTable.from_metadata(self.location(identifier), self.properties)


def opened(name):
    properties = Config().get_catalog_config(name) or {}
    return Folder(name, properties) if properties.get("type") == "hadoop" else load_catalog(name)


def tables():
    catalogs = {}
    for t in json.load(sys.stdin):
        name = t["catalog"]
        if name not in catalogs:
            catalogs[name] = opened(name)
        yield t, catalogs[name], tuple(t["identifier"])


def make():
    for t, catalog, identifier in tables():
        for n in range(1, len(identifier)):
            catalog.create_namespace_if_not_exists(identifier[:n])
        table = catalog.create_table(identifier, SCHEMA, location=t.get("location"))
        fill(table, t)
        if isinstance(catalog, Folder):
            catalog.publish(table)


def state():
    json.dump([look(catalog.load_table(identifier), identifier) for _, catalog, identifier in tables()], sys.stdout)


def users(uri):
    url = sqlalchemy.make_url(uri)
    postgres = url.get_backend_name() == "postgresql"
    made = {"odd": (ODD[0], ODD[1] + ("ü" if postgres else "")), "reader": ("reader", "planted-reader"), "poor": ("poor", "planted-poor")}
    engine = sqlalchemy.create_engine(url.set(drivername="postgresql+psycopg2") if postgres else url, isolation_level="AUTOCOMMIT",
                                      execution_options={"no_parameters": True})
    with engine.connect() as c:
        for role, (name, password) in made.items():
            quoted = password.replace("'", "''")
            if postgres:
                c.exec_driver_sql(f"""CREATE ROLE "{name}" LOGIN {"SUPERUSER" if role == "odd" else ""} PASSWORD '{quoted}'""")
                if role == "reader":
                    c.exec_driver_sql("ALTER DEFAULT PRIVILEGES FOR ROLE icepipe, \"odd@us:er\" IN SCHEMA public GRANT SELECT ON TABLES TO reader")
                continue
            quoted = quoted.replace("\\", "\\\\")
            c.exec_driver_sql(f"CREATE USER '{name}'@'127.0.0.1' IDENTIFIED BY '{quoted}'")
            if role != "poor":
                c.exec_driver_sql(f"GRANT {'ALL' if role == 'odd' else 'SELECT'} ON iceberg.* TO '{name}'@'127.0.0.1'")
    out = {}
    for role, (name, password) in made.items():
        driver = "postgresql+psycopg2" if postgres else url.drivername
        out[role] = url.set(drivername=driver, username=name, password=password).render_as_string(hide_password=False)
    json.dump(out, sys.stdout)


def layout(uri, version):
    with sqlalchemy.create_engine(uri, isolation_level="AUTOCOMMIT").connect() as c:
        change = "DROP COLUMN iceberg_type" if version == "V0" else "ADD COLUMN iceberg_type VARCHAR(5)"
        c.exec_driver_sql(f"ALTER TABLE iceberg_tables {change}")


if __name__ == "__main__":
    {"make": make, "state": state, "users": users, "layout": layout}[sys.argv[1]](*sys.argv[2:])
