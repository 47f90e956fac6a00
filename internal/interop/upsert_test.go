//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// deleteModes are the ways in which an upsert takes rows out.
var deleteModes = []string{"auto", "copy-on-write", "position"}

// A policy is what an upsert is told about keys, and what comes of it.
type policy struct {
	label   string
	flags   []string
	refusal string // what the refusal says; "" it is none
	begun   bool   // small batches may be committed before it
}

// policies are those that the manifest names, see "after" in testdata/interop/README.md.
var policies = map[string]policy{
	"null keys match":    {label: "match", flags: []string{"--null-keys", "match"}},
	"null keys insert":   {label: "insert", flags: []string{"--null-keys", "insert"}},
	"null keys refused":  {label: "null", refusal: `=null.*must not be null`, begun: true},
	"last wins":          {label: "last", flags: []string{"--on-duplicate-key", "last"}},
	"first wins":         {label: "first", flags: []string{"--on-duplicate-key", "first"}},
	"duplicates refused": {label: "error", flags: []string{"--on-duplicate-key", "error"}, refusal: `two rows of the source have key \(id=(9|12)\)`},
	"float keys":         {label: "float", flags: []string{"--float-keys"}},
}

// TestUpsertPairs upserts every pair of the fixtures in all modes to take rows out, by the pipe and by ice-migrate,
// in small batches and in one, and lets other engines read what became of it. At every snapshot of the jobs keys are
// unique, and every file is there.
func TestUpsertPairs(t *testing.T) {
	l := openLab(t)
	before := l.sourceState(t)
	began := time.Now()
	var units [][]*move
	for i := range l.tables {
		if f := &l.tables[i]; f.Mode == "upsert" {
			units = append(units, l.upserts(t, f, len(units)))
		}
	}
	outcomes := l.moveAll(t, units)
	say("%5.1f s  %d upserts of %d pairs", time.Since(began).Seconds(), len(outcomes), len(units))
	if after := l.sourceState(t); after != before {
		t.Errorf("the sources changed while they were read:\n%s", firstChange(before, after))
	}
	var moved, wrote []*outcome
	for _, o := range outcomes {
		if o.err == nil && o.succeeded() {
			moved = append(moved, o)
		}
		if o.err == nil && o.after != o.before {
			wrote = append(wrote, o)
		}
	}
	began = time.Now()
	db := l.gather(t, slices.Concat(moved, slices.DeleteFunc(slices.Clone(wrote), (*outcome).succeeded)))
	l.readAll(t, db, moved)
	looks := l.lookAtKeys(t, db, wrote)
	say("%5.1f s  %d tables read by %s, and the keys of %d at every snapshot", time.Since(began).Seconds(), len(moved), strings.Join(readers, ", "), len(wrote))
	agreed, snapshots := map[string]int{}, 0
	for _, o := range outcomes {
		t.Run(o.move.name(), func(t *testing.T) {
			l.judge(t, o, agreed)
			if o.err == nil && o.after != o.before {
				snapshots += looks.judge(t, o)
			}
		})
	}
	for _, reader := range readers {
		say("upsert: %d of %d tables hold the expected rows, says %s", agreed[reader], len(moved), reader)
	}
	say("upsert: %d cases ran; keys were unique and files there at %d snapshots", len(outcomes), snapshots)
	if len(l.only) == 0 && (len(outcomes) < leastUpserts || snapshots < leastUpsertSnapshots) {
		t.Errorf("%d cases ran with %d snapshots, at least %d did before, with %d", len(outcomes), snapshots, leastUpserts, leastUpsertSnapshots)
	}
}

// leastUpserts is as leastCases; a third of them make one snapshot alone.
const (
	leastUpserts         = 110
	leastUpsertSnapshots = 175
)

