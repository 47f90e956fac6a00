"""Writes the streams of another program (pyarrow) that foreign_test.go reads, and beside each, as
JSON lines, the rows that must come out. Run it by hand: python make.py"""
import datetime
import decimal
import json
import uuid

import pyarrow as pa

ROWS = 7


def dictionary(values, type=pa.string(), index=pa.int8(), indices=None):
    return pa.DictionaryArray.from_arrays(pa.array(indices, index), pa.array(values, type))


def write(name, *tables, **options):
    with pa.OSFile(f"{name}.arrows", "wb") as f:
        with pa.ipc.new_stream(f, tables[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
            for t in tables:
                for b in t.to_batches() or [pa.RecordBatch.from_pylist([], t.schema)]:
                    w.write_batch(b)
    with open(f"{name}.jsonl", "w") as f:
        for t in tables:
            for row in t.to_pylist():
                f.write(json.dumps(row, default=text, ensure_ascii=False) + "\n")


def text(v):
    if isinstance(v, bytes):
        return v.hex()
    if isinstance(v, datetime.datetime):
        return (v - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)
    return str(v)


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


class T:
    """A table of the given record batches, none of them merged."""

    def __init__(self, *batches):
        self.schema, self.batches = batches[0].schema, batches

    def to_batches(self):
        return self.batches

    def to_pylist(self):
        return [r for b in self.batches for r in b.to_pylist()]


words = ["a", None, "", "a long string, beyond twelve bytes", "ü", "a", None]

write("plain", T(batch(
    i=pa.array(range(ROWS), pa.int64()), s=words, f=[0.5, None, -0.0, 1e300, 2.0, 3.0, 4.0],
    d=pa.array([decimal.Decimal("1.23"), None] * 3 + [decimal.Decimal("-99.99")], pa.decimal128(9, 2)),
    t=pa.array([0, 1, None, -1, 2**40, 5, 6], pa.timestamp("us", "UTC")),
    l=pa.array([[1, None], [], None, [3], [4], [5], [6]], pa.list_(pa.int32())),
    st=pa.array([{"x": 1, "y": "q"}, None, {"x": None, "y": None}] * 2 + [None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
    m=pa.array([[("k", 1)], [], None, [("a", None), ("b", 2)], [], [], []], pa.map_(pa.string(), pa.int64())),
)), T(batch(
    i=pa.array([7], pa.int64()), s=["x"], f=[1.0], d=pa.array([None], pa.decimal128(9, 2)),
    t=pa.array([7], pa.timestamp("us", "UTC")), l=pa.array([None], pa.list_(pa.int32())),
    st=pa.array([None], pa.struct([("x", pa.int64()), ("y", pa.string())])), m=pa.array([None], pa.map_(pa.string(), pa.int64())),
)))

for codec in ("lz4", "zstd"):
    write(codec, T(batch(i=pa.array(range(40), pa.int64()), s=[f"row {n % 5} " + "." * 30 if n % 7 else None for n in range(40)],
                         none=pa.nulls(40, pa.string()), e=[""] * 40)), compression=codec)
write("empty", T(batch(i=pa.array([], pa.int64()), s=pa.array([], pa.string()))))
write("empty_zstd", T(batch(i=pa.array([], pa.int64()), s=pa.array([], pa.string()))), compression="zstd")

# Dictionaries: as they are, growing (deltas), replaced, nested, null among the values (case 7).
write("dictionary", T(batch(
    c=dictionary(["x", "y", None], indices=[0, 1, None, 2, 0, 0, 1]),
    u=dictionary([10, 20], pa.int64(), pa.uint16(), [0, 1, 0, 1, 0, 1, None]),
    l=pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), dictionary(["p", "q"], indices=[0, 1, 0])).take(pa.array([0, 1, 0, 1, None, 0, 1])),
)))
write("dictionary_delta",
      T(batch(c=dictionary(["x", "y"], indices=[0, 1]))), T(batch(c=dictionary(["x", "y", "z"], indices=[2, 0]))),
      T(batch(c=dictionary(["x", "y", "z", "w"], indices=[3, None]))), emit_dictionary_deltas=True)
write("dictionary_replaced",
      T(batch(c=dictionary(["x", "y"], indices=[0, 1]))), T(batch(c=dictionary(["q"], indices=[0, 0]))))

write("views", T(batch(
    s=pa.array(words, pa.string_view()), b=pa.array([w and w.encode() for w in words], pa.binary_view()),
    l=pa.array([[w] for w in words], pa.list_(pa.string_view())),
    st=pa.array([{"x": w} for w in words], pa.struct([("x", pa.string_view())])),
    m=pa.array([[("k", w)] for w in words], pa.map_(pa.string(), pa.string_view())),
)))
write("runs", T(batch(
    r=pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 7], pa.int32()), pa.array(["x", None, "a long string, beyond twelve bytes"])),
    n=pa.RunEndEncodedArray.from_arrays(pa.array([7], pa.int16()), pa.array([42], pa.int64())),
)))
write("lists", T(batch(
    f=pa.array([[1, 2], None, [3, None], [5, 6], [7, 8], [9, 10], [11, 12]], pa.list_(pa.int32(), 2)),
    v=pa.array([[1, 2], None, [], [3], [4], [5], [6]], pa.list_view(pa.int64())),
    lv=pa.array([["x"], None, [], [None], ["y"], ["z"], ["w"]], pa.large_list_view(pa.string())),
    ll=pa.array([[1], None, [], [3], [4], [5], [6]], pa.large_list(pa.int64())),
    ls=pa.array(words, pa.large_string()), nul=pa.nulls(ROWS),
    fs=pa.array([["a", "b"]] * ROWS, pa.list_(pa.string_view(), 2)),
)))
write("kinds", T(batch(
    u8=pa.array([0, 255, None] * 2 + [1], pa.uint8()), u64=pa.array([2**64 - 1, None, 0] * 2 + [1], pa.uint64()),
    h=pa.array([0.5, None, 2] * 2 + [1], pa.float16()), b=[True, None, False] * 2 + [True],
    d32=pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("-9.9")] * 2 + [None], pa.decimal32(2, 1)),
    d64=pa.array([decimal.Decimal("123456.78"), None, decimal.Decimal("-0.01")] * 2 + [None], pa.decimal64(12, 2)),
    fx=pa.array([b"abc", None, b"\x00\xff\x01"] * 2 + [None], pa.binary(3)),
    id=pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=n).bytes for n in range(ROWS)], pa.binary(16))),
    js=pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None] * 3 + ["[]"])),
    b8=pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0] * 2 + [1], pa.int8())),
)))
write("union", T(batch(ok=[1], bad=pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]))))
write("legacy", T(batch(i=pa.array([1, 2], pa.int64()), s=["x", None])), use_legacy_format=True)
