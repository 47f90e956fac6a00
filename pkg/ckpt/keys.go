package ckpt

import (
	"fmt"
	"slices"
)

// KeysFormat and KeysVersion are the first members of the first line of FILE.keys.
const (
	KeysFormat  = "icepipe-keys"
	KeysVersion = 1
)

func keysFile() sideFile {
	return sideFile{".keys", KeysFormat, KeysVersion, "keys of the source", "restore it from a copy, or begin the job anew"}
}

// BatchKeys are the keys of a batch of an upsert that the job had not met before, by their digests one after the
// other. They are noted, in FILE.keys, before the batch is committed, so that a run that goes on with the job
// knows which rows of the source a later one with the same key comes after.
type BatchKeys struct {
	Batch int64  `json:"batch"`
	Keys  []byte `json:"keys"`
}

// Keys returns the keys of a job's batches before the one with a number, by batch. Of a batch that was noted
// more than once, since a run died before it landed, the last note counts. A batch of which there is none, as
// where the file was lost, is an error.
func (s *Store) Keys(job string, before int64) ([]BatchKeys, error) {
	noted := make([]*BatchKeys, before)
	err := s.lines(keysFile(), job, func(line []byte) error {
		var k BatchKeys
		if err := strict(line, &k); err != nil {
			return err
		}
		if k.Batch >= 0 && k.Batch < before {
			noted[k.Batch] = &k
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if i := slices.Index(noted, nil); i >= 0 {
		return nil, fmt.Errorf("%q does not name the keys of batch %d; restore it from a copy, or begin the job anew", s.path+keysFile().suffix, i)
	}
	out := make([]BatchKeys, before)
	for i, k := range noted {
		out[i] = *k
	}
	return out, nil
}

// RestartKeys makes FILE.keys anew, all or nothing, with the keys of these batches of a job; a run does so before
// its first AddKeys. The caller holds the lock.
func (s *Store) RestartKeys(job string, batches []BatchKeys) error {
	lines := make([]any, len(batches))
	for i := range batches {
		lines[i] = &batches[i]
	}
	return s.restart(keysFile(), job, lines)
}

// AddKeys notes the keys of a batch. Once it returns nil they survive a crash; after an error the next call is
// RestartKeys.
func (s *Store) AddKeys(k BatchKeys) error {
	if err := s.addLine(keysFile(), &k); err != nil {
		return fmt.Errorf("batch %d: %w", k.Batch, err)
	}
	return nil
}

// DropKeys removes FILE.keys; there need be none. The caller holds the lock.
func (s *Store) DropKeys() error { return s.drop(keysFile()) }
