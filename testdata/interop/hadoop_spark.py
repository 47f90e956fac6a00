#!/usr/bin/env python3
"""hadoop_spark.py WAREHOUSE: Spark with Iceberg's HadoopCatalog over a folder. Reads commands from stdin, one a
line, and answers each with a line of JSON:

  make            makes the tables spark.FORM, with the rows 0 to 3 in two commits, in each form that one finds in
                  such folders, and the empty table spark.raced
  race FIRST N    says {} and appends N rows to spark.raced, one a commit; after a conflict it loads the table
                  again. The answer says how often that was
  read            the ids in each table, {FORM: [ID, ...]}
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engines

FORMS = {
    "plain": "",
    "gzip": "'write.metadata.compression-codec'='gzip'",  # v1.gz.metadata.json
    "nohint": "",  # without version-hint.text
    "stale": "",  # whose hint is an old one
    "v1": "'format-version'='1'",
}


def make(spark, warehouse):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS h.spark")
    for form, properties in (FORMS | {"raced": ""}).items():
        properties = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE h.spark.{form} (id BIGINT, text STRING) USING iceberg {properties}")
        if form != "raced":
            spark.sql(f"INSERT INTO h.spark.{form} VALUES (0, 'row 0'), (1, 'row 1')")
            spark.sql(f"INSERT INTO h.spark.{form} VALUES (2, 'row 2'), (3, 'row 3')")
    for form, text in (("nohint", None), ("stale", "1")):
        folder = os.path.join(warehouse, "spark", form, "metadata")
        for name in ("version-hint.text", ".version-hint.text.crc"):
            os.remove(os.path.join(folder, name))
        if text:
            with open(os.path.join(folder, "version-hint.text"), "w") as f:
                f.write(text)
    return {}


def race(spark, first, count):
    print("{}", flush=True)
    lost = 0
    for i in range(first, first + count):
        while True:
            try:
                spark.sql(f"INSERT INTO h.spark.raced VALUES ({i}, 'row {i}')")
                break
            except Exception as e:
                if "CommitFailedException" not in str(e):
                    raise
                lost += 1
    return {"lost": lost}


def read(spark):
    found = {}
    for form in [*FORMS, "raced"]:
        rows = spark.sql(f"SELECT id, text FROM h.spark.{form} ORDER BY id").collect()
        assert all(r.text == f"row {r.id}" for r in rows), form
        found[form] = [r.id for r in rows]
    return found


def main(warehouse):
    spark = engines.start_spark({})
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": f"file://{warehouse}", ".cache-enabled": "false"}.items():
        spark.conf.set("spark.sql.catalog.h" + key, value)
    for line in sys.stdin:
        command, *args = line.split()
        if command == "make":
            answer = make(spark, warehouse)
        else:
            answer = {"race": race, "read": read}[command](spark, *map(int, args))
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
