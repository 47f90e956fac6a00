// Package rows is the currency of icepipe: what flows between its stages, in one process or
// through a pipe.
//
// A Stream is a Header, which says where the rows come from and where they go, and an iterator of
// Spans, each a run of consecutive source rows that knows its place. A stream is whole only when
// its Seal has been read: the end of the iterator alone is no proof that all rows came.
package rows

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
)

// Protocol is the version of the header and of the marks on record batches.
const Protocol = 1

// ErrUnsealed says that a stream ended before its seal: rows may be missing behind the last span.
var ErrUnsealed = errors.New("stream ended before its seal")

// A Stream is a header and the spans behind it.
//
// Spans is ranged over once, by one goroutine. It yields an error as its last item or none; after
// an error the stream is broken and Seal returns ErrUnsealed. The producer stops and frees what it
// holds when the consumer breaks off.
type Stream struct {
	Header Header
	Schema *arrow.Schema // of every record batch; fields carry PARQUET:field_id where one is known
	Spans  iter.Seq2[Span, error]

	// Seal returns the totals of a whole stream once Spans has ended, ErrUnsealed until then.
	Seal func() (Seal, error)
}

// A Span is a run of consecutive source rows inside one row group and one batch. Consecutive spans
// of a stream share a cursor: To of one is From of the next.
//
// A span is opened, and then holds one record batch, or it is a promise, and opens into such spans.
// The consumer that was given a span owns what it holds, record batch or part, and releases it.
type Span struct {
	From, To  Cursor
	Rows      int64  // source rows that passed the filter, before rejects
	Kept      []byte // bitmap (bit i of byte i/8) of Rows rows: those still in Batch; nil: all
	EndsBatch bool   // a batch ends after this span

	Batch arrow.RecordBatch // nil while the span is not opened

	// Part is set on a span that is not opened and from whose rows no stage took any out: they
	// are Rows rows of a row group of a Parquet file, and can be had from there.
	Part *Part
	// Read opens the span; nil on an opened one. It is called at most once, before the stream's
	// next span is asked for. The spans that it yields make up this one; the last of them ends
	// a batch if this one does.
	Read func(context.Context) iter.Seq2[Span, error]
}

// A Part is rows of a row group of a Parquet data file: those from From to To that the mask has.
type Part struct {
	Path      string // as the table's manifest has it
	Ordinal   int    // of the row group
	GroupRows int64  // of the whole row group
	From, To  int64  // the first of its rows, and the row behind its last
	Mask      Mask   // of the row group's rows, not all of them; nil: all
	File      File   // the open file, counted: a part holds it once
	Leaves    []int  // by column of the stream: the leaf of the file that holds it, Opaque or Nulls

	// Nested are by column of the stream, where that is Opaque and nested in the file field by field as it is
	// in the stream, the leaves of the file that hold it, in order; else nil.
	Nested [][]int
	// Known is what the table's metadata says of all rows of the file.
	Known []Known
}

// Whole reports whether the part is all rows of its row group.
func (p *Part) Whole() bool { return p.Mask == nil && p.From == 0 && p.To == p.GroupRows }

// A Known is a partition value that all rows of a file share: what a transform makes of a column.
type Known struct {
	Column    int    // of the stream
	Transform string // as Iceberg writes it
	Value     any    // as a manifest has it; nil for null
}

// What a column of a part is when it is no leaf of the file.
const (
	Opaque = -1 // it takes opening the span to know the values
	Nulls  = -2 // every value is null
)

// A File is an open file that parts of spans lie in. It is closed when the last of its holders has
// released it. Who reads files knows what is behind it (internal/datafile: Source).
type File interface {
	Retain()
	Release()
}

// Open yields the opened spans that s is made of: s itself when it is opened. It takes s over.
func (s Span) Open(ctx context.Context) iter.Seq2[Span, error] {
	if s.Read == nil {
		return func(yield func(Span, error) bool) { yield(s, nil) }
	}
	return func(yield func(Span, error) bool) {
		defer s.Release()
		s.Read(ctx)(yield)
	}
}

// Release gives back what the span holds.
func (s Span) Release() {
	if s.Batch != nil {
		s.Batch.Release()
	}
	if s.Part != nil && s.Part.File != nil {
		s.Part.File.Release()
	}
}

