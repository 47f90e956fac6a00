package upsert

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"icepipe/internal/keyindex"
)

// A Unique holds the keys of a source, and refuses one that comes twice. It is used by one goroutine, and holds
// temporary files until it is closed.
type Unique struct {
	keys keyColumns
	seen *keyindex.Index
}

// NewUnique begins to look at rows of a schema, which has the key columns.
func NewUnique(schema *iceberg.Schema, o Options) (*Unique, error) {
	keys, err := newKeyColumns(schema, o)
	if err != nil {
		return nil, err
	}
	return &Unique{keys: keys, seen: keyindex.New(o.Dir, o.Memory)}, nil
}

// Add looks at rows. It refuses those that an upsert refuses for their keys.
func (u *Unique) Add(ctx context.Context, rec arrow.RecordBatch) error {
	var all []keyindex.Digest
	var rows []int
	here := map[keyindex.Digest]bool{}
	twice := -1
	err := u.keys.eachOf(rec, func(row int, k key) error {
		switch {
		case u.keys.unsought(k):
			return nil
		case here[k.digest] && twice < 0:
			twice = row
		}
		here[k.digest] = true
		all, rows = append(all, k.digest), append(rows, row)
		return nil
	})
	if err != nil {
		return err
	}
	err = u.seen.Find(ctx, all, func(i int, _ place) error {
		if twice < 0 || rows[i] < twice {
			twice = rows[i]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := u.seen.Add(d, 0); err != nil {
			return err
		}
	}
	if twice < 0 {
		return nil
	}
	return u.keys.twice(rec, twice)
}

// Close removes the temporary files.
func (u *Unique) Close() error { return u.seen.Close() }
