package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// A Store is the checkpoint file of one job. Its methods may be called by one goroutine at a time;
// a process that saves holds the lock.
type Store struct {
	path string
	disk disk
}

// Open names the file. It touches no disk: the first Load, Save or Lock does. A path that is a
// symbolic link stands for the file that it points to.
func Open(path string) *Store {
	return &Store{path: path, disk: osDisk{}}
}

// Path returns the path that the store was opened with.
func (s *Store) Path() string { return s.path }

const remedy = "restore it from a copy, or move it away and make it anew with ice-migrate recover"

// Load returns the checkpoint, and nil without an error where there is no file. Load takes no
// lock: it sees the document before or after a Save, never between. Its errors are one line with
// the remedy; they wrap ErrCorrupt, ErrVersion or ErrForeign where the file could be read.
func (s *Store) Load() (*Checkpoint, error) {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q cannot be read: %w", s.path, err)
	}
	text, err := s.disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q cannot be read: %w (see to its permissions)", s.path, err)
	}
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w%s", s.path, err, wayBack(text))
	}
	return c, nil
}

// wayBack names the destination's snapshot before the job where a file that is refused tells it, as those of
// iceberg-ops and of other versions may.
func wayBack(text []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return ""
	}
	var number json.Number
	var name string
	switch before, ok := members["dest_snapshot_before"]; {
	case !ok:
		return ""
	case string(before) == "null":
		return " (its dest_snapshot_before is none: the table had no snapshot)"
	case json.Unmarshal(before, &name) == nil && isDigits(name):
		return " (its dest_snapshot_before is " + name + ")"
	case json.Unmarshal(before, &number) == nil && isDigits(number.String()):
		return " (its dest_snapshot_before is " + number.String() + ")"
	}
	return ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parse reads one checkpoint, strictly.
func parse(text []byte) (*Checkpoint, error) {
	corrupt := func(err error) error {
		return fmt.Errorf("%w: %w (%s)", ErrCorrupt, err, remedy)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, corrupt(errors.New("the file is empty"))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, corrupt(err)
	}
	format, ok := members["format"]
	if !ok {
		return nil, fmt.Errorf("%w, it looks like one of iceberg-ops: finish that job with iceberg-ops, or name another file", ErrForeign)
	}
	var name string
	if json.Unmarshal(format, &name) != nil || name != Format {
		return nil, fmt.Errorf("%w, its format is %s: name another file", ErrForeign, format)
	}
	var version int
	if err := json.Unmarshal(members["version"], &version); err != nil || version < 1 {
		return nil, corrupt(fmt.Errorf("its version is %q", members["version"]))
	}
	if version > Version {
		return nil, fmt.Errorf("%w %d, this program knows versions up to %d: go on with the icepipe that wrote it or a later one", ErrVersion, version, Version)
	}

	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	c := new(Checkpoint)
	if err := dec.Decode(c); err != nil {
		return nil, corrupt(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, corrupt(errors.New("something follows the document"))
	}
	if err := c.check(); err != nil {
		return nil, corrupt(err)
	}
	if c.SettingsDigest != c.Settings.Digest() {
		return nil, corrupt(errors.New("the settings do not match their digest, as after an edit by hand"))
	}
	if len(c.Plan) > 0 {
		var plan bytes.Buffer
		if err := json.Compact(&plan, c.Plan); err != nil {
			return nil, corrupt(err)
		}
		c.Plan = plan.Bytes()
	}
	return c, nil
}

// Save replaces the document at path. Once it returns nil, c survives a crash; where it returns an
// error, or the machine stops meanwhile, the document is the old one or the new one. Save sets
// format, version and digest in the file, leaves c alone, and refuses what Load would refuse. The
// file can be read by its owner alone.
func (s *Store) Save(c *Checkpoint) error {
	doc := *c
	doc.Format, doc.Version = Format, Version
	if doc.Settings == nil {
		doc.Settings = Settings{}
	}
	doc.SettingsDigest = doc.Settings.Digest()
	doc.Created, doc.Updated = doc.Created.UTC(), doc.Updated.UTC()
	if err := doc.check(); err != nil {
		return fmt.Errorf("save checkpoint %q: %w", s.path, err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(&doc); err != nil {
		return fmt.Errorf("save checkpoint %q: %w", s.path, err)
	}
	if err := s.replace(text.Bytes()); err != nil {
		return fmt.Errorf("save checkpoint %q: %w", s.path, err)
	}
	return nil
}

// replace puts text in the checkpoint's place.
func (s *Store) replace(text []byte) error {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return err
	}
	return s.put(path, text)
}

// put puts text in a file's place: all or nothing.
func (s *Store) put(path string, text []byte) (err error) {
	tmp, err := s.disk.Create(path + tmpInfix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.disk.Remove(tmp.Name()) // gone already where the rename was done
		}
	}()
	if _, err := tmp.Write(text); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Sync(); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := s.disk.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return s.disk.SyncDir(filepath.Dir(path))
}

// Reset removes the document; there need be none. With it goes the knowledge of which rows are in
// the destination, so the caller has seen to those first, and holds the lock. The lock file stays.
func (s *Store) Reset() error {
	path, err := s.disk.Resolve(s.path)
	if err != nil {
		return fmt.Errorf("reset checkpoint %q: %w", s.path, err)
	}
	err = s.disk.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.disk.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("reset checkpoint %q: %w", s.path, err)
	}
	return nil
}