// Opened returns the stream with each of its spans opened.
func Opened(ctx context.Context, in Stream) Stream {
	return opened(ctx, in, nil)
}

// opened opens the spans that keep, if there is one, does not want as they are.
func opened(ctx context.Context, in Stream, keep func(Span) bool) Stream {
	out := in
	out.Spans = func(yield func(Span, error) bool) {
		for span, err := range in.Spans {
			if err != nil {
				yield(Span{}, err)
				return
			}
			if keep != nil && span.Read != nil && keep(span) {
				if !yield(span, nil) {
					return
				}
				continue
			}
			for part, err := range span.Open(ctx) {
				if !yield(part, err) || err != nil {
					return
				}
			}
		}
	}
	return out
}

// A Seal is the stated end of a stream: its totals.
type Seal struct {
	Rows      int64    `json:"rows"`       // source rows that passed the filter, before rejects
	Rejects   int64    `json:"rejects"`    // of them, rows that a stage took out
	BytesRead int64    `json:"bytes_read"` // bytes of data files that were read for them
	Records   int64    `json:"records"`    // record batches, the seal not counted
	Warnings  []string `json:"warnings,omitempty"`
	Last      Cursor   `json:"last"` // To of the last span, or the header's first cursor
}

// A Header says where the rows of a stream come from and where they go.
type Header struct {
	Protocol int      `json:"protocol"`
	Requires []string `json:"requires,omitempty"` // features that a reader must know or refuse
	Stream   string   `json:"stream"`             // UUID of this stream

	Source    Table    `json:"source"`
	RowFilter string   `json:"row_filter,omitempty"` // canonical form
	Select    []string `json:"select,omitempty"`     // source columns, nil for all
	BatchRows int64    `json:"batch_rows"`           // source rows that pass the filter in one batch
	Follow    bool     `json:"follow,omitempty"`     // at most: a batch ends behind a row group where the next would be cut
	Files     string   `json:"files"`                // digest of the ordered list of data files
	First     Cursor   `json:"first"`                // where this stream starts
	Trial     bool     `json:"trial,omitempty"`      // cut short by --limit: takes no checkpoint
	Expected  Expected `json:"expected"`

	// After a reconciler.
	Destination *Table          `json:"destination,omitempty"`
	Plan        json.RawMessage `json:"plan,omitempty"`       // the resolved plan, owned by pkg/plan
	Reconciler  json.RawMessage `json:"reconciler,omitempty"` // its settings in canonical form, owned by pkg/plan

	// Foreign marks a plain Arrow stream of another program: no source, no places, no seal.
	Foreign bool `json:"-"`
}

// Expected is what planning knows of the rows to come; an upper bound where a row filter or
// equality deletes decide later.
type Expected struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
}

// A Table identifies a table, and for a source the snapshot that is read.
type Table struct {
	Identifier []string        `json:"identifier"` // namespace levels, then the name
	UUID       string          `json:"uuid,omitempty"`
	Location   string          `json:"location,omitempty"` // identifies a v1 table that has no UUID
	SnapshotID *int64          `json:"snapshot_id,string,omitempty"`
	Branch     string          `json:"branch,omitempty"` // of a source: the branch or tag that was asked for
	SchemaID   int             `json:"schema_id"`
	Schema     json.RawMessage `json:"schema,omitempty"` // Iceberg's JSON, since Arrow says less
	Version    int             `json:"format_version"`
	Place      *Place          `json:"place,omitempty"`
}

// A Place says how to reach a table's catalog. It never holds a secret.
type Place struct {
	Kind      string `json:"kind,omitempty"` // sqlite, sql, rest, glue, hive, hadoop
	Name      string `json:"name,omitempty"` // configured name, or row key of a SQL catalog
	DBPath    string `json:"db_path,omitempty"`
	URI       string `json:"uri,omitempty"`    // of a server, without user and query; Glue's may be its region's
	Prefix    string `json:"prefix,omitempty"` // of a REST catalog's routes; the ID of a Glue catalog
	Warehouse string `json:"warehouse,omitempty"`
}
