// Package ckpt keeps the checkpoint of a job: one JSON file that says which rows have reached the
// destination and which files wait for their commit.
//
// The checkpoint is a note about the destination table, never the truth: every snapshot that a job
// makes carries marks of its own, and the marks decide where the two differ. The file is therefore
// allowed to be a batch behind, but it is never half of one state and half of another: a crash
// leaves the document as it was or as it was to be.
//
// The file stays small however many batches a job has, since it holds the last batch and totals,
// not a list. Two members grow with something else: Pending with the number of data files of one
// batch (about 500 bytes each), and Warnings with what the caller puts there. The files of a job that
// lands as one snapshot stand in a side file, FILE.staged, that grows by a line a batch.
//
// The format carries a version. It is raised by every change of the format, an added member
// included, because an older program that leaves out what it does not know would lose it with its
// next Save. A program reads its own version and older ones, and refuses later versions as well as
// unknown members of a version that it knows.
package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Format and Version are the first members of every checkpoint file.
const (
	Format  = "icepipe-checkpoint"
	Version = 4 // 2: places of REST catalogs; 3: what an undo left; 4: batches that are staged
)

// States of a job.
const (
	Running  = "running"  // batches may be missing
	Complete = "complete" // all rows are in the destination; terminal
	Undone   = "undone"   // what the job wrote was taken back; a redo puts it back
)

// UnknownSnapshot stands for DestSnapshotBefore where nobody knows it any more.
const UnknownSnapshot = "unknown"

var (
	// ErrCorrupt says that a file is not a whole checkpoint.
	ErrCorrupt = errors.New("corrupt")
	// ErrVersion says that a checkpoint has a version which this program does not know.
	ErrVersion = errors.New("unknown version")
	// ErrForeign says that a file is the JSON of another program, such as iceberg-ops.
	ErrForeign = errors.New("not a checkpoint of icepipe")
	// ErrLocked says that another process works on the job.
	ErrLocked = errors.New("locked")
)

// A Checkpoint is the state of one job. Snapshot IDs are strings, since they do not fit the
// numbers of every JSON reader.
type Checkpoint struct {
	Format  string    `json:"format"`  // set by Save
	Version int       `json:"version"` // set by Save
	Job     string    `json:"job"`     // UUID
	State   string    `json:"state"`   // Running, Complete or Undone
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`

	Source      Table `json:"source"`      // SnapshotID is the pinned one
	Destination Table `json:"destination"` // SnapshotID stays empty: see LastSnapshot

	Settings       Settings        `json:"settings"`
	SettingsDigest string          `json:"settings_digest"` // set by Save, held against Settings by Load
	Plan           json.RawMessage `json:"plan,omitempty"`  // the resolved plan, owned by pkg/plan
	SchemaChanges  []string        `json:"schema_changes,omitempty"`

	// DestSnapshotBefore is the destination's snapshot before the job wrote anything: null where
	// it had none, UnknownSnapshot where its job was recovered from marks the first of which expired.
	DestSnapshotBefore *string `json:"dest_snapshot_before"`

	Cursor       string   `json:"cursor"`  // where rows are missing from
	Batches      int64    `json:"batches"` // number of the next batch
	Totals       Totals   `json:"totals"`  // of the batches before Cursor
	LastSnapshot string   `json:"last_snapshot,omitempty"`
	Pending      *Pending `json:"pending,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`

	// Left is what an undo took the destination's branch from. It is noted before the branch is moved, so that
	// where State is not Undone nobody noted yet whether it was.
	Left *Left `json:"left,omitempty"`
}

// A Left is the state that an undo ended.
type Left struct {
	Head     string `json:"head"`                // snapshot of the branch
	SchemaID *int   `json:"schema_id,omitempty"` // current schema, where the undo changed it
	State    string `json:"state"`               // of the job
}

// A Table is one end of a job.
type Table struct {
	Identifier []string `json:"identifier"` // namespace levels, then the name
	UUID       string   `json:"uuid,omitempty"`
	Location   string   `json:"location,omitempty"` // identifies a v1 table that has no UUID
	SnapshotID string   `json:"snapshot_id,omitempty"`
	Branch     string   `json:"branch,omitempty"`
	Place      *Place   `json:"place,omitempty"`
}

