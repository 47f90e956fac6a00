package lake

import (
	"context"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/datafile"
)

// replacement finds out what goes of the head of a branch: data files of touched partitions; those of older
// specs all whose live rows fall into touched partitions; those some of whose rows do, in whose place come files
// with the others; and the delete files that are of no use then.
func (t *Table) replacement(ctx context.Context, c Commit, head *table.Snapshot, touched *touchedPartitions) (*replacement, error) {
	r := &replacement{data: map[string]bool{}, deletes: map[string]bool{}}
	if head == nil {
		return r, nil
	}
	var live []iceberg.DataFile
	mixed := map[string]bool{}
	for entry, err := range t.liveFiles(ctx, head, nil) {
		if err != nil {
			return nil, err
		}
		f := entry.DataFile()
		is, err := touched.of(f)
		if err != nil {
			return nil, err
		}
		live = append(live, f)
		switch is {
		case wholly:
			r.data[f.FilePath()] = true
		case perhaps:
			mixed[f.FilePath()] = true
		}
	}
	if len(mixed) > 0 {
		again, err := t.rewrite(ctx, c.Overwrite, head, mixed, touched)
		if err != nil {
			return nil, fmt.Errorf("files of older partition specs: %w", err)
		}
		for _, path := range again.gone {
			r.data[path] = true
		}
		r.kept = again.files
	}
	return r, t.uselessDeletes(ctx, head, live, r)
}

// uselessDeletes finds the delete files that apply to no data file once those of r are gone: files and
// deletion vectors of one data file that goes, and those of a partition of which no data file stays.
// Position deletes of several data files, of which some stay, and global equality deletes stay: a position
// of a file that is gone means nothing, and no delete applies to files of a later sequence number
// (specification, "Scan Planning"). A deletion vector must go with its file ("Deletion Vectors").
func (t *Table) uselessDeletes(ctx context.Context, head *table.Snapshot, live []iceberg.DataFile, r *replacement) error {
	if len(r.data) == 0 {
		return nil
	}
	stays := map[string]bool{}
	for _, f := range live {
		if !r.data[f.FilePath()] {
			stays[t.place(f)] = true
		}
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return err
	}
	manifests, err := head.Manifests(fs)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			continue
		}
		for entry, err := range m.Entries(fs, true) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("manifest %q: %w", m.FilePath(), err)
			}
			f := entry.DataFile()
			of := dataFileOf(f)
			switch {
			case of != "" && r.data[of], len(stays) == 0, of == "" && !everywhere(t, f) && !stays[t.place(f)]:
				r.deletes[deleteKey(f)] = true
			}
		}
	}
	return nil
}

// place is a file's partition: spec and values.
func (t *Table) place(f iceberg.DataFile) string {
	key := strconv.Itoa(int(f.SpecID()))
	if spec := t.Metadata().PartitionSpecByID(int(f.SpecID())); spec != nil {
		var of []any
		for _, field := range spec.Fields() {
			of = append(of, f.Partition()[field.FieldID])
		}
		key += " " + datafile.ValuesKey(of...)
	}
	return key
}

// Overwritable refuses a branch that an overwrite could not take files out of, whatever partitions it
// touches. whole says that the whole table may be replaced. It changes nothing.
func (t *Table) Overwritable(ctx context.Context, branch string, whole bool) error {
	spec := t.Spec()
	touched, err := t.touched(nil)
	if err != nil {
		return err
	}
	if len(touched.fields) == 0 && !whole {
		return fmt.Errorf("table %q has no partitions, so that an overwrite replaces all of its rows; --yes says that this is meant", t.Name())
	}
	head, err := t.Branch(branch)
	if err != nil || head == nil {
		return err
	}
	fs, err := t.FS(ctx)
	if err != nil {
		return err
	}
	manifests, err := head.Manifests(fs)
	if err != nil {
		return fmt.Errorf("table %q: %w", t.Name(), err)
	}
	for _, m := range manifests {
		id := int(m.PartitionSpecID())
		if err := t.rewritable(id); err != nil {
			return fmt.Errorf("table %q: %w", t.Name(), err)
		}
		if id == spec.ID() || m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		if s, err := touched.spec(id); err != nil || s.all {
			if err != nil {
				return err
			}
			continue
		}
		for entry, err := range m.Entries(fs, true) {
			if err != nil {
				return fmt.Errorf("table %q: manifest %q: %w", t.Name(), m.FilePath(), err)
			}
			if f := entry.DataFile(); f.FileFormat() != iceberg.ParquetFile {
				return fmt.Errorf("table %q: file %q of partition spec %d is %s, and may have to be read to tell which of its rows are replaced: only Parquet can be; rewrite it with another engine first", t.Name(), f.FilePath(), id, f.FileFormat())
			}
		}
	}
	return nil
}
