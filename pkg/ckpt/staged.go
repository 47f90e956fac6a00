package ckpt

import "fmt"

// StagedFormat and StagedVersion are the first members of the first line of FILE.staged.
const (
	StagedFormat  = "icepipe-staged"
	StagedVersion = 2 // 2: batches of upserts
)

func stagedFile() sideFile {
	return sideFile{".staged", StagedFormat, StagedVersion, "staged batches", "move it away: its batches are then staged anew"}
}

// Staged returns the batches of a job whose files are written and that land together, in order: those of
// FILE.staged, a line of JSON each. There are none where the file is not there, or is another job's. A last
// line that is not whole is what a crash left of it, and does not count; anything else that cannot be read
// is ErrCorrupt. Staged takes no lock.
func (s *Store) Staged(job string) ([]Pending, error) {
	var out []Pending
	err := s.lines(stagedFile(), job, func(line []byte) error {
		var b Pending
		err := strict(line, &b)
		if err == nil {
			out = append(out, b)
		}
		return err
	})
	return out, err
}

// Restage makes FILE.staged anew, all or nothing, with these batches of a job; a run that goes on with
// a job does so before its first Stage, since what a crash left behind the last line would spoil the next
// one. The caller holds the lock.
func (s *Store) Restage(job string, batches []Pending) error {
	lines := make([]any, len(batches))
	for i := range batches {
		lines[i] = &batches[i]
	}
	return s.restart(stagedFile(), job, lines)
}

// Stage adds a batch to FILE.staged. Once it returns nil the batch survives a crash; after an error the
// next call is Restage.
func (s *Store) Stage(batch *Pending) error {
	if err := s.addLine(stagedFile(), batch); err != nil {
		return fmt.Errorf("stage batch %d: %w", batch.Batch, err)
	}
	return nil
}

// Unstage removes FILE.staged; there need be none. The caller holds the lock.
func (s *Store) Unstage() error { return s.drop(stagedFile()) }