// upserts lists the moves of the n-th pair. Each of its policies meets all three modes; which of them goes with which
// program and which size of batches differs from pair to pair.
func (l *lab) upserts(t *testing.T, f *fixture, n int) []*move {
	t.Helper()
	var list []*move
	add := func(p policy, file *string) {
		for k, way := range []string{byPipe, byMigrate, byPipe} {
			if n%2 == 1 {
				way = map[string]string{byPipe: byMigrate, byMigrate: byPipe}[way]
			}
			m := l.upsert(t, f, p, file, way, deleteModes[(n/2+k)%len(deleteModes)], k%2 == 0)
			if (n+k)%3 == 0 || m.has("--on-duplicate-key", "error") && way == byPipe { // which the pipe must stage
				m.atOnce()
			}
			list = append(list, m)
		}
	}
	after := f.Expected["after"]
	switch {
	case f.After == nil:
		add(policy{}, &after)
	case f.ExpectError != "":
		add(policy{refusal: refusals[f.Name]}, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(f.After)) {
		p, known := policies[name]
		if !known {
			t.Fatalf("%s: the test does not know the policy %q: add it to policies", f.Name, name)
		}
		add(p, f.After[name])
	}
	switch f.Name {
	case "up_duplicates":
		unproven := policies["duplicates refused"]
		unproven.label, unproven.refusal = "unproven", `a stream is read but once: say --commit once`
		list = append(list, l.upsert(t, f, unproven, nil, byPipe, "auto", true))
		within := policy{label: "within"}
		for _, mode := range deleteModes {
			m := l.upsert(t, f, within, &after, byMigrate, mode, true)
			m.batchRows = 2 // no two rows of one batch have one key
			list = append(list, m)
			again := *m
			again.atOnce()
			list = append(list, &again)
		}
		within.label, within.refusal = "within_refused", `two rows of the source have key .* in one batch`
		list = append(list, l.upsert(t, f, within, nil, byPipe, "auto", false))
	case "up_mor_v2", "up_mor_v3", "up_cow": // the destination has three rows with a null for key
		p := policies["null keys match"]
		all := policy{label: "all", flags: append([]string{"--update-all"}, p.flags...)}
		add(all, &after)
		p.refusal = `holds rows with the same key: \(id=null\);`
		list = append(list, l.upsert(t, f, p, nil, byMigrate, "auto", true))
	}
	return list
}

// upsert is one move of a pair. file has the rows that come of it, nil where the policy refuses.
func (l *lab) upsert(t *testing.T, f *fixture, p policy, file *string, way, mode string, small bool) *move {
	t.Helper()
	m := l.plain(t, f, way)
	m.label, m.want, m.refusal = strings.TrimPrefix(p.label+"_"+strings.ReplaceAll(mode, "-", "_"), "_"), nil, nil
	m.batchRows = f.Rows + 1
	if small {
		m.batchRows = max(4, f.Rows/8)
	}
	m.write = slices.Concat([]string{"--write-mode", "upsert", "--upsert-keys", strings.Join(f.Keys, ",")}, p.flags)
	if mode != "auto" {
		m.write = append(m.write, "--delete-mode", mode)
	}
	switch {
	case f.Destination.Version == 1 && mode == "position":
		m.refusal = regexp.MustCompile(`format version 1`)
	case p.refusal != "":
		m.refusal, m.begun = regexp.MustCompile(p.refusal), p.begun && small
	default:
		var err error
		if m.want, err = rowsOf(filepath.Join(l.out, *file), nil); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// atOnce makes the move land as one snapshot.
func (m *move) atOnce() {
	m.label, m.write, m.begun = m.label+"_once", append(slices.Clone(m.write), "--commit", "once"), false
}

// has reports whether the move was told so.
func (m *move) has(flags ...string) bool {
	for i := range m.write {
		if slices.Equal(m.write[i:min(len(m.write), i+len(flags))], flags) {
			return true
		}
	}
	return false
}

// judgeUpsert holds the receipt of an upsert against what its rows are by the fixture, and the marks against it.
func (l *lab) judgeUpsert(t *testing.T, o *outcome) {
	t.Helper()
	r, err := o.receipt()
	if err != nil {
		t.Fatal(err)
	}
	got := [4]int{r.RowsInserted, r.RowsUpdated, r.RowsUnchanged, r.RowsSurplus}
	sum := r.RowsInserted + r.RowsUpdated + r.RowsUnchanged + r.RowsSurplus
	if !r.Complete || r.Resumed || r.RowsMoved != o.move.rows || sum != o.move.rows || r.Batches != len(r.NewSnapshots) {
		t.Errorf("the receipt is %s, want complete, and what became of %d rows", o.stdout, o.move.rows)
	}
	if want, ok := l.sorted(t, o.move); ok && got != want {
		t.Errorf("%v rows were inserted, updated, unchanged and left out, want %v", got, want)
	}
	most := (o.move.rows + o.move.batchRows - 1) / o.move.batchRows
	if o.move.has("--commit", "once") {
		most = 1
	}
	if len(r.NewSnapshots) > most {
		t.Errorf("%d snapshots of %d batches", len(r.NewSnapshots), most)
	}
	o.judgeMarks(t, len(r.NewSnapshots))
}

// sorted counts the rows that are new, change others, and are there already, by the fixture's files. It says
// nothing of a source that has a key twice.
func (l *lab) sorted(t *testing.T, m *move) (counts [4]int, ok bool) {
	t.Helper()
	key := func(row map[string]any) (text string, null bool) {
		var parts []any
		for _, k := range m.fixture.Keys {
			null = null || row[k] == nil
			if row[k] == "-0.0" {
				row[k] = json.Number("0")
			}
			parts = append(parts, row[k])
		}
		text, err := canonical(parts)
		if err != nil {
			t.Fatal(err)
		}
		return text, null
	}
	each := func(label string, f func(key string, null bool, row string)) {
		l.expected(t, m.fixture, label, func(row map[string]any) {
			k, null := key(row)
			maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil }) // a column that the job adds is null
			text, err := canonical(row)
			if err != nil {
				t.Fatal(err)
			}
			f(k, null, text)
		})
	}
	there, seen := map[string]string{}, map[string]bool{}
	each("dest", func(k string, _ bool, row string) { there[k] = row })
	ok = true
	each("source", func(k string, null bool, row string) {
		was, known := there[k]
		switch {
		case null && m.has("--null-keys", "insert"), !known:
			counts[0]++
		case was != row:
			counts[1]++
		default:
			counts[2]++
		}
		ok = ok && !seen[k]
		seen[k] = true
	})
	return counts, ok
}

// looks is a folder of what read_keys.py found.
type looks string

// lookAtKeys looks at every snapshot of the jobs.
func (l *lab) lookAtKeys(t *testing.T, db string, wrote []*outcome) looks {
	t.Helper()
	var b strings.Builder
	for _, o := range wrote {
		line, err := json.Marshal(map[string]any{
			"name": o.move.id(), "db": db, "catalog": "dst", "identifier": identifierIn(o.move),
			"keys": o.move.fixture.Keys, "nulls": o.move.has("--null-keys", "match"),
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	list := filepath.Join(l.out, "cases", "keys.jsonl")
	if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(l.out, "cases", "keys")
	call(t, l.script("read_keys.py", list, out))
	return looks(out)
}

// judge holds that nothing is wrong at any snapshot of a job, and returns how many there are.
func (l looks) judge(t *testing.T, o *outcome) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(string(l), o.move.id()+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Snapshots int
		Wrong     []string
	}
	if err := json.Unmarshal(content, &found); err != nil {
		t.Fatal(err)
	}
	commits, err := commitsOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if found.Snapshots == 0 || found.Snapshots != len(commits) {
		t.Errorf("%d snapshots of the job were looked at, there are %d", found.Snapshots, len(commits))
	}
	for _, wrong := range found.Wrong {
		t.Error(wrong)
	}
	return found.Snapshots
}
