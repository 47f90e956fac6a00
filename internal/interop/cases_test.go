//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// The two ways to move a table.
const (
	byPipe    = "pipe"
	byMigrate = "migrate"
)

// A move is one case: a table of the fixtures, brought to its destination in one way.
type move struct {
	fixture *fixture
	label   string // which of the fixture's moves; "" the plain one
	way     string

	catalog, db string // the source
	nameless    bool   // the source's catalog name is left out
	named       bool   // both catalogs are configured by the environment and named in the short form
	headerOnly  bool   // ice-write is told nothing: the stream's header names the destination
	checkpoint  bool

	batchRows  int
	recordRows int         // 0: the program's default
	scan       [][2]string // flags of ice-scan without "--" and their values
	plan       []string    // flags of the reconciler
	write      []string    // flags of the program that writes

	want      rowSet         // what must be found in the destination; nil when it must be refused
	rows      int            // rows that the move carries
	refusal   *regexp.Regexp // what the refusal must say; nil when it must not be refused
	mayRefuse bool           // a refusal is as right as the rows
	begun     bool           // the refusal may come when earlier batches are committed
}

// id names the move in files, tables and messages.
func (m *move) id() string {
	if m.label == "" {
		return m.fixture.Name + "__" + m.way
	}
	return m.fixture.Name + "__" + m.label + "__" + m.way
}

// name is the move's name as a subtest.
func (m *move) name() string {
	if m.label == "" {
		return m.fixture.Name + "/" + m.way
	}
	return m.fixture.Name + "." + m.label + "/" + m.way
}

// refusals holds what the error must say, by fixture and label: the reason, not its wording.
var refusals = map[string]string{
	"cast_decimal_narrow":   `100.*decimal\(4, ?2\)`,
	"cast_narrow":           `(?i)long|int|double|float`,
	"cast_zone":             `timestamp`,
	"encrypted_destination": `(?i)encrypt`,
	"encrypted_file":        `(?i)encrypt`,
	"eq_float":              `(?i)equality.*(float|double)|(float|double).*equality`,
	"format_avro":           `(?i)avro`,
	"format_mixed":          `(?i)avro|orc`,
	"format_orc":            `(?i)orc`,
	"names_odd_partition":   `(?i)partition|field name`,
	"names_reserved":        `_file|_pos|_row_id|_partition`,
	"no_mapping":            `(?i)field id|name mapping`,
	"nulls_for_required":    `(?i)null.*required|required.*null`,
	"type_variant":          `(?i)variant`,
	"up_float_key":          `"k" is a double.*--float-keys`,

	"catalog_layouts.nameless": `other.*src|src.*other`,
	"schema_differs.strict":    `extra|missing`,
	"snap_expired.gone":        `\d{6,}`,
	"snap_history.wrong_ref":   `nowhere`,
	"snap_schemas.strict":      `"?v"?`,
}

// moves lists all cases of a fixture, one way after the other.
func (l *lab) moves(t *testing.T, f *fixture) []*move {
	t.Helper()
	var list []*move
	for _, way := range []string{byPipe, byMigrate} {
		list = append(list, l.plain(t, f, way))
		list = append(list, l.snapshots(t, f, way)...)
		list = append(list, l.special(t, f, way)...)
	}
	return list
}

// plain moves the current rows of a fixture. How the programs are called differs from fixture to
// fixture, by a hash of the name, so that every way of calling them meets many tables.
func (l *lab) plain(t *testing.T, f *fixture, way string) *move {
	t.Helper()
	sum := fnv.New32a()
	sum.Write([]byte(f.Name))
	h := sum.Sum32() >> 3
	m := &move{
		fixture: f, way: way, catalog: f.Catalog, db: filepath.Join(l.out, f.DB), rows: f.Rows,
		batchRows: 7, named: h%5 == 0, nameless: h%7 == 0 && h%5 != 0 && len(f.AlsoIn) == 0, headerOnly: h%3 == 0, checkpoint: h%2 == 0,
		mayRefuse: f.MayRefuse != "",
	}
	if f.Rows > 60 {
		m.batchRows = f.Rows/8 | 1
	}
	if f.Rows <= 700 && h%4 < 2 {
		m.recordRows = 3
	}
	for _, from := range slices.Sorted(maps.Keys(f.ColumnMapping)) {
		m.plan = append(m.plan, "--column-mapping", from+":"+f.ColumnMapping[from])
	}
	if f.ExpectError != "" || f.MayRefuse != "" {
		m.refusal = refusal(t, f.Name)
	}
	if f.ExpectError == "" {
		m.want = l.expected(t, f, "source", nil)
	}
	switch f.Name {
	case "append_populated", "cast_decimal_scale":
		m.want = l.expected(t, f, "after", nil)
	case "schema_differs": // of "extra" the destination has no column
		m.scan = [][2]string{{"select", "id,old_name,f,at"}}
		m.plan = append(m.plan, "--on-missing-in-source", "null")
		m.want = l.expected(t, f, "after", nil)
	case "up_added":
		m.plan = append(m.plan, "--on-missing-in-dest", "auto_add")
	}
	return m
}

