// Package upsert finds out what a batch of rows changes in a table: which of them are new there, which take the
// place of others, and which are there already as they are.
//
// A Target is the table as the job knows it: an index of its keys, made once, and kept up to date by the files
// that later snapshots bring. A Batch sorts rows by it. Nothing here writes to the table.
package upsert

import (
	"fmt"
	"slices"
	"strings"

	"icepipe/internal/lake"
)

// NullKeys says what becomes of rows whose key holds a null.
type NullKeys string

// What may become of null keys.
const (
	NullError  NullKeys = "error"  // they end the job
	NullMatch  NullKeys = "match"  // null equals null
	NullInsert NullKeys = "insert" // such rows are added, and never looked for
)

// Duplicates says what becomes of rows of the source that share a key.
type Duplicates string

// What may become of duplicates.
const (
	WithinBatch Duplicates = "within-batch" // two in one batch end the job; the row of a later batch wins
	Refuse      Duplicates = "error"        // two anywhere in the job end it
	First       Duplicates = "first"        // the first row of the source wins
	Last        Duplicates = "last"         // the last one
)

// Options say how rows are matched.
type Options struct {
	Keys       []string // top-level columns of the destination that identify a row
	NullKeys   NullKeys
	Duplicates Duplicates
	FloatKeys  bool // columns of float and double may be keys
	UpdateAll  bool // a key may be there more than once: all of its rows are updated
	Mode       lake.DeleteMode
	Staged     bool // the job's batches are staged, and land as one commit

	Memory int64  // bytes that the index of keys may hold before it goes to disk, 0 for a default
	Dir    string // of temporary files, "" for the system's
}

// CheckNames refuses names of key columns that cannot be meant: none, blank ones, one twice.
func CheckNames(keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf("upsert keys: name at least one column")
	}
	for i, k := range keys {
		if strings.TrimSpace(k) == "" {
			return fmt.Errorf("upsert keys: a name is blank")
		}
		if slices.Contains(keys[:i], k) {
			return fmt.Errorf("upsert keys: column %q is named twice", k)
		}
	}
	return nil
}