// A Place says how to reach a table's catalog. It never holds a secret. Its members are those of
// rows.Place, so that one converts to the other.
type Place struct {
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	DBPath    string `json:"db_path,omitempty"`
	URI       string `json:"uri,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	Warehouse string `json:"warehouse,omitempty"`
}

// Totals sums up the batches that are done.
type Totals struct {
	RowsMoved    int64 `json:"rows_moved"`    // source rows that passed the filter
	RowsInserted int64 `json:"rows_inserted"` // rows of the committed data files
	RowsRejected int64 `json:"rows_rejected"`

	// Of upserts: rows that took the place of others, that were there as they are, and that were left out for
	// another row with the same key.
	RowsUpdated   int64 `json:"rows_updated,omitempty"`
	RowsUnchanged int64 `json:"rows_unchanged,omitempty"`
	RowsSurplus   int64 `json:"rows_surplus,omitempty"`

	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
}

// A Pending is a batch whose data files are written and synced and whose commit is not known to
// have landed. A resume looks for it in the destination, and commits the very same files if it is
// not there.
type Pending struct {
	Batch     int64         `json:"batch"`
	From      string        `json:"from"`       // cursor
	To        string        `json:"to"`         // cursor
	Rows      int64         `json:"rows"`       // source rows that passed the filter
	Rejected  int64         `json:"rejected"`   // of them, rows that are in no file
	BytesRead int64         `json:"bytes_read"` // bytes of source files that were read for them
	Base      *string       `json:"base"`       // head that the files are to be committed on; null: none
	Stream    string        `json:"stream"`     // UUID of the stream that brought the rows
	Files     []PendingFile `json:"files"`

	// Upserted is of a batch of an upsert what its rows are by the base. Its files are not committed by another
	// run: it writes the batch again, by the head that it finds.
	Upserted *Upserted `json:"upserted,omitempty"`

	// Compared is of a staged batch of an upsert what it changes. Its base is the snapshot that it was compared with.
	Compared *Compared `json:"compared,omitempty"`

	// Staged says of a commit of many batches that its files are those of the first so many in FILE.staged.
	Staged int64 `json:"staged,omitempty"`
}

// A Compared says which rows a staged batch of an upsert met, in its base and in files of earlier staged batches: by
// path of data file, the positions as a roaring bitmap of Iceberg's form. The rows of many batches are in the table
// only when all land, and what a batch changes cannot be told from its files alone.
type Compared struct {
	Schema int               `json:"schema"`          // of the destination
	Taken  map[string][]byte `json:"taken,omitempty"` // rows that those of the batch take the place of
	Same   map[string][]byte `json:"same,omitempty"`  // rows of the base that are there as the batch holds them
}

// An Upserted says what became of the source rows of a batch of an upsert.
type Upserted struct {
	Inserted  int64 `json:"inserted"`
	Updated   int64 `json:"updated"`
	Unchanged int64 `json:"unchanged"`
	Surplus   int64 `json:"surplus"`
}

// Paths are those of the pending files; empty, not nil, where there are none. p may be nil.
func (p *Pending) Paths() []string {
	paths := []string{}
	if p != nil {
		for _, f := range p.Files {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// A PendingFile is a data file that waits for its commit.
type PendingFile struct {
	SpecID  int    `json:"spec_id"` // of the partition spec that it is encoded with
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Rows    int64  `json:"rows"`
	Encoded []byte `json:"encoded"` // the library's data file, as its codec writes it
}

// check tells why c is no checkpoint, if so.
func (c *Checkpoint) check() error {
	switch {
	case !isUUID(c.Job):
		return fmt.Errorf("job %q is not a UUID", c.Job)
	case c.State != Running && c.State != Complete && c.State != Undone:
		return fmt.Errorf("state %q is none of %s, %s, %s", c.State, Running, Complete, Undone)
	case len(c.Source.Identifier) == 0 || len(c.Destination.Identifier) == 0:
		return errors.New("source and destination need an identifier")
	case c.Batches < 0:
		return fmt.Errorf("batches is %d", c.Batches)
	case c.State == Undone && c.Left != nil && c.Left.State != Running && c.Left.State != Complete:
		return fmt.Errorf("the state that was left is %q", c.Left.State)
	case c.State != Running && c.Pending != nil:
		return fmt.Errorf("state is %q with batch %d pending", c.State, c.Pending.Batch)
	}
	return nil
}

// isUUID tells whether s has the form 8-4-4-4-12 in hexadecimal digits.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, r := range s {
		switch i {
		case 8, 13, 18, 23:
			if r != '-' {
				return false
			}
		default:
			if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F') {
				return false
			}
		}
	}
	return true
}
