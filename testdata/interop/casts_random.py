"""Random migrations against an oracle in plain Python.

    casts_random.py BIN OUT SEED COUNT

makes COUNT pairs of tables with random schemas, mappings, policies and rows, moves each by ice-migrate and
by the pipe, reads the destinations with PyIceberg, and compares every row, every rejected row and every
refusal with what the oracle says. The oracle knows nothing of the programs' code: it works with fractions,
decimals and calendar dates of Python's own. It prints a line for each pair, and exits 1 if one is wrong.
"""

import datetime as dt
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyiceberg.types as T
from pyiceberg.schema import Schema

from engines import open_catalog

getcontext().prec = 60
ZONE = "America/New_York"
EPOCH = dt.datetime(1970, 1, 1)


class Bad(Exception):
    """A value that the type cannot hold."""


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def nearest32(x):
    """The float32 nearest to a Fraction, half to even; a magnitude beyond the range is bad."""
    guess = float(x)
    if abs(guess) > 3.5e38:
        raise Bad
    bits = struct.unpack("I", struct.pack("f", max(-3.4028234663852886e38, min(3.4028234663852886e38, guess))))[0]
    around = [b for b in (bits - 1, bits, bits + 1) if 0 <= b <= 0xFFFFFFFF and b & 0x7F800000 != 0x7F800000]
    values = [(abs(Fraction(struct.unpack("f", struct.pack("I", b))[0]) - x), b & 1, struct.unpack("f", struct.pack("I", b))[0]) for b in around]
    return min(values)[2]


def number(v, to):
    """A number as another type of numbers has it."""
    odd = isinstance(v, float) and not math.isfinite(v)
    if isinstance(to, (T.FloatType, T.DoubleType)):
        if odd:
            return v
        if isinstance(v, float):
            if isinstance(to, T.DoubleType):
                return v
            try:
                return float32(v)
            except OverflowError as e:
                raise Bad from e
        if isinstance(v, Decimal):
            return float(v) if isinstance(to, T.DoubleType) else nearest32(Fraction(v))
        out = float(v) if isinstance(to, T.DoubleType) else nearest32(Fraction(int(v)))
        if Fraction(out) != v:
            raise Bad
        return out
    if odd:
        raise Bad
    if isinstance(to, T.DecimalType):
        if isinstance(v, float):
            v = Decimal(int(v)) if v == int(v) else Decimal(shortest(v))
        v = Decimal(int(v)) if isinstance(v, (bool, int)) else v
        out = v.quantize(Decimal(1).scaleb(-to.scale)) if v.adjusted() < 45 else v
        if out != v or out != 0 and out.adjusted() >= to.precision - to.scale:
            raise Bad
        return out + 0  # there is no -0
    exact = Fraction(v)
    if isinstance(to, T.BooleanType):
        if exact not in (0, 1):
            raise Bad
        return exact == 1
    bits = 31 if isinstance(to, T.IntegerType) else 63
    if exact.denominator != 1 or not -(2**bits) <= exact < 2**bits:
        raise Bad
    return int(exact)


SINGLE = set()  # floats of the column at hand are float32


def shortest(v):
    """The fewest digits that read back as a float of the column's size."""
    if not SINGLE:
        return repr(v)
    for digits in range(1, 10):
        text = f"{v:.{digits - 1}e}"
        if float32(float(text)) == v:
            return text
    return repr(v)


