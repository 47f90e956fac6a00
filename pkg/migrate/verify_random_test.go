package migrate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/migrate"
)

// layoutCases is how many pairs of equal tables TestEqualTables makes; ICEPIPE_TORTURE=1 makes 1,000.
const layoutCases = 20

// A kindOf is a column that random tables have: its type, and values of it as JSON, some of which are easily
// taken for one another.
type kindOf struct {
	name       string
	typ        iceberg.Type
	values     []string
	transforms []iceberg.Transform
}

func kindsOf() []kindOf {
	times := []iceberg.Transform{iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}, iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 3}}
	same := func(more ...iceberg.Transform) []iceberg.Transform {
		return append(more, iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 4}, iceberg.VoidTransform{})
	}
	return []kindOf{
		{"b", prim.Bool, []string{"true", "false"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{"i", prim.Int32, []string{"0", "-1", "2147483647", "-2147483648", "7"}, same(iceberg.TruncateTransform{Width: 5})},
		{"l", prim.Int64, []string{"0", "-1", "9223372036854775807", "4294967296", "-9223372036854775808"}, same(iceberg.TruncateTransform{Width: 100})},
		{"f", prim.Float32, []string{"0", "-0.0", `"NaN"`, "1.5", `"Inf"`, "0.1"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{"d", prim.Float64, []string{"0", "-0.0", `"NaN"`, "1.5", `"-Inf"`, "0.1"}, []iceberg.Transform{iceberg.IdentityTransform{}}},
		{"small", iceberg.DecimalTypeOf(9, 2), []string{`"0.00"`, `"-0.01"`, `"9999999.99"`, `"1.10"`}, same(iceberg.TruncateTransform{Width: 50})},
		{"big", iceberg.DecimalTypeOf(38, 10), []string{`"0.0000000000"`, `"-9999999999999999999999999999.9999999999"`, `"1.0000000001"`}, same()},
		{"day", prim.Date, []string{`"1969-12-31"`, `"1970-01-01"`, `"2024-02-29"`, `"9999-12-31"`}, []iceberg.Transform{iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.IdentityTransform{}}},
		{"clock", prim.Time, []string{`"00:00:00.000000"`, `"23:59:59.999999"`}, same()},
		{"ts", prim.Timestamp, []string{`"1969-12-31T23:59:59.999999"`, `"1970-01-01T00:00:00"`, `"2024-02-29T01:02:03.000004"`}, times},
		{"tz", prim.TimestampTz, []string{`"1969-12-31T23:59:59.999999Z"`, `"2024-02-29T01:02:03.000004Z"`, `"2024-02-29T02:02:03.000004Z"`}, times},
		{"s", prim.String, []string{`""`, `"null"`, `"a"`, `"a "`, `"größer"`, `"1"`, `"a/b=c%"`}, same(iceberg.TruncateTransform{Width: 1})},
		{"bin", prim.Binary, []string{`""`, `"AAEC"`, `"/w=="`}, same(iceberg.TruncateTransform{Width: 1})},
		{"u", prim.UUID, []string{`"f47ac10b-58cc-4372-a567-0e02b2c3d479"`, `"00000000-0000-0000-0000-000000000000"`}, same()},
		{"fx", iceberg.FixedTypeOf(3), []string{`"AAEC"`, `"////"`}, same()},
		{"st", &iceberg.StructType{FieldList: []iceberg.NestedField{field(0, "x", prim.Int32), field(0, "y", prim.String)}},
			[]string{`{"x":1,"y":null}`, `{"x":null,"y":"1"}`, `{"x":null,"y":""}`, `{"x":null,"y":null}`}, nil},
		{"li", &iceberg.ListType{Element: prim.String}, []string{`[]`, `[null]`, `[""]`, `["a","b"]`, `["b","a"]`, `["ab"]`}, nil},
		{"m", &iceberg.MapType{KeyType: prim.String, ValueType: prim.Int64}, []string{`[]`, `[{"key":"a","value":1},{"key":"b","value":null}]`, `[{"key":"b","value":null},{"key":"a","value":1}]`, `[{"key":"a","value":null}]`}, nil},
		{"deep", &iceberg.ListType{Element: &iceberg.StructType{FieldList: []iceberg.NestedField{field(0, "k", prim.Float64), field(0, "v", &iceberg.ListType{Element: iceberg.DecimalTypeOf(9, 2)})}}},
			[]string{`[]`, `[{"k":-0.0,"v":["1.00",null]}]`, `[{"k":0,"v":["1.00",null]}]`, `[{"k":null,"v":[]},{"k":1,"v":null}]`}, nil},
	}
}

// A world is a random table: its columns behind an id, and rows of it.
type world struct {
	rnd     *rand.Rand
	columns []kindOf
	rows    [][]string // by column, the id first
}

func newWorld(seed uint64) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 11))}
	all := kindsOf()
	for range 2 + w.rnd.IntN(5) {
		at := w.rnd.IntN(len(all))
		w.columns = append(w.columns, all[at])
		all = slices.Delete(all, at, at+1)
	}
	for i := range 4 + w.rnd.IntN(40) {
		row := []string{strconv.Itoa(i)}
		for _, c := range w.columns {
			v := "null"
			if w.rnd.IntN(5) > 0 {
				v = c.values[w.rnd.IntN(len(c.values))]
			}
			row = append(row, v)
		}
		w.rows = append(w.rows, row)
	}
	return w
}

