package catalogs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// copyIdle copies a database in WAL mode that no process has open, and returns "" for one in use.
// SQLite makes two files beside such a database even to read it, and leaves them there, in the
// reader's name: the owner may then be unable to write. Without a log beside it, the file itself
// is the whole database.
func copyIdle(path string) (copied string, err error) {
	idle := func() (fs.FileInfo, bool) {
		if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
			return nil, false
		}
		st, err := os.Stat(path)
		return st, err == nil
	}
	before, ok := idle()
	if !ok {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	after, ok := idle()
	if !ok || changed(before, after, text) {
		return "", nil // a writer came
	}
	return writeCopy(map[string][]byte{"": text})
}

// copyCrashed copies a database whose writer died in the middle of a transaction, with the journal that
// takes the transaction back, and returns "" when another process changed one of them meanwhile. Who
// may only read cannot roll back, and a catalog that is read is never written (case 91): what is in it
// is read from the copy, as it was before the transaction.
func copyCrashed(path string) (copied string, err error) {
	texts := map[string][]byte{}
	before := map[string]fs.FileInfo{}
	for _, suffix := range []string{journal, ""} {
		if before[suffix], err = os.Stat(path + suffix); err == nil {
			texts[suffix], err = os.ReadFile(path + suffix)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	for suffix, was := range before {
		is, err := os.Stat(path + suffix)
		if err != nil || changed(was, is, texts[suffix]) {
			return "", nil // it is being rolled back, or was
		}
	}
	return writeCopy(texts)
}

// journal is what SQLite adds to a database's name for its rollback journal.
const journal = "-journal"

// changed tells whether a file was written between two looks at it, or while text was read.
func changed(before, after fs.FileInfo, text []byte) bool {
	return after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) || int64(len(text)) != after.Size()
}

// writeCopy writes a database and the files beside it, by the suffixes of their names, into a new
// folder, and returns the database's path.
func writeCopy(texts map[string][]byte) (string, error) {
	dir, err := os.MkdirTemp("", "icepipe-catalog-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "catalog.db")
	for suffix, text := range texts {
		if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
			os.RemoveAll(dir)
			return "", err
		}
	}
	return path, nil
}
