#!/usr/bin/env python3
"""Asks PyIceberg or Spark how many rows filters select.

  filter_witness.py pyiceberg|spark DB CATALOG QUESTIONS ANSWERS

A line of QUESTIONS is JSON: {"table": identifier, "filter": text}. ANSWERS gets a line for each: the number,
or the error as text. PyIceberg is asked by its scan, Spark by one query a table, so that it evaluates every
condition on every row.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines


def ask_pyiceberg(db, catalog, questions):
    opened = engines.open_catalog(db, catalog)
    tables = {}
    for q in questions:
        try:
            table = tables.get(q["table"]) or tables.setdefault(q["table"], opened.load_table(q["table"]))
            yield table.scan(row_filter=q["filter"]).to_arrow().num_rows
        except Exception as problem:
            yield f"{type(problem).__name__}: {str(problem)[:200]}"


def ask_spark(db, catalog, questions):
    spark = engines.start_spark({catalog: (db, None)})
    for table in dict.fromkeys(q["table"] for q in questions):
        name = f"{catalog}." + ".".join(f"`{part}`" for part in table.split("."))
        filters = [q["filter"] for q in questions if q["table"] == table]
        sums = ", ".join(f"sum(CASE WHEN {f} THEN 1 ELSE 0 END) AS c{k}" for k, f in enumerate(filters))
        try:
            row = spark.sql(f"SELECT {sums} FROM {name}").collect()[0]
            yield from ((row[k] or 0) for k in range(len(filters)))
        except Exception as problem:
            yield from (f"{type(problem).__name__}: {str(problem)[:300]}" for _ in filters)


def main():
    engine, db, catalog, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as lines:
        questions = [json.loads(text) for text in lines]
    ask = {"pyiceberg": ask_pyiceberg, "spark": ask_spark}[engine]
    with open(target, "w", encoding="utf-8") as out:
        for answer in ask(db, catalog, questions):
            out.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
