#!/usr/bin/env python3
"""Makes the digests of tables with the script of docs/DIGEST.md, from the rows that PyIceberg reads.

    verify_digests.py DIGEST.md LISTFILE OUTDIR

A line of LISTFILE is NAME<tab>DB<tab>CATALOG<tab>IDENTIFIER; the digests go to OUTDIR/NAME.json, and what went
wrong to OUTDIR/NAME.error.
"""

import json
import os
import sys

import engines


def script(path):
    """The names that the page's one Python script defines."""
    with open(path, encoding="utf-8") as page:
        parts = page.read().split("```python\n")
    if len(parts) != 2:
        raise SystemExit(f"{path} has {len(parts) - 1} Python scripts")
    names = {"__name__": "digest"}
    exec(compile(parts[1].split("```")[0], path, "exec"), names)
    return names


def main():
    digests = script(sys.argv[1])["digests"]
    catalogs = {}
    os.makedirs(sys.argv[3], exist_ok=True)
    with open(sys.argv[2], encoding="utf-8") as lines:
        wanted = [text.rstrip("\n").split("\t") for text in lines]
    for name, db, catalog, identifier in wanted:
        path = os.path.join(sys.argv[3], name)
        try:
            if (db, catalog) not in catalogs:
                catalogs[db, catalog] = engines.open_catalog(db, catalog)
            table = catalogs[db, catalog].load_table(identifier)
            found = digests(table.scan().to_arrow(), table.schema(), table.spec())
        except Exception as problem:
            with open(path + ".error", "w", encoding="utf-8") as out:
                out.write(f"{type(problem).__name__}: {problem}\n")
            continue
        with open(path + ".json", "w", encoding="utf-8") as out:
            json.dump(found, out)


if __name__ == "__main__":
    main()