def text_of(v, of):
    if isinstance(of, T.BooleanType):
        return "true" if v else "false"
    if isinstance(v, float):
        if math.isnan(v):
            return "NaN"
        if math.isinf(v):
            return "-Infinity" if v < 0 else "Infinity"
        if v == 0:
            return "-0.0" if math.copysign(1, v) < 0 else "0.0"
        sign, digits, exponent = Decimal(shortest(v)).normalize().as_tuple()
        sign, digits, point = "-" * sign, "".join(map(str, digits)), len(digits) + exponent
        if 1e-3 <= abs(v) < 1e7:
            whole = (digits[:point] if point > 0 else "") .ljust(max(point, 0), "0") or "0"
            return f"{sign}{whole}.{('0' * -point + digits[max(point, 0):]) or '0'}"
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if isinstance(v, Decimal):
        return f"{v:f}"
    if isinstance(of, T.DateType):
        return (EPOCH + dt.timedelta(days=v)).strftime("%Y-%m-%d").rjust(10, "0")
    if isinstance(of, (T.TimestampType, T.TimestamptzType)):
        moment = EPOCH + dt.timedelta(microseconds=v)
        out = f"{moment.year:04}-{moment:%m-%d %H:%M:%S}"
        if moment.microsecond:
            out += f".{moment.microsecond:06}".rstrip("0")
        return out + ("+00:00" if isinstance(of, T.TimestamptzType) else "")
    return str(v)


