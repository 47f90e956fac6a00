//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestVerifyAndUndo works with tables that PyIceberg and Spark made, in one session of each: planted differences
// are found, tables in another layout are not, and undone jobs are read by both.
func TestVerifyAndUndo(t *testing.T) {
	p := newVerifyParty(t)
	t.Run("planted", func(t *testing.T) { p.t = t; p.planted() })
	t.Run("equal", func(t *testing.T) { p.t = t; p.equal() })
	t.Run("undo", func(t *testing.T) { p.t = t; p.undoneTables(t) })
}

func newVerifyParty(t *testing.T) *party { return newPartyOf(t, "verify_party.py") }

// compared runs ice-verify over a source and a destination of the party.
func (p *party) compared(src, dst, more string) (code int, v verification, said string) {
	p.t.Helper()
	code, out, said := p.run(fmt.Sprintf("ice-verify --src-catalog sqlite --src-db-path src.db --src-namespace lab --src-table %s --dst-catalog sqlite --dst-db-path dst.db --dst-namespace lab --dst-table %s --output json %s", src, dst, more))
	if code == 0 || code == 2 {
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			p.t.Fatalf("%v in %q", err, out)
		}
	}
	return code, v, said
}

// planted holds each planted difference to be found, and named, by partition_hash and by diff.
func (p *party) planted() {
	made := p.do("plants", "")["tables"].([]any)
	if len(made) < 26 {
		p.t.Errorf("%d differences are planted", len(made))
	}
	for _, m := range made {
		var plant struct {
			Table            string
			Want, Partitions []string
			Misplaced        bool
		}
		text, _ := json.Marshal(m)
		if err := json.Unmarshal(text, &plant); err != nil {
			p.t.Fatal(err)
		}
		want := 2
		if strings.HasSuffix(plant.Table, "_same") {
			want = 0
		}
		code, v, said := p.compared("mixed", plant.Table, "--method partition_hash")
		if code != want || !slices.Equal(v.MismatchedPartitions, plant.Partitions) {
			p.t.Errorf("%s: partition_hash exits %d and names %v, want %d and %v\n%s", plant.Table, code, v.MismatchedPartitions, want, plant.Partitions, said)
		}
		if told := strings.Join(v.Details, "\n"); plant.Misplaced && !strings.Contains(told, "10 rows are of another partition than the file is of") {
			p.t.Errorf("%s: %s", plant.Table, told)
		}
		code, v, said = p.compared("mixed", plant.Table, "--method diff --keys id")
		if code != want {
			p.t.Errorf("%s: diff exits %d, want %d\n%s", plant.Table, code, want, said)
			continue
		}
		var got []string
		for _, r := range v.Differences.Rows {
			row := r.Source
			if row == nil {
				row = r.Dest
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %v %s", r.Kind, row["id"], strings.Join(r.Columns, " "))))
		}
		slices.Sort(got)
		if !slices.Equal(got, plant.Want) {
			p.t.Errorf("%s: diff names %q, want %q", plant.Table, got, plant.Want)
		}
		if code, _, said = p.compared("mixed", plant.Table, "--method diff"); code != want {
			p.t.Errorf("%s: diff of whole rows exits %d, want %d\n%s", plant.Table, code, want, said)
		}
	}
}

// equalTables is how many tables of equal rows the engines write.
func equalTables() int {
	if tortures() {
		return 1000
	}
	return 60
}

// equal holds tables of the same rows in other layouts to agree.
func (p *party) equal() {
	n := equalTables()
	p.do("equal", "", "count", n)
	methods := []string{"partition_hash", "diff --keys id", "sample --sample-size 7", "auto", "diff"}
	for i := range n {
		method := methods[i/2%len(methods)]
		if code, v, said := p.compared("every", fmt.Sprintf("equal_%d", i), "--method "+method); code != 0 || !v.Matches {
			p.t.Errorf("equal_%d, %s: exit %d, %+v\n%s", i, method, code, v, said)
		}
	}
	say("interop: %d tables of equal rows in other layouts", n)
}

// A sight is what both engines see in a table.
type sight struct {
	Columns, Rows []string
	Snapshot      string
}

func (p *party) sees(answer map[string]any) (s sight) {
	p.t.Helper()
	text, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// An undoing is what the tests read of what undo and redo print.
type undoing struct {
	Snapshots []string
	Dropped   []string `json:"columns_dropped"`
}

// undoneTables undoes and redoes a job that adds a column and makes several batches, into tables of each version,
// empty and populated, in a SQLite and in a REST catalog, and lets PyIceberg and Spark read what is there.
func (p *party) undoneTables(t *testing.T) {
	p.do("orders", "", "rows", 25)
	p.do("destination", "", "table", "old", "version", 2, "populated", true)
	s := newStand(t)
	s.control("POST", "/v1/namespaces", `{"namespace":["d"]}`)
	for _, version := range []int{1, 2, 3} {
		for _, populated := range []bool{false, true} {
			name := fmt.Sprintf("undo_v%d_%v", version, populated)
			t.Run("sqlite "+name, func(t *testing.T) {
				p.t = t
				p.do("destination", "", "table", name, "version", version, "populated", populated)
				p.undone(name, "--dst-catalog sqlite --dst-db-path dst.db --dst-namespace lab --dst-table "+name, func() string {
					return p.do("location", "", "table", name)["location"].(string)
				}, nil)
			})
			t.Run("rest "+name, func(t *testing.T) {
				p.t = t
				s.control("POST", "/v1/namespaces/d/tables", fmt.Sprintf(`{"name":"%s","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]},"properties":{"format-version":"%d"}}`, name, version))
				dst := fmt.Sprintf("--dst-catalog rest --dst-uri %s --dst-namespace d --dst-table %s", s.endpoint, name)
				if populated {
					if code, _, said := p.run("ice-migrate --src-catalog sqlite --src-db-path dst.db --src-catalog-name dst --src-namespace lab --src-table old " + dst); code != 0 {
						p.t.Fatal(said)
					}
				}
				p.undone(name, dst, func() string {
					var answer struct {
						At string `json:"metadata-location"`
					}
					if err := json.NewDecoder(bytes.NewBufferString(s.control("GET", "/v1/namespaces/d/tables/"+name, ""))).Decode(&answer); err != nil {
						p.t.Fatal(err)
					}
					return answer.At
				}, func(fault string) { s.control("POST", "/_faults", fault+" table=d."+name) })
			})
		}
	}
}

// undone makes the job, and undoes and redoes it. location tells where the table's metadata is, fault orders one of
// the catalog, where there are any.
func (p *party) undone(name, dst string, location func() string, fault func(string)) {
	p.t.Helper()
	see := func() sight { p.t.Helper(); return p.sees(p.do("read", "", "location", location())) }
	checkpoint := fmt.Sprintf("--checkpoint %s_%d.json", name, len(dst))
	do := func(line string, want int) (string, string) {
		p.t.Helper()
		code, out, said := p.run(line)
		if code != want {
			p.t.Fatalf("%s exits %d, want %d: %s%s", line, code, want, out, said)
		}
		return out, said
	}
	order := func(what string) {
		if fault != nil {
			fault(what)
		}
	}
	same := func(what string, got, want sight) {
		p.t.Helper()
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			p.t.Errorf("%s the engines see %s, want %s", what, g, w)
		}
	}
	job := "ice-migrate --src-catalog sqlite --src-db-path src.db --src-catalog-name src --src-namespace lab --src-table orders " + dst + " --on-missing-in-dest auto_add --batch-rows 10 -q " + checkpoint
	before := see()
	do(job, 0)
	after := see()
	if len(after.Rows) != len(before.Rows)+25 || len(after.Columns) != 2 {
		p.t.Fatalf("the job made %+v", after)
	}
	do("ice-migrate undo --dry-run "+checkpoint, 0)
	same("after a dry run", see(), after)

	order("commit-then-503")
	out, _ := do("ice-migrate undo --schema --output json "+checkpoint, 0)
	var u undoing
	if err := json.Unmarshal([]byte(out), &u); err != nil || len(u.Snapshots) != 3 || !slices.Equal(u.Dropped, []string{"name"}) {
		p.t.Errorf("%v in %s", err, out)
	}
	same("after the undo", see(), before)
	if _, said := do(job, 1); !strings.Contains(said, "was undone; ice-migrate redo puts its batches back") {
		p.t.Errorf("the resume says %s", said)
	}
	order("503-before-commit")
	do("ice-migrate redo "+checkpoint, 0)
	same("after the redo", see(), after)
	do("ice-verify --method partition_hash "+checkpoint, 0)

	order("commit-then-409")
	do("ice-migrate undo "+checkpoint, 0)
	if got := see(); len(got.Rows) != len(before.Rows) || got.Snapshot != before.Snapshot || len(got.Columns) != 2 {
		p.t.Errorf("after the undo that leaves the column the engines see %+v", got)
	}
	do("ice-migrate reset "+checkpoint, 0)
	do(job, 0)
	if got := see(); !slices.Equal(got.Rows, after.Rows) {
		p.t.Errorf("after a reset and another run the engines see %+v", got)
	}
	do("ice-migrate --src-catalog sqlite --src-db-path dst.db --src-catalog-name dst --src-namespace lab --src-table old "+dst+" --on-missing-in-source null -q", 0)
	if _, said := do("ice-migrate undo "+checkpoint, 1); !strings.Contains(said, "1 snapshot of other writers came after the job's first batch") {
		p.t.Errorf("an undo across another writer's rows says %s", said)
	}
}
