package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// A sideFile is a file beside the checkpoint that grows by a line of JSON a batch: FILE and its suffix. Its first
// line says what it is and whose.
type sideFile struct {
	suffix, format string
	version        int
	what, lost     string // what it holds, and what becomes of that when it is moved away
}

// sideHead is the first line of a side file.
type sideHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Job     string `json:"job"`
}

// lines calls take with each line of a job's side file, which is not there or another job's where there are none.
// A last line that is not whole is what a crash left of it, and does not count; anything else that take refuses
// is ErrCorrupt. It takes no lock.
func (s *Store) lines(side sideFile, job string, take func(line []byte) error) error {
	path, err := s.sidePath(side)
	if err != nil {
		return err
	}
	text, err := s.disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %q cannot be read: %w (see to its permissions)", side.what, path, err)
	}
	if err := side.parse(text, job, take); err != nil {
		return fmt.Errorf("%s %q: %w: %w (%s)", side.what, path, ErrCorrupt, err, side.lost)
	}
	return nil
}

func (side sideFile) parse(text []byte, job string, take func([]byte) error) error {
	head, text, whole := bytes.Cut(text, []byte("\n"))
	if !whole {
		return errors.New("its first line is not whole")
	}
	var h sideHead
	if err := json.Unmarshal(head, &h); err != nil {
		return err
	}
	if h.Format != side.format || h.Version < 1 || h.Version > side.version {
		return fmt.Errorf("its format is %q, version %d", h.Format, h.Version)
	}
	if h.Job != job {
		return nil
	}
	for n := 2; ; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil
		}
		if err := take(line); err != nil {
			if len(rest) == 0 {
				return nil // named, and not written: the machine stopped
			}
			return fmt.Errorf("line %d: %w", n, err)
		}
		text = rest
	}
}

// restart makes a side file anew, all or nothing, with these lines; a run that goes on with a job does so before
// it adds one, since what a crash left behind the last line would spoil the next one. The caller holds the lock.
func (s *Store) restart(side sideFile, job string, lines []any) error {
	path, err := s.sidePath(side)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err = enc.Encode(sideHead{side.format, side.version, job})
	for _, line := range lines {
		err = errors.Join(err, enc.Encode(line))
	}
	if err == nil {
		err = s.put(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", side.what, path, err)
	}
	return nil
}

// addLine adds a line to a side file. Once it returns nil the line survives a crash; after an error the next call
// is restart.
func (s *Store) addLine(side sideFile, line any) error {
	path, err := s.sidePath(side)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err = enc.Encode(line); err == nil {
		err = s.add(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", side.what, path, err)
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

// drop removes a side file; there need be none. The caller holds the lock.
func (s *Store) drop(side sideFile) error {
	path, err := s.sidePath(side)
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
		return fmt.Errorf("remove the %s %q: %w", side.what, path, err)
	}
	return nil
}

// sidePath is the side file's, beside the file that a symbolic link stands for.
func (s *Store) sidePath(side sideFile) (string, error) {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return "", fmt.Errorf("checkpoint %q: %w", s.path, err)
	}
	return path + side.suffix, nil
}

// strict reads a line of JSON without members that nobody knows.
func strict(line []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}
