package lake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// A ScanOptions says which rows of a table are read and how they are cut.
type ScanOptions struct {
	Pin        Pin
	Ref        string          // the branch or tag that was asked for, also where the pin is what it resolved to once
	Select     []string        // top-level columns, nil for all
	Filter     *filter.Expr    // rows to read, nil for all
	BatchRows  int64           // rows of a batch, 0 for a number that suits the files
	Follow     bool            // batches end where row groups do, as far as BatchRows allows
	RecordRows int64           // rows of a record batch at most, 0 for a number that suits the rows
	Limit      int64           // rows to read at most, 0 for all
	Only       map[string]bool // paths of the data files to read, nil for all
	From       *rows.Cursor    // where to start, nil for the beginning
	Memory     memory.Allocator

	lineage bool               // with the row IDs of format version 3, as two columns behind the others
	also    []iceberg.DataFile // files that no snapshot has, read beside those of the snapshot

	// WholePlan makes a scan read all files and row groups whatever the filter. Tests hold a pruned scan
	// against it.
	WholePlan bool
}

// What `auto` aims at: commits of this many bytes of source files, within these bounds of rows.
const (
	autoBytes   = 128 << 20
	autoAtLeast = 50_000
	autoAtMost  = 5_000_000
)

// A Scan is a planned read of one snapshot: every file of it was looked at.
type Scan struct {
	table      *Table
	snapshot   *table.Snapshot // nil where the table has none
	projection                 // of the stream
	filter     *filter.Bound   // nil where all rows pass
	tests      projection      // that the filter asks about
	whole      *iceberg.Schema // what is read: the stream's columns and behind them those of the filter that it has not
	skipped    Skipped
	files      []plannedFile
	options    ScanOptions
	header     rows.Header
}

// A projection is the columns that are read of each row: for the stream, or for the filter.
type projection struct {
	schema *iceberg.Schema
	reads  *iceberg.Schema // the same with defaults that the library can read
	arrow  *arrow.Schema   // the same
}

func newProjection(schema *iceberg.Schema) (projection, error) {
	c := projection{schema: schema}
	err := readableTypes(schema.Fields())
	if err == nil {
		c.reads, err = readable(schema)
	}
	if err == nil {
		c.arrow, err = table.SchemaToArrowSchema(schema, nil, true, false)
	}
	return c, err
}

type plannedFile struct {
	table.FileScanTask
	groups []int64 // rows of each row group, nil before the start of the scan
	skip   bool    // no row of it passes the filter
	skips  []bool  // by row group: no row of it does; nil where none is known
}

// PlanScan pins the snapshot, plans its files in an order of our own (data sequence number, path),
// and opens each of them from o.From on. What cannot be read is refused here, before anything is
// written anywhere.
func (t *Table) PlanScan(ctx context.Context, o ScanOptions) (*Scan, error) {
	if o.Memory == nil {
		o.Memory = memory.DefaultAllocator
	}
	s := &Scan{table: t, options: o}
	var err error
	var full *iceberg.Schema
	if s.snapshot, full, err = t.Resolve(o.Pin); err != nil {
		return nil, err
	}
	if s.schema, err = selectColumns(full, o.Select); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if o.lineage {
		s.schema = withLineage(s.schema)
	}
	if err = s.bindFilter(full); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if s.projection, err = newProjection(s.schema); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if s.tests, err = newProjection(s.tests.schema); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if err = s.planFiles(ctx); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	if err = s.checkStart(); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	source, err := t.Describe(s.schema)
	if err != nil {
		return nil, err
	}
	source.Branch = o.Ref
	if s.snapshot != nil {
		source.SnapshotID = &s.snapshot.SnapshotID
	}
	s.header = rows.Header{
		Protocol: rows.Protocol, Stream: uuid.NewString(), Source: source, Select: o.Select,
		Files: s.digest(), Trial: o.Limit > 0, Expected: s.expected(),
	}
	if o.From != nil {
		s.header.First = *o.From
	}
	if s.filter != nil {
		s.header.RowFilter = s.filter.String()
	}
	if s.options.BatchRows == 0 {
		s.options.BatchRows = AutoBatchRows(s.header.Expected)
		if o.Follow {
			s.options.BatchRows = max(s.options.BatchRows, s.largestGroup())
		}
	}
	s.header.Follow = o.Follow
	s.header.BatchRows = s.options.BatchRows
	return s, nil
}

// Header is the header of the stream to come.
func (s *Scan) Header() rows.Header { return s.header }