func (w *world) schema() *iceberg.Schema {
	fields := []iceberg.NestedField{field(1, "id", prim.Int64)}
	for i, c := range w.columns {
		fields = append(fields, field(i+2, c.name, c.typ))
	}
	s, err := iceberg.AssignFreshSchemaIDs(iceberg.NewSchema(0, fields...), nil)
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) objects(rows [][]string) []string {
	var out []string
	for _, row := range rows {
		parts := []string{`"id":` + row[0]}
		for i, c := range w.columns {
			parts = append(parts, fmt.Sprintf("%q:%s", c.name, row[i+1]))
		}
		out = append(out, "{"+strings.Join(parts, ",")+"}")
	}
	return out
}

// shuffled are the rows in another order.
func (w *world) shuffled() [][]string {
	out := slices.Clone(w.rows)
	w.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// partition is a random transform of a random column that takes one; false where none does. A spec of version 1
// keeps its former fields, as void: the library lets no other field have the same column, and writes no
// manifest of two fields that are fixed bytes in Avro.
func (w *world) partition(now *table.Table) (string, iceberg.Transform, bool) {
	var able []kindOf
	bytes := []string{"small", "big", "u", "fx"}
	var has []string
	spec := now.Spec()
	for _, f := range spec.Fields() {
		name, _ := now.Schema().FindColumnName(f.SourceIDs[0])
		has = append(has, name)
	}
	taken := func(c kindOf) bool {
		return slices.Contains(has, c.name) || slices.Contains(bytes, c.name) && slices.ContainsFunc(has, func(n string) bool { return slices.Contains(bytes, n) })
	}
	for _, c := range w.columns {
		if len(c.transforms) > 0 && !taken(c) {
			able = append(able, c)
		}
	}
	if len(able) == 0 {
		return "", nil, false
	}
	c := able[w.rnd.IntN(len(able))]
	return c.name, c.transforms[w.rnd.IntN(len(c.transforms))], true
}

// fill makes the tables base, of all rows, and other, of the same rows in another layout.
func (w *world) fill(t *testing.T, s *store) (base, other string) {
	t.Helper()
	n := w.rnd.Uint64()
	base, other = fmt.Sprintf("base%d", n), fmt.Sprintf("other%d", n)
	version := []string{"1", "2", "2", "3"}[w.rnd.IntN(4)]
	s.create(t, base, w.schema(), catalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": "merge-on-read"}))
	s.put(t, base, w.objects(w.rows), 1+w.rnd.IntN(3))
	if w.rnd.IntN(3) == 0 {
		w.deletes(t, s, base)
	}
	s.create(t, other, w.schema(), catalog.WithProperties(iceberg.Properties{"format-version": version,
		"write.parquet.compression-codec": []string{"zstd", "snappy", "uncompressed"}[w.rnd.IntN(3)], "write.parquet.row-group-limit": "7"}))
	half := w.rnd.IntN(len(w.rows))
	rows := w.shuffled()
	w.respec(t, s, other)
	w.move(t, s, other, rows[:half])
	if w.rnd.IntN(2) == 0 {
		w.respec(t, s, other)
	}
	w.move(t, s, other, rows[half:])
	return base, other
}

// deletes adds rows and takes them out again by position deletes.
func (w *world) deletes(t *testing.T, s *store, name string) {
	t.Helper()
	var gone [][]string
	for _, row := range w.rows[:2] {
		gone = append(gone, append([]string{"1000"}, row[1:]...))
	}
	s.insert(t, name, w.objects(append(gone, w.rows[0]))...)
	for _, where := range []iceberg.BooleanExpression{iceberg.EqualTo(iceberg.Reference("id"), int64(1000)), iceberg.EqualTo(iceberg.Reference("id"), int64(0))} {
		_, err := s.load(t, name).Delete(t.Context(), where, nil)
		must(t, err)
	}
	s.insert(t, name, w.objects(w.rows[:1])...)
}

// respec partitions a table by something else.
func (w *world) respec(t *testing.T, s *store, name string) {
	t.Helper()
	column, transform, ok := w.partition(s.load(t, name))
	if !ok {
		return
	}
	tx := s.load(t, name).NewTransaction()
	spec := tx.UpdateSpec(true)
	for f := range names(s.load(t, name).Spec()) {
		spec = spec.RemoveField(f)
	}
	must(t, spec.AddField(column, transform, fmt.Sprintf("p%d", w.rnd.Uint32())).Commit())
	_, err := tx.Commit(t.Context())
	must(t, err)
}

// move writes rows into a table by a migration.
func (w *world) move(t *testing.T, s *store, name string, rows [][]string) {
	t.Helper()
	if len(rows) == 0 {
		return
	}
	from := fmt.Sprintf("part%d", w.rnd.Uint64())
	s.create(t, from, w.schema())
	s.put(t, from, w.objects(rows), 1+w.rnd.IntN(2))
	j := newJob(s, s, int64(8+w.rnd.IntN(20)))
	j.src, j.dst = from, name
	_, err := j.one(t.Context(), t)
	must(t, err)
}

// put appends rows as several files.
func (s *store) put(t *testing.T, name string, objects []string, files int) {
	t.Helper()
	for part := range slices.Chunk(objects, (len(objects)+files-1)/files) {
		s.insert(t, name, part...)
	}
}

func layouts() int {
	if os.Getenv("ICEPIPE_TORTURE") != "" {
		return 1000
	}
	if testing.Short() {
		return layoutCases / 4
	}
	return layoutCases
}

// TestEqualTables: tables of the same rows in another order, in other files, batches, encodings and partitions,
// with rows deleted, agree by every method.
func TestEqualTables(t *testing.T) {
	s := newStore(t)
	for seed := range uint64(layouts()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(seed)
			base, other := w.fill(t, s)
			n := int64(len(w.rows))
			for _, o := range []migrate.VerifyOptions{
				{}, {Method: migrate.MethodPartitionHash}, {Method: migrate.MethodSample, SampleSize: int64(1 + w.rnd.IntN(60))},
				{Method: migrate.MethodSample, SampleSize: 3, Keys: []string{"id"}}, {Method: migrate.MethodDiff},
				{Method: migrate.MethodDiff, Keys: []string{"id"}}, {Method: migrate.MethodAuto},
			} {
				ways := [][2]string{{base, other}, {other, base}}
				if seed%4 > 0 {
					ways = ways[seed%2:][:1]
				}
				for _, way := range ways {
					v, err := migrate.Verify(t.Context(), s.open(t, way[0]), s.open(t, way[1]), o)
					if err != nil {
						t.Fatalf("%+v: %v", o, err)
					}
					if !v.Matches || len(v.MismatchedPartitions) > 0 || *v.SourceCount != n || *v.DestCount != n {
						t.Fatalf("%q %v, columns %v: a false alarm: %+v", v.Method, o.Keys, w.schema(), v)
					}
				}
			}
		})
	}
}

// names are those of a spec's fields that tell rows apart.
func names(spec iceberg.PartitionSpec) map[string]bool {
	out := map[string]bool{}
	for _, f := range spec.Fields() {
		if _, void := f.Transform.(iceberg.VoidTransform); !void {
			out[f.Name] = true
		}
	}
	return out
}
