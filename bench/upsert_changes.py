"""The changes of the upserts that are measured."""
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def rekeyed(some, by):
    """Rows with keys that are greater by a number."""
    return some.set_column(0, some.schema.field(0), pc.add(some["order_id"], by))


def changes_to(base, changes):
    """So many changes to a table: half of them change the quantity of every so many rows, half have keys that are not
    there, in random order, the same each time."""
    rows = len(base)
    picked = base.take(pa.array(np.arange(0, rows, 2 * rows // changes)[: changes // 2]))
    updated = picked.set_column(3, base.schema.field(3), pc.cast(pc.add(picked["quantity"], 1), pa.int32()))
    both = pa.concat_tables([updated, rekeyed(picked, 10**9)])
    return both.take(pa.array(np.random.default_rng(1).permutation(len(both))))
