package catalogs

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// snapshotTexts are the snapshots of the metadata that was written last, each as JSON. A snapshot never changes once
// it is in a table, and every metadata file holds them all: to write the hundreds of before again and again would be
// half of a commit's cost.
type snapshotTexts struct {
	mu    sync.Mutex
	known map[int64]snapshotText
}

type snapshotText struct {
	snapshot table.Snapshot // as it was when text was made; shared with nobody
	text     []byte
}

// file is metadata as its file holds it.
func (s *snapshotTexts) file(metadata table.Metadata) ([]byte, error) {
	text, err := s.text(metadata)
	if err != nil {
		return nil, err
	}
	return packed(text, metadata)
}

// text is metadata as JSON, byte for byte what the library makes of it.
func (s *snapshotTexts) text(metadata table.Metadata) ([]byte, error) {
	snapshots, frame, err := framed(metadata)
	if err != nil {
		return nil, err
	}
	if frame == nil {
		return wholeText(metadata)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	size, now, texts := len(frame[0])+len(frame[1]), make(map[int64]snapshotText, len(snapshots)), make([][]byte, len(snapshots))
	for i, snapshot := range snapshots {
		k, ok := s.known[snapshot.SnapshotID]
		if !ok || !same(k.snapshot, snapshot) {
			if k.text, err = json.Marshal(snapshot); err != nil {
				return nil, err
			}
			k.snapshot = cloned(snapshot)
		}
		now[snapshot.SnapshotID], texts[i] = k, k.text
		size += len(k.text) + 1
	}
	s.known = now
	out := append(make([]byte, 0, size), frame[0]...)
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, frame[1]...), nil
}

// wholeText is metadata as the library makes it.
func wholeText(metadata table.Metadata) ([]byte, error) {
	if m, ok := metadata.(json.Marshaler); ok {
		return m.MarshalJSON() // json.Marshal would look through the whole text once more
	}
	return json.Marshal(metadata)
}

// framed takes metadata apart: the snapshots, which are not to be changed, and what stands before and after them in the
// text. The library is given a copy of the metadata with one snapshot of ours in their place, and where that one's
// text stands is where theirs belong. The frame is nil where there are no snapshots, or where the library keeps them in
// another way than this knows.
func framed(metadata table.Metadata) (snapshots []table.Snapshot, frame [][]byte, err error) {
	v := reflect.ValueOf(metadata)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, nil, nil
	}
	bare := reflect.New(v.Elem().Type())
	bare.Elem().Set(v.Elem())
	list, unread := bare.Elem().FieldByName("SnapshotList"), bare.Elem().FieldByName("deferredSnapshots")
	if !list.IsValid() || !list.CanSet() || !unread.IsValid() || unread.Kind() != reflect.Pointer || !unread.IsNil() {
		return nil, nil, nil
	}
	snapshots, ok := list.Interface().([]table.Snapshot)
	with, able := bare.Interface().(table.Metadata)
	if !ok || !able || len(snapshots) == 0 {
		return nil, nil, nil
	}
	stand := table.Snapshot{ManifestList: uuid.NewString()}
	mark, err := json.Marshal(stand)
	if err != nil {
		return nil, nil, err
	}
	list.Set(reflect.ValueOf([]table.Snapshot{stand}))
	text, err := wholeText(with)
	if err != nil {
		return nil, nil, err
	}
	if frame = bytes.Split(text, mark); len(frame) != 2 {
		return nil, nil, nil
	}
	return snapshots, frame, nil
}

// same reports whether two snapshots have the same text. What is equal for the library may differ in whether an empty
// summary is there.
func same(a, b table.Snapshot) bool {
	return a.Equals(b) && (a.Summary == nil || (a.Summary.Properties == nil) == (b.Summary.Properties == nil))
}

// cloned is a snapshot that shares no memory with s.
func cloned(s table.Snapshot) table.Snapshot {
	pointed(&s.ParentSnapshotID)
	pointed(&s.SchemaID)
	pointed(&s.FirstRowID)
	pointed(&s.AddedRows)
	s.ManifestLocations = slices.Clone(s.ManifestLocations)
	if s.Summary != nil {
		s.Summary = &table.Summary{Operation: s.Summary.Operation, Properties: maps.Clone(s.Summary.Properties)}
	}
	return s
}

// pointed has a pointer that is not nil point to a copy of its own.
func pointed[T any](p **T) {
	if *p != nil {
		v := **p
		*p = &v
	}
}