func selectColumns(schema *iceberg.Schema, names []string) (*iceberg.Schema, error) {
	if names == nil {
		return schema, nil
	}
	var fields []iceberg.NestedField
	for _, name := range names {
		at := slices.IndexFunc(schema.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no column %q to select; there are %s", name, columnNames(schema))
		}
		f := schema.Fields()[at]
		if slices.ContainsFunc(fields, func(g iceberg.NestedField) bool { return g.ID == f.ID }) {
			return nil, fmt.Errorf("column %q is selected twice", name)
		}
		fields = append(fields, f)
	}
	return iceberg.NewSchema(schema.ID, fields...), nil
}

func columnNames(schema *iceberg.Schema) string {
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, fmt.Sprintf("%q", f.Name))
	}
	return strings.Join(names, ", ")
}

// planFiles fills s.files. Whole files are planned: the library splits large ones by a property of
// the table that may change between a run and its resume.
func (s *Scan) planFiles(ctx context.Context) error {
	if key := s.table.Properties()["encryption.key-id"]; key != "" {
		return fmt.Errorf("it is encrypted with key %q; encrypted tables cannot be read", key)
	}
	var tasks []table.FileScanTask
	if s.snapshot != nil {
		var err error
		if tasks, err = s.tasks(ctx); err != nil {
			return fmt.Errorf("plan snapshot %d: %w%s", s.snapshot.SnapshotID, err, s.oddPartitionNames())
		}
	}
	for _, f := range s.options.also {
		tasks = append(tasks, table.FileScanTask{File: f})
	}
	for _, t := range tasks {
		if t.Start != 0 {
			continue // a later split of a file that is taken whole
		}
		if s.options.Only != nil && !s.options.Only[t.File.FilePath()] {
			continue
		}
		t.Length, t.Residual = t.File.FileSizeBytes(), nil
		f := plannedFile{FileScanTask: t}
		f.skip = s.filter != nil && !s.options.WholePlan && !s.filter.Possible(s.fileStats(t.File))
		s.files = append(s.files, f)
	}
	slices.SortStableFunc(s.files, func(a, b plannedFile) int {
		return cmp.Or(cmp.Compare(sequence(a), sequence(b)), cmp.Compare(a.File.FilePath(), b.File.FilePath()))
	})
	if err := s.refuse(); err != nil {
		return err
	}
	return s.inspect(ctx)
}

func sequence(f plannedFile) int64 {
	if f.DataSequenceNumber == nil {
		return 0
	}
	return *f.DataSequenceNumber
}

// typesOf are the types of a schema's top-level fields by ID.
func typesOf(schema *iceberg.Schema) map[int]iceberg.Type {
	out := map[int]iceberg.Type{}
	for _, f := range schema.Fields() {
		out[f.ID] = f.Type
	}
	return out
}

// digest is of the ordered list of files and their deletes.
func (s *Scan) digest() string {
	h := sha256.New()
	for _, f := range s.files {
		fmt.Fprintf(h, "%s\x00%d\x00", f.File.FilePath(), f.File.Count())
		for _, d := range slices.Concat(f.DeleteFiles, f.EqualityDeleteFiles, f.DeletionVectorFiles) {
			fmt.Fprintf(h, "%s\x01", d.FilePath())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// expected is what is read from o.From on.
func (s *Scan) expected() rows.Expected {
	var from rows.Cursor
	if s.options.From != nil {
		from = *s.options.From
	}
	e := s.ExpectedFrom(from)
	if s.options.Limit > 0 {
		e.Rows = min(e.Rows, s.options.Limit)
	}
	return e
}

// ExpectedFrom is what is read from a cursor on that does not lie before the scan's start. Rows are an
// upper bound where deletes decide; the bytes of the cursor's file are shared out by rows.
func (s *Scan) ExpectedFrom(from rows.Cursor) rows.Expected {
	var e rows.Expected
	for i, f := range s.files {
		if int64(i) < from.File || f.skip {
			continue
		}
		n, bytes := f.File.Count(), f.File.FileSizeBytes()
		gone := int64(0)
		for g, group := range f.groups {
			switch {
			case f.skips != nil && f.skips[g], int64(i) == from.File && g < from.RowGroup:
				gone += group
			case int64(i) == from.File && g == from.RowGroup:
				gone += from.Row
			}
		}
		if gone > 0 {
			left := max(0, n-gone)
			if left == 0 {
				continue
			}
			bytes = int64(float64(bytes) * float64(left) / float64(n))
			n = left
		}
		e.Rows += n
		e.Bytes += bytes
		e.Files++
	}
	return e
}

// AutoBatchRows is the number that `--batch-rows auto` stands for.
func AutoBatchRows(e rows.Expected) int64 {
	if e.Bytes <= autoBytes {
		return max(1, min(max(e.Rows, autoAtLeast), autoAtMost))
	}
	return max(autoAtLeast, min(int64(float64(e.Rows)*autoBytes/float64(e.Bytes)), autoAtMost))
}
