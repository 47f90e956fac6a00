package lake

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/twmb/avro/ocf"
)

// A sorter tells our files from those of others.
type sorter struct {
	table *Table
	files iceio.IO
	ours  map[string]bool // manifests, by name
}

// ofOurs keeps those that are ours, manifest lists first.
func (s *sorter) ofOurs(all []Orphan) ([]Orphan, error) {
	lists := map[string][]iceberg.ManifestFile{} // of the snapshot itself, by path of the list
	for _, o := range all {
		switch o.Kind {
		case OrphanManifest:
			s.ours[path.Base(o.Path)] = s.addsOurs(o.Path)
		case OrphanList:
			lists[o.Path] = s.own(o.Path)
		}
	}
	// A manifest that adds nothing, as one that was merged of others, is ours when its snapshot is.
	mine := map[string]bool{}
	for list, manifests := range lists {
		mine[list] = slices.ContainsFunc(manifests, func(m iceberg.ManifestFile) bool { return s.ours[path.Base(m.FilePath())] })
		if mine[list] {
			for _, m := range manifests {
				s.ours[path.Base(m.FilePath())] = true
			}
		}
	}
	var out []Orphan
	for _, kind := range []string{OrphanList, OrphanManifest, OrphanDeletes, OrphanData} {
		for _, o := range all {
			if o.Kind != kind {
				continue
			}
			switch {
			case kind == OrphanList && !mine[o.Path]:
			case kind == OrphanManifest && !s.ours[path.Base(o.Path)]:
			case (kind == OrphanData || kind == OrphanDeletes) && !s.table.Ours(o.Path):
			default:
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// addsOurs reports whether a manifest adds data or delete files, all of them ours. One that cannot be read is in
// doubt, and so not ours.
func (s *sorter) addsOurs(location string) bool {
	added := 0
	err := s.entries(location, func(entry map[string]any) bool {
		status, ok := entry["status"].(int32)
		file, isFile := entry["data_file"].(map[string]any)
		if !ok || !isFile {
			return false
		}
		if iceberg.ManifestEntryStatus(status) != iceberg.EntryStatusADDED {
			return true
		}
		added++
		name, _ := file["file_path"].(string)
		return s.table.Ours(name)
	})
	return err == nil && added > 0
}

var errNotOurs = errors.New("not ours")

// entries calls f for each entry of a manifest; one that f refuses is an error.
func (s *sorter) entries(location string, f func(map[string]any) bool) error {
	text, err := read(s.files, location)
	if err != nil {
		return err
	}
	reader, err := ocf.NewReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer reader.Close()
	return eachRecord(reader, func(entry map[string]any) error {
		if !f(entry) {
			return errNotOurs
		}
		return nil
	})
}

// own are the manifests that a list's own snapshot added; none where it cannot be read.
func (s *sorter) own(location string) []iceberg.ManifestFile {
	text, err := read(s.files, location)
	if err != nil {
		return nil
	}
	id, err := strconv.ParseInt(strings.Split(path.Base(location), "-")[1], 10, 64)
	if err != nil {
		return nil
	}
	manifests, err := iceberg.ReadManifestList(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(manifests, func(m iceberg.ManifestFile) bool { return m.SnapshotID() != id })
}
