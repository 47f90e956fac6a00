package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// StagedFormat and StagedVersion are the first members of the first line of FILE.staged.
const (
	StagedFormat  = "icepipe-staged"
	StagedVersion = 1
)

// stagedSuffix makes the name of the side file out of the checkpoint's.
const stagedSuffix = ".staged"

// stagedHead is the first line of FILE.staged.
type stagedHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Job     string `json:"job"`
}

// Staged returns the batches of a job whose files are written and that land together, in order: those of
// FILE.staged, a line of JSON each. There are none where the file is not there, or is another job's. A last
// line that is not whole is what a crash left of it, and does not count; anything else that cannot be read
// is ErrCorrupt. Staged takes no lock.
func (s *Store) Staged(job string) ([]Pending, error) {
	path, err := s.stagedPath()
	if err != nil {
		return nil, err
	}
	text, err := s.disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("staged batches %q cannot be read: %w (see to its permissions)", path, err)
	}
	batches, err := parseStaged(text, job)
	if err != nil {
		return nil, fmt.Errorf("staged batches %q: %w: %w (move it away: its batches are then staged anew)", path, ErrCorrupt, err)
	}
	return batches, nil
}

func parseStaged(text []byte, job string) ([]Pending, error) {
	head, text, whole := bytes.Cut(text, []byte("\n"))
	if !whole {
		return nil, errors.New("its first line is not whole")
	}
	var h stagedHead
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, err
	}
	if h.Format != StagedFormat || h.Version != StagedVersion {
		return nil, fmt.Errorf("its format is %q, version %d", h.Format, h.Version)
	}
	if h.Job != job {
		return nil, nil
	}
	var out []Pending
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return out, nil
		}
		var b Pending
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&b); err != nil {
			if len(rest) == 0 {
				return out, nil // named, and not written: the machine stopped
			}
			return nil, fmt.Errorf("line %d: %w", len(out)+2, err)
		}
		out, text = append(out, b), rest
	}
}

// Restage makes FILE.staged anew, all or nothing, with these batches of a job; a run that goes on with
// a job does so before its first Stage, since what a crash left behind the last line would spoil the next
// one. The caller holds the lock.
func (s *Store) Restage(job string, batches []Pending) error {
	path, err := s.stagedPath()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err = enc.Encode(stagedHead{StagedFormat, StagedVersion, job})
	for i := range batches {
		err = errors.Join(err, enc.Encode(&batches[i]))
	}
	if err == nil {
		err = s.put(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("stage batches in %q: %w", path, err)
	}
	return nil
}

// Stage adds a batch to FILE.staged. Once it returns nil the batch survives a crash; after an error the
// next call is Restage.
func (s *Store) Stage(batch *Pending) error {
	path, err := s.stagedPath()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err = enc.Encode(batch); err == nil {
		err = s.add(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("stage batch %d in %q: %w", batch.Batch, path, err)
	}
	return nil
}

// add writes text behind what a file holds.
func (s *Store) add(path string, text []byte) error {
	f, err := s.disk.Append(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// Unstage removes FILE.staged; there need be none. The caller holds the lock.
func (s *Store) Unstage() error {
	path, err := s.stagedPath()
	if err != nil {
		return err
	}
	err = s.disk.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.disk.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("remove the staged batches %q: %w", path, err)
	}
	return nil
}

// stagedPath is FILE.staged, beside the file that a symbolic link stands for.
func (s *Store) stagedPath() (string, error) {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return "", fmt.Errorf("checkpoint %q: %w", s.path, err)
	}
	return path + stagedSuffix, nil
}
