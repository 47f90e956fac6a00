//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/catalogs"
	"icepipe/internal/datafile"
	"icepipe/internal/lake"
	"icepipe/pkg/rows"
)

// TestUpsertCommit takes rows out of tables that Spark made, in every mode one after the other, with Spark's word on
// where the rows lie. Spark and PyIceberg read the tables, and Spark's metadata tables are held against each other
// and against the rules of the format. Then Spark changes and compacts them, and it goes on. ICEPIPE_TORTURE=1
// takes all kinds of tables, else a sample is taken.
func TestUpsertCommit(t *testing.T) {
	p := newPartyOf(t, "upsert_commit.py")
	u := &upserting{party: p, t: t, met: map[string]int{}}
	tables := 0
	type kind struct {
		name     string
		versions []int
	}
	kinds := []kind{{"identity", []int{1, 2}}, {"whole", []int{3}}, {"composite", []int{23}}}
	if tortures() {
		kinds = []kind{{"identity", []int{1, 2, 3, 23}}, {"whole", []int{2, 3, 23}}, {"composite", []int{2, 3, 23}}, {"grown_more", []int{2, 3}}, {"shrunk", []int{1, 23}}}
	}
	for _, c := range kinds {
		for _, version := range c.versions {
			u.table(fmt.Sprintf("%s_%d", c.name, version), version, c.name, uint64(100*version+tables))
			tables++
		}
	}
	say("upsert: %d commits into %d tables; %d were read by PyIceberg too; files seen: %d deletion vectors, %d of position deletes, %d of equality deletes",
		u.commits, tables, u.met["pyiceberg"], u.met["vectors"], u.met["positions"], u.met["equality"])
	for _, what := range []string{"pyiceberg", "vectors", "positions", "equality"} {
		if u.met[what] == 0 {
			t.Errorf("no table had %s", what)
		}
	}
}

// An upserting is a row of commits that take rows out.
type upserting struct {
	*party
	t       *testing.T
	commits int
	next    int64
	met     map[string]int
}

func (u *upserting) table(name string, version int, spec string, seed uint64) {
	u.t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	u.do("build", name, "version", version, "case", spec, "seed", seed)
	modes := []lake.DeleteMode{lake.MergeOnRead, lake.MergeOnRead, lake.CopyOnWrite}
	if version == 1 {
		modes = []lake.DeleteMode{lake.CopyOnWrite, lake.CopyOnWrite}
	}
	for i, mode := range modes {
		u.commit(name, version, mode, i%2 == 1, random)
	}
	u.right(u.do("theirs", name))
	u.commit(name, version, modes[0], false, random)
	u.right(u.do("compact", name))
	u.commit(name, version, modes[len(modes)-1], true, random)
	u.t.Logf("%s: %d commits so far", name, u.commits)
}

func (u *upserting) right(answer map[string]any) {
	u.t.Helper()
	wrong, ok := answer["wrong"].([]any)
	if !ok || len(wrong) > 0 {
		u.t.Errorf("%v", answer["wrong"])
	}
}

// commit changes some rows and adds one. lineage: those that are changed keep their row IDs where they have any.
func (u *upserting) commit(name string, version int, mode lake.DeleteMode, lineage bool, random *rand.Rand) {
	u.t.Helper()
	places := u.do("places", name)["rows"].([]any)
	tbl := u.open(name)
	lineage = lineage && version >= 3
	gone := map[string]*dv.RoaringPositionBitmap{}
	var changed []map[string]any
	row := func(id float64, rowID any) {
		r := map[string]any{"id": id, "p": []any{nil, "", "null", "a", "new"}[random.IntN(5)], "q": random.IntN(3)}
		changed = append(changed, r)
		if lineage {
			r["_row_id"] = rowID
		}
	}
	for _, i := range random.Perm(len(places))[:1+random.IntN(8)] {
		at := places[i].([]any)
		path := at[1].(string)
		if gone[path] == nil {
			gone[path] = dv.NewRoaringPositionBitmap()
		}
		gone[path].Set(uint64(at[2].(float64)))
		row(at[0].(float64), at[3])
	}
	u.next++
	row(float64(1_000_000+u.next), nil)
	files := u.write(tbl, changed, lineage)
	for _, r := range changed {
		delete(r, "_row_id")
	}
	mark := lake.Mark{Job: "job of " + name, Batch: u.next, From: rows.Cursor{File: u.next}, To: rows.Cursor{File: u.next + 1}, Rows: int64(len(changed))}
	var since *int64
	if head := tbl.CurrentSnapshot(); head != nil {
		since = &head.SnapshotID
	}
	_, err := tbl.Append(u.t.Context(), lake.Commit{Branch: "main", Mark: mark, Files: files, Since: since, Upsert: &lake.Upsert{Mode: mode, Job: "job", Resources: datafile.Resources{Jobs: 1},
		Gone: func(context.Context, *table.Snapshot) (map[string]*dv.RoaringPositionBitmap, error) { return gone, nil },
	}})
	if err != nil {
		u.t.Fatalf("%s, %s: %v", name, mode, err)
	}
	u.commits++
	answer := u.do("check", name, "rows", changed, "appended", false, "copies", mode == lake.CopyOnWrite, "lineage", lineage)
	u.right(answer)
	for what, n := range answer {
		switch n := n.(type) {
		case float64:
			u.met[what] += int(n)
		case bool:
			if n {
				u.met[what]++
			}
		}
	}
}

func (u *upserting) open(name string) *lake.Table {
	u.t.Helper()
	o, err := catalogs.Open(u.t.Context(), catalogs.Ref{Place: rows.Place{Kind: "sqlite", Name: "dst", DBPath: filepath.Join(u.dir, "dst.db")}, Identifier: []string{"lab", name}}, catalogs.ReadWrite)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { o.Close() })
	return &lake.Table{Catalog: o.Catalog, Table: o.Table}
}

// write writes rows as data files, with row IDs where there are to be some.
func (u *upserting) write(tbl *lake.Table, of []map[string]any, lineage bool) []iceberg.DataFile {
	u.t.Helper()
	config, err := tbl.FileConfig(u.t.Context(), datafile.Resources{Jobs: 1})
	if lineage {
		config, err = tbl.FileConfigLineage(u.t.Context(), datafile.Resources{Jobs: 1})
	}
	if err != nil {
		u.t.Fatal(err)
	}
	schema, err := table.SchemaToArrowSchema(config.Schema, nil, true, false)
	if err != nil {
		u.t.Fatal(err)
	}
	text, err := json.Marshal(of)
	if err != nil {
		u.t.Fatal(err)
	}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(string(text)))
	if err != nil {
		u.t.Fatal(err)
	}
	defer batch.Release()
	w, err := datafile.NewWriter(u.t.Context(), config)
	if err != nil {
		u.t.Fatal(err)
	}
	if err := w.Write(u.t.Context(), batch); err != nil {
		u.t.Fatal(err)
	}
	files, err := w.Finish(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	return files
}