def read(text, to):
    """A text as a value of a type."""
    if isinstance(to, T.BinaryType):
        return text.encode()
    text = text.strip(" \t\r\n")
    if isinstance(to, T.BooleanType):
        if text.lower() in ("true", "t", "yes", "y", "1"):
            return True
        if text.lower() in ("false", "f", "no", "n", "0"):
            return False
        raise Bad
    if isinstance(to, (T.IntegerType, T.LongType)):
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise Bad
        return number(int(text), to)
    if isinstance(to, (T.FloatType, T.DoubleType, T.DecimalType)):
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            raise Bad
        if isinstance(to, T.DecimalType):
            return number(Decimal(text), to)
        if isinstance(to, T.DoubleType):
            if math.isinf(float(text)):
                raise Bad
            return float(text)
        out = nearest32(Fraction(Decimal(text)))
        return -0.0 if out == 0 and text.startswith("-") else out
    m = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(Z|[+-]\d\d:\d\d)?", text)
    if not m or m[8] and not m[4]:
        raise Bad
    try:
        moment = dt.datetime(int(m[1]), int(m[2]), int(m[3]), int(m[4] or 0), int(m[5] or 0), int(m[6] or 0), int((m[7] or "0").ljust(6, "0")))
    except ValueError as e:
        raise Bad from e
    micros = (moment - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(to, T.DateType):
        if m[4] or m[8]:
            raise Bad
        return micros // 86_400_000_000
    if isinstance(to, T.TimestampType):
        if m[8]:
            raise Bad
        return micros
    if not m[8]:
        return instant(micros)
    if m[8] == "Z":
        return micros
    offset = (int(m[8][1:3]) * 60 + int(m[8][4:6])) * 60_000_000
    return micros - offset if m[8][0] == "+" else micros + offset


def instant(local):
    """The one instant at which the zone's clocks show a local time."""
    moment = (EPOCH + dt.timedelta(microseconds=local)).replace(tzinfo=ZoneInfo(ZONE))
    found = set()
    for fold in (0, 1):
        at = local - moment.replace(fold=fold).utcoffset() // dt.timedelta(microseconds=1)
        if shown(at) == local:
            found.add(at)
    if len(found) != 1:
        raise Bad
    return found.pop()


def shown(at):
    moment = (EPOCH + dt.timedelta(microseconds=at)).replace(tzinfo=dt.timezone.utc).astimezone(ZoneInfo(ZONE))
    return (moment.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)


NUMBERS = (T.BooleanType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType)
STAMPS = (T.DateType, T.TimestampType, T.TimestamptzType)


def leaf(v, of, to):
    SINGLE.clear()
    if isinstance(of, T.FloatType):
        SINGLE.add(1)
    if of == to:
        return v
    if isinstance(of, NUMBERS) and isinstance(to, NUMBERS):
        return number(v, to)
    if isinstance(of, T.StringType):
        return read(v, to)
    if isinstance(to, T.StringType):
        if isinstance(v, bytes):
            try:
                return v.decode()
            except UnicodeDecodeError as e:
                raise Bad from e
        return text_of(v, of)
    day = 86_400_000_000
    if isinstance(of, T.DateType):
        return v * day if isinstance(to, T.TimestampType) else instant(v * day)
    if isinstance(to, T.DateType):
        return (v if isinstance(of, T.TimestampType) else shown(v)) // day
    return instant(v) if isinstance(to, T.TimestamptzType) else shown(v)


def casts(of):
    """The types that a type is cast to."""
    if isinstance(of, NUMBERS):
        return [*PLAIN[:8], T.StringType()]
    if isinstance(of, STAMPS):
        return [*PLAIN[8:11], T.StringType()]
    if isinstance(of, T.StringType):
        return PLAIN
    return [T.BinaryType(), T.StringType()]


PLAIN = [T.BooleanType(), T.IntegerType(), T.LongType(), T.FloatType(), T.DoubleType(), T.DecimalType(9, 2), T.DecimalType(18, 4), T.DecimalType(38, 0),
         T.DateType(), T.TimestampType(), T.TimestamptzType(), T.StringType(), T.BinaryType()]


class Maker:
    """Random pairs of columns: source and destination types, and how a value of the one becomes the other."""

    def __init__(self, seed, policy):
        self.rng, self.policy, self.ids, self.nulled = random.Random(seed), policy, 0, 0

    def id(self):
        self.ids += 1
        return self.ids

    def pair(self, depth):
        """(source type, destination type, make a value, convert a value)."""
        kind = self.rng.random()
        if depth and kind < 0.15:
            of, to, make, turn = self.pair(depth - 1)
            return (T.ListType(self.id(), of, False), T.ListType(self.id(), to, False),
                    lambda: [self.maybe(make) for _ in range(self.rng.randrange(4))], lambda v: [self.turned(e, turn) for e in v])
        if depth and kind < 0.25:
            of, to, make, turn = self.pair(depth - 1)
            key = T.StringType()
            return (T.MapType(self.id(), key, self.id(), of, False), T.MapType(self.id(), key, self.id(), to, False),
                    lambda: [(f"k{i}", self.maybe(make)) for i in range(self.rng.randrange(3))], lambda v: [(k, self.turned(e, turn)) for k, e in v])
        if depth and kind < 0.4:
            parts = [(f"f{i}", *self.pair(depth - 1)) for i in range(1 + self.rng.randrange(3))]
            there = parts[:]
            self.rng.shuffle(there)
            return (T.StructType(*(T.NestedField(self.id(), n, of, required=False) for n, of, *_ in parts)),
                    T.StructType(*(T.NestedField(self.id(), n, to, required=False) for n, _, to, *_ in there)),
                    lambda: {n: self.maybe(make) for n, _, _, make, _ in parts},
                    lambda v: {n: self.turned(v[n], turn) for n, _, _, _, turn in there})
        of = self.rng.choice(PLAIN)
        to = self.rng.choice(casts(of)) if self.rng.random() < 0.75 else of
        return of, to, lambda: self.value(of, to), lambda v: leaf(v, of, to)

    def maybe(self, make):
        return None if self.rng.random() < 0.15 else make()

    def turned(self, v, turn):
        """A value that may be null, by the policy for what does not fit."""
        if v is None:
            return None
        try:
            return turn(v)
        except Bad:
            if self.policy != "null":
                raise
            self.nulled += 1
            return None

    def value(self, of, to):
        rng = self.rng
        small = rng.random() < 0.8
        if isinstance(of, T.BooleanType):
            return rng.random() < 0.5
        if isinstance(of, (T.IntegerType, T.LongType)):
            top = 2**31 if isinstance(of, T.IntegerType) else 2**63
            return rng.randrange(-2, 3) if small else rng.choice([top - 1, -top, 2**24 + 1, 9_999_999, rng.randrange(-top, top)])
        if isinstance(of, (T.FloatType, T.DoubleType)):
            v = rng.choice([0.0, 1.0, -2.0, 12.25, 99.0]) if small else rng.choice([-0.0, 0.1, 1e-7, 123456789.0, 3e38, math.nan, math.inf, -math.inf, 2.0**31, rng.uniform(-1e6, 1e6)])
            return float32(v) if isinstance(of, T.FloatType) else v
        if isinstance(of, T.DecimalType):
            top = 10**of.precision
            return Decimal(rng.choice([0, 100, -100, 10000]) if small and of.scale else rng.randrange(-9, 9) if small else rng.choice([top - 1, 1 - top, rng.randrange(-top, top)])).scaleb(-of.scale)
        if isinstance(of, T.DateType):
            return rng.choice([0, -1, 19782, 2932896, -719162 + 400, rng.randrange(-100_000, 100_000)])
        if isinstance(of, (T.TimestampType, T.TimestamptzType)):
            return rng.choice([0, -1, 1710054000000000, 1710052200000000, 1730595600000000 - 14400000000, 1730613600000000, rng.randrange(-(10**16), 10**17)])
        if isinstance(of, T.BinaryType):
            return rng.choice([b"", b"abc", "ü".encode(), b"\xff"])
        return self.text(to, small)

    def text(self, to, small):
        if not small:
            return self.rng.choice(["", "x", "1.5", "-0", "1e3", "99999999999", "2024-02-30", " 7 ", "NaNa", "2024-03-10 02:30:00", "12 3", "0x1"])
        if isinstance(to, T.BooleanType):
            return self.rng.choice(["true", "F", "yes", "0"])
        if isinstance(to, (T.IntegerType, T.LongType)):
            return self.rng.choice(["0", "-12", "+7", " 5 ", "2147483647"])
        if isinstance(to, (T.FloatType, T.DoubleType, T.DecimalType)):
            return self.rng.choice(["0", "12", "-3.0", ".50", "1e2", "100"]) if not isinstance(to, T.DecimalType) or to.scale else self.rng.choice(["0", "12", "-3.0", "1e2"])
        if isinstance(to, T.DateType):
            return self.rng.choice(["1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31"])
        if isinstance(to, T.TimestampType):
            return self.rng.choice(["1970-01-01", "2024-02-29T12:30:00.5", "1969-12-31 23:59:59.999999"])
        if isinstance(to, T.TimestamptzType):
            return self.rng.choice(["2024-02-29T12:30:00Z", "1969-12-31 23:59:59.999999+05:30", "2024-06-01 00:00:00"])
        return self.rng.choice(["", "abc", "ü"])


def arrow(of):
    if isinstance(of, T.StructType):
        return pa.struct([pa.field(f.name, arrow(f.field_type)) for f in of.fields])
    if isinstance(of, T.ListType):
        return pa.list_(pa.field("element", arrow(of.element_type)))
    if isinstance(of, T.MapType):
        return pa.map_(arrow(of.key_type), arrow(of.value_type))
    if isinstance(of, T.DecimalType):
        return pa.decimal128(of.precision, of.scale)
    return {T.BooleanType: pa.bool_(), T.IntegerType: pa.int32(), T.LongType: pa.int64(), T.FloatType: pa.float32(), T.DoubleType: pa.float64(),
            T.DateType: pa.date32(), T.TimestampType: pa.timestamp("us"), T.TimestamptzType: pa.timestamp("us", "UTC"), T.StringType: pa.string(),
            T.BinaryType: pa.binary()}[type(of)]


def plain(v, of):
    """A value that PyIceberg read, in the oracle's terms."""
    if v is None:
        return None
    if isinstance(of, T.StructType):
        return {f.name: plain(v[f.name], f.field_type) for f in of.fields}
    if isinstance(of, T.ListType):
        return [plain(e, of.element_type) for e in v]
    if isinstance(of, T.MapType):
        return [(k, plain(e, of.value_type)) for k, e in v]
    if isinstance(of, T.DateType):
        return (v - EPOCH.date()).days
    if isinstance(of, (T.TimestampType, T.TimestamptzType)):
        return (v.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    return v


def stated(v):
    """A value as text that tells apart what differs: -0.0 from 0.0, True from 1, and NaN from nothing."""
    return repr(v)


def run(line, folder, path):
    env = {"PATH": path + ":" + os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8", "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=env, capture_output=True, text=True, errors="backslashreplace", check=False)


def migration(number, seed, src, dst, folder, path):
    """One pair of tables, moved in two forms. Returns what is wrong, and what it was about."""
    rng = random.Random(seed)
    policy = rng.choice(["error", "null", "reject", "reject"])
    maker = Maker(seed, policy)
    columns, flags = [], [f"--assume-timezone {ZONE}", f"--on-cast-error {policy}", "--on-missing-in-source null"]
    for i in range(1 + rng.randrange(4)):
        columns.append((f"c{i}", f"d{i}" if rng.random() < 0.3 else f"c{i}", *maker.pair(2)))
    for name, there, *_ in columns:
        if name != there:
            flags.append(f"--column-mapping {name}:{there}")
    extra = rng.choice(["drop", "ignore", "auto_add", "none"])
    source = [T.NestedField(1000, "id", T.LongType(), required=False)]
    source += [T.NestedField(2000 + i, n, of, required=False) for i, (n, _, of, *_) in enumerate(columns)]
    if extra != "none":
        source.append(T.NestedField(3000, "extra", T.StringType(), required=False))
        flags.append("--drop extra" if extra == "drop" else f"--on-missing-in-dest {extra}")
    target = [T.NestedField(1, "ID" if rng.random() < 0.3 else "id", T.LongType(), required=False)]
    if target[0].name == "ID":
        flags.append("--ignore-case")
    target += [T.NestedField(4000 + i, n, to, required=False) for i, (_, n, _, to, *_) in enumerate(columns)]
    target.append(T.NestedField(5000, "filled", T.IntegerType(), required=False))
    rng.shuffle(target)

    rows = []
    for k in range(rng.randrange(5, 40)):
        row = {"id": k, "extra": f"e{k}"}
        row.update((n, maker.maybe(make)) for n, _, _, _, make, _ in columns)
        rows.append(row)
    table = src.create_table(f"lab.r{number}", Schema(*source))
    cut = len(rows) // 2
    for part in (rows[:cut], rows[cut:]):
        if part:
            schema = pa.schema([pa.field(f.name, arrow(f.field_type)) for f in source])
            table.append(pa.Table.from_arrays([column([r[f.name] for r in part], f.field_type) for f in source], schema=schema))
    # What PyIceberg wrote is the source: it makes empty lists of some that are null.
    rows = [{f.name: plain(r[f.name], f.field_type) for f in source} for r in sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["id"])]
    want, bad = [], []
    for k, row in enumerate(rows):
        out = {f.name: None for f in target}
        out[next(f.name for f in target if f.field_id == 1)] = k
        try:
            out.update((there, maker.turned(row[n], turn)) for n, there, _, _, _, turn in columns)
        except Bad:
            bad.append(k)
            continue
        if extra == "auto_add":
            out["extra"] = f"e{k}"
        want.append(out)

    wrong = []
    for form in ("one", "pipe"):
        name = f"r{number}_{form}"
        dst.create_table(f"lab.{name}", Schema(*target))
        rejects = os.path.join(folder, name + ".jsonl")
        all_flags = " ".join(flags + ([f"--reject-file {rejects}"] if policy == "reject" else []))
        if form == "one":
            line = f"ice-migrate --src-catalog sqlite --src-db-path src.db --src-namespace lab --src-table r{number} --dst-catalog sqlite --dst-db-path dst.db --dst-namespace lab --dst-table {name} --batch-rows 7 {all_flags}"
        else:
            line = f"ice-scan --catalog sqlite --db-path src.db --namespace lab --table r{number} --batch-rows 7 --record-batch-rows 3 | ice-reconcile --catalog sqlite --db-path dst.db --namespace lab --table {name} {all_flags} | ice-write"
        done = run(line, folder, path)
        if policy == "error" and bad:
            first = len([r for r in rows[: bad[0]]])
            group = first if first < cut else first - cut
            if done.returncode == 0 or f"row {group} of row group 0 of file" not in done.stderr:
                wrong.append(f"{form}: row {bad[0]} was to stop it: exit {done.returncode}, {done.stderr[-600:]}")
            continue
        if done.returncode:
            wrong.append(f"{form}: exit {done.returncode}: {done.stderr[-900:]}")
            continue
        there = dst.load_table(f"lab.{name}")
        key = next(f.name for f in there.schema().fields if f.name in ("id", "ID"))
        got = sorted(there.scan().to_arrow().to_pylist(), key=lambda r: r[key])
        types = {f.name: f.field_type for f in there.schema().fields}
        got = [{n: plain(r[n], types[n]) for n in types} for r in got]
        for g, w in zip(got, want):
            for n in w:
                if stated(g[n]) != stated(w[n]):
                    wrong.append(f"{form}: row {g[key]}: {n} ({types[n]}) is {stated(g[n])}, want {stated(w[n])}; source {rows[g[key]]}")
        if len(got) != len(want) or set(types) != set(want[0] if want else types):
            wrong.append(f"{form}: {len(got)} rows of {list(types)}, want {len(want)}")
        if policy == "reject":
            with open(rejects, encoding="utf-8") as lines:
                said = [json.loads(x)["source"]["id"] for x in lines]
            if said != bad:
                wrong.append(f"{form}: rejected {said}, want {bad}")
    about = f"{policy}, {len(rows)} rows, {len(bad)} do not fit, {maker.nulled} nulls; " + ", ".join(f"{of} to {to}" for _, _, of, to, *_ in columns)
    return wrong, about


def column(values, of):
    typ = arrow(of)
    if isinstance(of, T.DateType):
        return pa.array(values, pa.int32()).cast(typ)
    if isinstance(of, (T.TimestampType, T.TimestamptzType)):
        return pa.array(values, pa.int64()).cast(typ)
    return pa.array([raw(v, of) for v in values], typ)


def raw(v, of):
    """A value of the oracle as pyarrow takes it inside of something."""
    if v is None:
        return None
    if isinstance(of, T.StructType):
        return {f.name: raw(v[f.name], f.field_type) for f in of.fields}
    if isinstance(of, T.ListType):
        return [raw(e, of.element_type) for e in v]
    if isinstance(of, T.MapType):
        return [(k, raw(e, of.value_type)) for k, e in v]
    if isinstance(of, T.DateType):
        return (EPOCH + dt.timedelta(days=v)).date()
    if isinstance(of, T.TimestampType):
        return EPOCH + dt.timedelta(microseconds=v)
    if isinstance(of, T.TimestamptzType):
        return (EPOCH + dt.timedelta(microseconds=v)).replace(tzinfo=dt.timezone.utc)
    return v


def main(path, folder, seed, count):
    os.makedirs(folder, exist_ok=True)
    catalogs = []
    for name in ("src", "dst"):
        c = open_catalog(os.path.join(folder, name + ".db"), name, "file://" + os.path.join(folder, name + "_wh"))
        c.create_namespace("lab")
        catalogs.append(c)
    failed = 0
    for i in range(count):
        wrong, about = migration(i, seed + i, *catalogs, folder, path)
        failed += bool(wrong)
        print(f"seed {seed + i}: {'WRONG' if wrong else 'right'}: {about}")
        for text in wrong[:4]:
            print("   ", text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
