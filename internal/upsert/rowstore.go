package upsert

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/keyindex"
	"icepipe/internal/lake"
	"icepipe/internal/tempfile"
)

// A rowStore keeps, for each row of the row groups that were asked for, the digest of its values and its row
// ID: on disk, since any row of a table may be asked for in any batch.
type rowStore struct {
	dir    string
	file   *tempfile.File // nil until it is needed
	end    int64
	groups map[groupAt]stored
}

type groupAt struct{ file, group int }

// stored is where the rows of a group begin in the store.
type stored struct {
	offset, before int64 // before: position of the group's first row in its file
}

// A rowAt is what the store knows of a row. id is negative where the row has none.
type rowAt struct {
	digest keyindex.Digest
	id     int64
}

const rowBytes = 24

// load reads the row groups of these rows that are not in the store. The rows are of the known snapshot, or staged.
func (x *Target) load(ctx context.Context, places []place) error {
	return x.loadAt(ctx, x.head, places)
}

// loadAt is load for rows of a snapshot.
func (x *Target) loadAt(ctx context.Context, id *int64, places []place) error {
	need := map[int][]bool{}
	for _, p := range places {
		ordinal, position := split(p)
		group, _ := x.groupOf(ordinal, position)
		if _, ok := x.rows.groups[groupAt{ordinal, group}]; ok {
			continue
		}
		if need[ordinal] == nil {
			need[ordinal] = make([]bool, len(x.files[ordinal].groups))
		}
		need[ordinal][group] = true
	}
	if len(need) == 0 {
		return nil
	}
	only := map[string]bool{}
	committed := false
	for ordinal := range need {
		only[x.files[ordinal].path] = true
		committed = committed || !x.files[ordinal].staged
	}
	var snapshot *table.Snapshot
	if committed {
		if snapshot = x.table.Metadata().SnapshotByID(*id); snapshot == nil {
			return fmt.Errorf("snapshot %d of table %q has expired while the job reads it", *id, x.table.Name())
		}
	}
	scan, err := x.table.PlanPlaces(ctx, snapshot, lake.PlaceOptions{Only: only, RowIDs: x.lineage, Also: x.waiting})
	if err != nil {
		return err
	}
	files := scan.Files()
	next := make(chan int)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range min(loaders, len(files)) {
		wait.Go(func() {
			for i := range next {
				ordinal := x.paths[files[i].Path]
				if err := x.loadFile(ctx, scan, i, ordinal, need[ordinal], &mu); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// loaders is how many files are read at once.
const loaders = 2

// groupOf finds the row group of a row, and the position of its first row.
func (x *Target) groupOf(ordinal int, position int64) (group int, before int64) {
	for g, n := range x.files[ordinal].groups {
		if position < before+n {
			return g, before
		}
		before += n
	}
	return len(x.files[ordinal].groups), before
}

// loadFile reads row groups of a file into the store; mu guards the store.
func (x *Target) loadFile(ctx context.Context, scan *lake.PlaceScan, i, ordinal int, want []bool, mu *sync.Mutex) error {
	starts := map[int]int64{}
	before := int64(0)
	for g, n := range x.files[ordinal].groups {
		starts[g] = before
		before += n
	}
	var text []byte // of the open group
	open := -1
	flush := func() error {
		if open < 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		return x.rows.put(groupAt{ordinal, open}, starts[open], text)
	}
	var row []byte
	err := scan.Read(ctx, i, func(g int) bool { return want[g] }, func(group int, at []int64, batch arrow.RecordBatch) error {
		if group != open {
			if err := flush(); err != nil {
				return err
			}
			open = group
			n := int(x.files[ordinal].groups[group]) * rowBytes
			text = slices.Grow(text[:0], n)[:n]
			clear(text)
		}
		values := batch
		var ids *array.Int64
		if n := int(batch.NumCols()); x.lineage {
			var ok bool
			if ids, ok = batch.Column(n - 2).(*array.Int64); !ok {
				return fmt.Errorf("row IDs of type %s", batch.Column(n-2).DataType())
			}
			values = array.NewRecordBatch(arrow.NewSchema(batch.Schema().Fields()[:n-2], nil), batch.Columns()[:n-2], batch.NumRows())
			defer values.Release()
		}
		rows, err := x.form.Bind(values)
		if err != nil {
			return err
		}
		for r, p := range at {
			row = rows.Append(row[:0], r)
			d := digest(row)
			cell := text[(p-starts[group])*rowBytes:]
			copy(cell, d[:])
			id := int64(-1)
			if ids != nil && ids.IsValid(r) {
				id = ids.Value(r)
			}
			binary.LittleEndian.PutUint64(cell[16:], uint64(id))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// put adds the rows of a group.
func (s *rowStore) put(at groupAt, before int64, text []byte) error {
	if s.file == nil {
		var err error
		if s.file, err = tempfile.Create(s.dir, "icepipe-rows-"); err != nil {
			return fmt.Errorf("room for rows to compare: %w", err)
		}
		s.groups = map[groupAt]stored{}
	}
	if _, err := s.file.WriteAt(text, s.end); err != nil {
		return fmt.Errorf("rows to compare: %w", err)
	}
	s.groups[at] = stored{s.end, before}
	s.end += int64(len(text))
	return nil
}

// forget gives up the rows of a file.
func (s *rowStore) forget(file int) {
	maps.DeleteFunc(s.groups, func(at groupAt, _ stored) bool { return at.file == file })
}

// get is what is known of a row whose group was loaded.
func (s *rowStore) get(at groupAt, position int64) (r rowAt, err error) {
	g, ok := s.groups[at]
	if !ok {
		return r, fmt.Errorf("row group %d of file %d was not read", at.group, at.file)
	}
	var cell [rowBytes]byte
	if _, err := s.file.ReadAt(cell[:], g.offset+(position-g.before)*rowBytes); err != nil {
		return r, fmt.Errorf("rows to compare: %w", err)
	}
	copy(r.digest[:], cell[:16])
	r.id = int64(binary.LittleEndian.Uint64(cell[16:]))
	return r, nil
}

func (s *rowStore) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// row is what is known of a row; its group is in the store.
func (x *Target) row(p place) (rowAt, error) {
	ordinal, position := split(p)
	group, _ := x.groupOf(ordinal, position)
	return x.rows.get(groupAt{ordinal, group}, position)
}
