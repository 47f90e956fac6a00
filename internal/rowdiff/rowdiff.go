// Package rowdiff finds the rows in which two tables differ, in flat memory.
//
// Both sides are read twice at most. The first pass sums the hashes of the rows of each bucket of keys:
// what agrees there needs no more looking at. The second keeps the rows of the buckets that differ, on
// disk where they are many, and compares them key by key.
package rowdiff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"

	"icepipe/internal/rowform"
)

// A Side is one of the tables: it yields all of its rows, anew at each call, in any order. Whoever ranges
// owns the record batches.
type Side func(context.Context) iter.Seq2[arrow.RecordBatch, error]

// A Diff says how rows are compared.
type Diff struct {
	Form      *rowform.Form
	Keys      []int           // columns that identify a row; none: the whole row does
	Tolerance map[int]float64 // by column of float or double: values that differ by no more are equal
	Memory    int64           // bytes of rows to hold, about; 0 for 64 MiB
	Dir       string          // for temporary files, "" for the system's
}

// A Kind says how a row differs.
type Kind string

// The kinds of differences.
const (
	Missing Kind = "missing" // in the source alone
	Extra   Kind = "extra"   // in the destination alone
	Changed Kind = "changed" // in both, with other values
)

// A Difference is a row that differs. Its bytes are valid until the call that it is given to returns.
type Difference struct {
	Kind    Kind
	Source  []byte // canonical form of the row, nil for Extra
	Dest    []byte // nil for Missing
	Columns []int  // of Changed: those that differ
	Count   int64  // rows that differ in this very way
}

// Totals are what a comparison counted.
type Totals struct {
	SourceRows, DestRows    int64
	Missing, Extra, Changed int64
	Passes                  int // over each side
}

// Agree reports whether there was no difference.
func (t Totals) Agree() bool { return t.Missing+t.Extra+t.Changed == 0 }

const (
	buckets       = 1 << 16
	defaultMemory = 64 << 20
)

// Run compares two sides and calls emit for each difference, in an order that is the same for the same
// rows. An error of emit ends it.
func (d *Diff) Run(ctx context.Context, source, dest Side, emit func(Difference) error) (totals Totals, err error) {
	if len(d.Tolerance) > 0 && len(d.Keys) == 0 {
		return Totals{}, errors.New("a tolerance needs keys, by which rows are found whose values differ a little")
	}
	differ := func(uint16) bool { return true }
	size := int64(math.MaxInt64) // of the rows that are to be kept
	if len(d.Tolerance) == 0 {
		a, b, err := d.sums(ctx, source, dest)
		if err != nil {
			return totals, err
		}
		totals = Totals{SourceRows: a.rows, DestRows: b.rows, Passes: 1}
		size = 0
		for i := range a.bucket {
			if a.bucket[i] != b.bucket[i] {
				size += a.bucket[i].bytes + b.bucket[i].bytes
			}
		}
		if size == 0 {
			return totals, nil
		}
		differ = func(i uint16) bool { return a.bucket[i] != b.bucket[i] }
	}
	store, err := newStore(d, size, 0)
	if err != nil {
		return totals, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	n, m, err := store.fill(ctx, source, dest, differ)
	if err != nil {
		return totals, err
	}
	if totals.Passes > 0 && (n != totals.SourceRows || m != totals.DestRows) {
		return totals, fmt.Errorf("a table of %d and %d rows had %d and %d at the second reading", totals.SourceRows, totals.DestRows, n, m)
	}
	totals.SourceRows, totals.DestRows = n, m
	totals.Passes++
	err = store.compare(func(x Difference) error {
		switch x.Kind {
		case Missing:
			totals.Missing += x.Count
		case Extra:
			totals.Extra += x.Count
		case Changed:
			totals.Changed += x.Count
		}
		return emit(x)
	})
	return totals, err
}

// A sum is order-free: two of them are the same when the same rows went in, however often and in whatever
// order, but for a chance of 2^-256.
type sum struct {
	rows, bytes int64
	hash        Sum
}

type sums struct {
	rows   int64
	bucket [buckets]sum
}

// sums reads both sides at the same time.
func (d *Diff) sums(ctx context.Context, source, dest Side) (a, b *sums, err error) {
	a, b = &sums{}, &sums{}
	err = Both(ctx, func(ctx context.Context) error { return d.sum(ctx, source, a) }, func(ctx context.Context) error { return d.sum(ctx, dest, b) })
	return a, b, err
}

func (d *Diff) sum(ctx context.Context, side Side, s *sums) error {
	return d.each(ctx, side, func(key, row []byte) error {
		at := &s.bucket[bucketOf(key)]
		at.rows++
		at.bytes += int64(len(key)+len(row)) + recordHead
		at.hash.Add(sha256.Sum256(row))
		s.rows++
		return nil
	})
}

func bucketOf(key []byte) uint16 { return uint16(xxh3.Hash(key)) }

// each calls f with key and form of every row of a side.
func (d *Diff) each(ctx context.Context, side Side, f func(key, row []byte) error) error {
	var key, row []byte
	one := func(batch arrow.RecordBatch) error {
		defer batch.Release()
		rows, err := d.Form.Bind(batch)
		if err != nil {
			return err
		}
		for i := range int(batch.NumRows()) {
			row = rows.Append(row[:0], i)
			k := row
			if len(d.Keys) > 0 {
				key = key[:0]
				for _, c := range d.Keys {
					key = rows.AppendColumn(key, c, i)
				}
				k = key
			}
			if err := f(k, row); err != nil {
				return err
			}
		}
		return nil
	}
	for batch, err := range side(ctx) {
		if err != nil {
			return err
		}
		if err := one(batch); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Both does two things at the same time, and gives the first error; the other thing is then told to end.
func Both(ctx context.Context, f, g func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for _, do := range []func(context.Context) error{f, g} {
		wait.Go(func() {
			if err := do(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// columns are those in which two forms of a row differ.
func (d *Diff) columns(a, b []byte) ([]int, error) {
	if bytes.Equal(a, b) {
		return nil, nil
	}
	x, err := d.Form.Cells(a)
	if err != nil {
		return nil, err
	}
	y, err := d.Form.Cells(b)
	if err != nil {
		return nil, err
	}
	var out []int
	for i := range x {
		if !bytes.Equal(x[i], y[i]) && !d.near(i, x[i], y[i]) {
			out = append(out, i)
		}
	}
	return out, nil
}

// near reports whether two values of a column are as good as equal.
func (d *Diff) near(column int, a, b []byte) bool {
	most, ok := d.Tolerance[column]
	if !ok {
		return false
	}
	x, hasX := rowform.Double(a)
	y, hasY := rowform.Double(b)
	return hasX && hasY && near(x, y, most)
}
