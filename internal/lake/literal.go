package lake

import (
	"context"
	"fmt"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/storage"
)

// standIn is the location that the library is told of a table whose own is no URL, or not the URL that it would make
// of it: it writes spaces and letters beyond ASCII as percent codes, cuts at question marks and refuses a bare
// percent sign, where all other readers of a table take its location as it stands (case 64).
const standIn = "icepipe:///staged"

// metadataFolder is the folder of the table's metadata.
func (t *Table) metadataFolder() string { return storage.MetadataFolder(t.Location(), t.Properties()) }

// staging is the table on which the library stages commits: the table itself, or one in its place whose metadata is
// said to be at standIn and goes to where it belongs. editList then has the snapshot say so.
func (t *Table) staging() (*table.Table, error) {
	const name = "x"
	places, err := t.LocationProvider()
	if err == nil && places.NewMetadataLocation(name) == t.metadataFolder()+"/"+name {
		return t.Table, nil
	}
	b, err := table.MetadataBuilderFromBase(t.Metadata(), t.MetadataLocation())
	if err != nil {
		return nil, err
	}
	if err := b.SetLoc(standIn); err != nil {
		return nil, err
	}
	if err := b.RemoveProperties([]string{table.WriteDataPathKey, table.WriteMetadataPathKey}); err != nil {
		return nil, err
	}
	meta, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("metadata for location %q: %w", t.Location(), err)
	}
	cat, _ := t.Catalog.(table.CatalogIO)
	real := t.metadataFolder()
	return table.New(t.Identifier(), meta, t.MetadataLocation(), func(ctx context.Context) (iceio.IO, error) {
		fs, err := t.FS(ctx)
		if err != nil {
			return nil, err
		}
		w, ok := fs.(iceio.WriteFileIO)
		if !ok {
			return nil, fmt.Errorf("the file system of table %q cannot be written to", t.Name())
		}
		return literalFiles{w, real}, nil
	}, cat), nil
}

// literal is a location that the library made of standIn, as it belongs to the table; others stay.
func (t *Table) literal(location string) string { return literal(location, t.metadataFolder()) }

func literal(location, folder string) string {
	if name, ok := strings.CutPrefix(location, standIn+"/metadata/"); ok {
		return folder + "/" + name
	}
	return location
}

// literalFiles are a table's files, with those at standIn in the table's own folder.
type literalFiles struct {
	iceio.WriteFileIO
	folder string
}

// Open implements iceio.IO.
func (f literalFiles) Open(name string) (iceio.File, error) {
	return f.WriteFileIO.Open(literal(name, f.folder))
}

// Remove implements iceio.IO.
func (f literalFiles) Remove(name string) error {
	return f.WriteFileIO.Remove(literal(name, f.folder))
}

// Create implements iceio.WriteFileIO.
func (f literalFiles) Create(name string) (iceio.FileWriter, error) {
	return f.WriteFileIO.Create(literal(name, f.folder))
}

// WriteFile implements iceio.WriteFileIO.
func (f literalFiles) WriteFile(name string, text []byte) error {
	return f.WriteFileIO.WriteFile(literal(name, f.folder), text)
}

// toLiteral has a manifest list say where its manifests are.
func (t *Table) toLiteral(list *manifestList) (*manifestList, error) {
	moved := false
	for _, entry := range list.entries {
		path, _ := entry["manifest_path"].(string)
		if is := t.literal(path); is != path {
			entry["manifest_path"], moved = is, true
		}
	}
	if !moved {
		return list, nil
	}
	text, err := list.encode()
	if err != nil {
		return nil, err
	}
	moves, err := readList(text)
	if err == nil {
		moves.changed = true
	}
	return moves, err
}
