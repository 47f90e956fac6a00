package migrate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/migrate"
	"icepipe/pkg/migratetest"
	"icepipe/pkg/rows"
)

var prim = iceberg.PrimitiveTypes

// A store is a catalog of its own in a temporary folder.
type store struct {
	catalog.Catalog
	commit func(context.Context, func() error) error // around the commits of snapshots, nil for none
	gone   bool                                      // the catalog does not answer
}

func newStore(t *testing.T) *store {
	t.Helper()
	c, err := migratetest.Catalog(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, c.(catalog.Closer).Close()) })
	must(t, c.CreateNamespace(t.Context(), table.Identifier{"ns"}, nil))
	return &store{Catalog: c}
}

// CommitTable lets a test fail a commit, before or after it lands.
func (s *store) CommitTable(ctx context.Context, id table.Identifier, r []table.Requirement, u []table.Update) (meta table.Metadata, location string, err error) {
	call := func() error {
		meta, location, err = s.Catalog.CommitTable(ctx, id, r, u)
		return err
	}
	if s.commit == nil || !slices.ContainsFunc(u, func(u table.Update) bool { return u.Action() == table.UpdateAddSnapshot }) {
		err = call()
	} else {
		err = s.commit(ctx, call)
	}
	return meta, location, err
}

// LoadTable fails while the catalog is gone.
func (s *store) LoadTable(ctx context.Context, id table.Identifier) (*table.Table, error) {
	if s.gone {
		return nil, errLost
	}
	return s.Catalog.LoadTable(ctx, id)
}

func (s *store) create(t *testing.T, name string, schema *iceberg.Schema, opts ...catalog.CreateTableOpt) *table.Table {
	t.Helper()
	tbl, err := s.CreateTable(t.Context(), table.Identifier{"ns", name}, schema, opts...)
	must(t, err)
	return tbl
}

func (s *store) load(t *testing.T, name string) *table.Table {
	t.Helper()
	tbl, err := s.LoadTable(context.Background(), table.Identifier{"ns", name})
	must(t, err)
	return tbl
}

func (s *store) open(t *testing.T, name string) *migrate.Table {
	t.Helper()
	tbl, err := migrate.Open(context.Background(), s, table.Identifier{"ns", name}, rows.Place{})
	must(t, err)
	return tbl
}

// insert appends rows that are given as JSON objects, as one file.
func (s *store) insert(t *testing.T, name string, objects ...string) {
	t.Helper()
	tbl := s.load(t, name)
	schema, err := table.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
	must(t, err)
	record := fromJSON(t, memory.DefaultAllocator, schema, objects)
	defer record.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{record})
	must(t, err)
	defer reader.Release()
	_, err = tbl.Append(t.Context(), reader, nil)
	must(t, err)
}

func fromJSON(t *testing.T, mem memory.Allocator, schema *arrow.Schema, objects []string) arrow.RecordBatch {
	t.Helper()
	record, _, err := array.RecordFromJSON(mem, schema, strings.NewReader("["+strings.Join(objects, ",")+"]"))
	must(t, err)
	return record
}

// branch makes a branch at the current snapshot.
func (s *store) branch(t *testing.T, name, branch string) {
	t.Helper()
	tbl := s.load(t, name)
	_, _, err := s.Catalog.CommitTable(t.Context(), tbl.Identifier(), nil, []table.Update{
		table.NewSetSnapshotRefUpdate(branch, tbl.CurrentSnapshot().SnapshotID, table.BranchRef, 0, 0, 0)})
	must(t, err)
}

// dataFiles are all files in the data folder of a table.
func dataFiles(t *testing.T, tbl *table.Table) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(strings.TrimPrefix(tbl.Location(), "file://"), "data"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	must(t, err)
	return out
}

// A snap is a snapshot of a destination's main branch with the rows that it added, in order of their text.
type snap struct {
	id   int64
	mark map[string]string // its summary
	rows []string
}

// snaps are the snapshots of a table's main branch, oldest first, with the rows in the files of each.
func (s *store) snaps(t *testing.T, name string) []snap {
	t.Helper()
	tbl := s.load(t, name)
	added := addedFiles(t, tbl)
	var out []snap
	for at := tbl.CurrentSnapshot(); at != nil; {
		one := snap{id: at.SnapshotID, mark: at.Summary.Properties}
		for _, path := range added[at.SnapshotID] {
			one.rows = append(one.rows, fileRows(t, path)...)
		}
		slices.Sort(one.rows)
		out = append(out, one)
		if at.ParentSnapshotID == nil {
			break
		}
		at = tbl.SnapshotByID(*at.ParentSnapshotID)
	}
	slices.Reverse(out)
	return out
}

// addedFiles are the data files of a table's current snapshot, by the snapshot that added them.
func addedFiles(t *testing.T, tbl *table.Table) map[int64][]string {
	t.Helper()
	added := map[int64][]string{}
	head := tbl.CurrentSnapshot()
	if head == nil {
		return added
	}
	files, err := tbl.FS(t.Context())
	must(t, err)
	manifests, err := head.Manifests(files)
	must(t, err)
	for _, m := range manifests {
		for e, err := range m.Entries(files, true) {
			must(t, err)
			if e.DataFile().ContentType() == iceberg.EntryContentData {
				added[e.SnapshotID()] = append(added[e.SnapshotID()], e.DataFile().FilePath())
			}
		}
	}
	return added
}

// files are the data files of a table's current snapshot.
func (s *store) files(t *testing.T, name string) []string {
	t.Helper()
	return slices.Concat(slices.Collect(maps.Values(addedFiles(t, s.load(t, name))))...)
}

// content is all rows of a table whose files have no deletes, in order of their text.
func (s *store) content(t *testing.T, name string) []string {
	t.Helper()
	all := []string{}
	for _, one := range s.snaps(t, name) {
		all = append(all, one.rows...)
	}
	slices.Sort(all)
	return all
}

// fileRows reads a data file with arrow-go alone.
func fileRows(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(strings.TrimPrefix(path, "file://"))
	must(t, err)
	tbl, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(text), parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	must(t, err)
	defer tbl.Release()
	reader := array.NewTableReader(tbl, 0)
	defer reader.Release()
	var out []string
	for reader.Next() {
		out = append(out, texts(t, reader.RecordBatch())...)
	}
	must(t, reader.Err())
	return out
}

// texts is each row of a record batch as JSON.
func texts(t *testing.T, record arrow.RecordBatch) []string {
	t.Helper()
	var b bytes.Buffer
	must(t, array.RecordToJSON(record, &b))
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ids makes n rows {"id": from} and on, with a name each.
func ids(from, n int) []string {
	var out []string
	for i := from; i < from+n; i++ {
		out = append(out, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	return out
}

func people() *iceberg.Schema {
	return iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "name", prim.String))
}

// wantError holds an error to be one line that says each of texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

// equal compares two values as JSON.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	must(t, err)
	w, err := json.Marshal(want)
	must(t, err)
	if !bytes.Equal(g, w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func checkpointPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "job.json")
}
