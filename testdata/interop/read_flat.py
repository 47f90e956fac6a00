#!/usr/bin/env python3
"""Reads back what TestFlatCost moved: read_flat.py DIR NAME VERSION BATCHES ROWS.

DIR has the catalogs src and NAME, each with the table lab.flat. Row i of the source, counted from 0,
has the id i, and goes into batch i / ROWS, which is commit i / ROWS + 1.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb

import engines


def same_rows(source, destination, rows):
    """The rows as PyIceberg reads them, as a multiset compared by DuckDB."""
    src, dst = source.scan().to_arrow(), destination.scan().to_arrow()
    assert src.num_rows == dst.num_rows == rows, (src.num_rows, dst.num_rows, rows)
    connection = duckdb.connect()
    connection.register("src", src)
    connection.register("dst", dst)
    for one, other in (("src", "dst"), ("dst", "src")):
        more = connection.sql(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").limit(1).fetchall()[0][0]
        assert more == 0, f"{more} rows are in {one} alone"


def row_ids(spark, table, snapshots, batches, rows):
    """Row IDs are the rows' numbers, at the head and in snapshots before and after merges."""
    for at in sorted({99, 100, 198, batches}):  # commits 100 and 198 merge manifests
        bad, count, distinct = spark.sql(
            f"SELECT count_if(_row_id <> id OR _last_updated_sequence_number <> id div {rows} + 1),"
            f" count(*), count(DISTINCT _row_id) FROM {table} VERSION AS OF {snapshots[at - 1]}"
        ).first()
        assert (bad, count, distinct) == (0, at * rows, at * rows), (at, bad, count, distinct)
    for metadata in ("files", "manifests", "all_data_files", "entries"):
        assert spark.sql(f"SELECT count(*) FROM {table}.{metadata}").first()[0] > 0, metadata
    counts = spark.sql(
        f"SELECT sum(added_data_files_count + existing_data_files_count), sum(deleted_data_files_count) FROM {table}.manifests"
    ).first()
    assert tuple(counts) == (batches, 0), counts


def main(folder, name, version, batches, rows):
    """Compares, and fails by an assertion."""
    source, destination = (
        engines.open_catalog(os.path.join(folder, f"{n}.db"), n).load_table("lab.flat") for n in ("src", name)
    )
    same_rows(source, destination, batches * rows)
    metadata = destination.metadata
    assert [s.sequence_number for s in metadata.snapshots] == list(range(1, batches + 1))
    assert "commit.manifest-merge.enabled" not in metadata.properties, metadata.properties
    if version >= 3:
        assert metadata.next_row_id == batches * rows, metadata.next_row_id
        spark = engines.start_spark({name: (os.path.join(folder, f"{name}.db"), None)})
        row_ids(spark, f"{name}.lab.flat", [s.snapshot_id for s in metadata.snapshots], batches, rows)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(a) for a in sys.argv[3:]))