// snapshots moves each snapshot whose rows were written down, and each branch and tag.
func (l *lab) snapshots(t *testing.T, f *fixture, way string) []*move {
	t.Helper()
	var list []*move
	for _, label := range slices.Sorted(maps.Keys(f.Snapshots)) {
		if _, known := f.Expected[label]; !known || f.ExpectError != "" {
			continue
		}
		m := l.plain(t, f, way)
		m.label, m.rows, m.want = "at_"+label, f.RowCounts[label], l.expected(t, f, label, nil)
		m.scan = append(m.scan, [2]string{"snapshot", strconv.FormatInt(f.Snapshots[label], 10)})
		if f.Name == "snap_schemas" { // the old schema is id, v; v is called w now, and n came later
			m.plan = append(m.plan, "--column-mapping", "v:w", "--on-missing-in-source", "null")
			m.want = l.expected(t, f, label, func(row map[string]any) {
				row["w"], row["n"] = row["v"], nil
				delete(row, "v")
			})
		}
		list = append(list, m)
	}
	for _, ref := range slices.Sorted(maps.Keys(f.Refs)) {
		label := "source"
		for name, id := range f.Snapshots {
			if _, known := f.Expected[name]; known && id == f.Refs[ref] {
				label = name
			}
		}
		m := l.plain(t, f, way)
		m.label, m.rows, m.want = "ref_"+ref, f.RowCounts[label], l.expected(t, f, label, nil)
		m.scan = append(m.scan, [2]string{"ref", ref})
		list = append(list, m)
	}
	if f.Expired != 0 {
		m := l.refused(t, f, way, "gone")
		m.scan = append(m.scan, [2]string{"snapshot", strconv.FormatInt(f.Expired, 10)})
		list = append(list, m)
	}
	return list
}

// special moves what the manifest says of single fixtures.
func (l *lab) special(t *testing.T, f *fixture, way string) []*move {
	t.Helper()
	var list []*move
	for _, other := range f.AlsoIn {
		m := l.plain(t, f, way)
		m.label, m.named, m.catalog, m.db = "in_"+other.Catalog, false, other.Catalog, filepath.Join(l.out, other.DB)
		list = append(list, m)
	}
	switch f.Name {
	case "cast_decimal_narrow":
		list = append(list, l.asked(t, f, way, "null", "--on-cast-error", "null"))
	case "cast_zone":
		list = append(list, l.asked(t, f, way, "utc", "--assume-timezone", "UTC"))
	case "catalog_layouts": // two catalogs in one file hold the table
		m := l.refused(t, f, way, "nameless")
		m.named, m.nameless = false, true
		list = append(list, m)
	case "schema_differs":
		strict := l.refused(t, f, way, "strict")
		strict.scan, strict.plan = nil, []string{"--column-mapping", "old_name:name"}
		grown := l.plain(t, f, way)
		grown.label, grown.scan = "auto_add", nil
		grown.plan = append(grown.plan, "--on-missing-in-dest", "auto_add")
		grown.want = l.expected(t, f, "after", func(row map[string]any) {
			row["extra"] = fmt.Sprintf("e%s", row["id"].(json.Number)) // as the fixture's source has it
		})
		list = append(list, strict, grown)
	case "snap_history":
		m := l.refused(t, f, way, "wrong_ref")
		m.scan = append(m.scan, [2]string{"ref", "nowhere"})
		list = append(list, m)
	case "snap_schemas":
		m := l.refused(t, f, way, "strict")
		m.scan = append(m.scan, [2]string{"snapshot", strconv.FormatInt(f.Snapshots["old"], 10)})
		list = append(list, m)
	}
	return list
}

// asked is a move that is refused without the reconciler's flags given here.
func (l *lab) asked(t *testing.T, f *fixture, way, label string, flags ...string) *move {
	t.Helper()
	m := l.plain(t, f, way)
	m.label, m.refusal, m.plan = label, nil, append(m.plan, flags...)
	m.want = l.expected(t, f, "after", nil)
	return m
}

// refused is a move that must not begin.
func (l *lab) refused(t *testing.T, f *fixture, way, label string) *move {
	t.Helper()
	m := l.plain(t, f, way)
	m.label, m.want, m.refusal = label, nil, refusal(t, f.Name+"."+label)
	return m
}

func refusal(t *testing.T, key string) *regexp.Regexp {
	t.Helper()
	text, known := refusals[key]
	if !known {
		t.Fatalf("the test does not say how %s is refused: add it to refusals", key)
	}
	return regexp.MustCompile(text)
}

// expected reads the rows of a label.
func (l *lab) expected(t *testing.T, f *fixture, label string, change func(map[string]any)) rowSet {
	t.Helper()
	file, known := f.Expected[label]
	if !known {
		t.Fatalf("%s states no rows for %q", f.Name, label)
	}
	set, err := rowsOf(filepath.Join(l.out, file), change)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
