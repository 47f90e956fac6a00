package lake

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
)

// readableTypes refuses columns of types that would read as null.
func readableTypes(fields []iceberg.NestedField) error {
	for _, f := range fields {
		switch t := f.Type.(type) {
		case iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType:
			return fmt.Errorf("column %q has type %s, which cannot be read; leave it out of the selected columns", f.Name, t)
		case iceberg.NestedType:
			if err := readableTypes(t.Fields()); err != nil {
				return fmt.Errorf("column %q: %w", f.Name, err)
			}
		}
	}
	return nil
}

// refuse names what cannot be read, as far as the manifests tell.
func (s *Scan) refuse() error {
	formats := map[string]int{}
	for _, f := range s.files {
		if f.skip {
			continue
		}
		if f.File.FileFormat() != iceberg.ParquetFile {
			formats[strings.ToUpper(string(f.File.FileFormat()))]++
		}
		for _, d := range append([]iceberg.DataFile{f.File}, slices.Concat(f.DeleteFiles, f.EqualityDeleteFiles, f.DeletionVectorFiles)...) {
			if len(d.KeyMetadata()) > 0 {
				return fmt.Errorf("file %q is encrypted; encrypted tables cannot be read", d.FilePath())
			}
		}
	}
	if len(formats) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		parts = append(parts, fmt.Sprintf("%d %s", formats[name], name))
	}
	return fmt.Errorf("%s of its %d data files cannot be read, only Parquet can; rewrite them, for example by Spark's rewrite_data_files with write.format.default=parquet",
		strings.Join(parts, " and "), len(s.files))
}

// inspect opens every file from the start of the scan on: its footer, its columns, its codecs, and
// the keys of equality deletes.
func (s *Scan) inspect(ctx context.Context) error {
	fs, err := s.table.FS(ctx)
	if err != nil {
		return err
	}
	keys := newEqualityIndex(s.table.Metadata(), nil, s.options.Memory)
	seen := map[string]bool{}
	first := int64(0)
	if s.options.From != nil {
		first = s.options.From.File
	}
	for i := range s.files {
		f := &s.files[i]
		if int64(i) < first {
			continue
		}
		if f.skip {
			s.skipped.Files++
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.inspectFile(ctx, fs, f); err != nil {
			return err
		}
		for _, d := range f.EqualityDeleteFiles {
			if seen[d.FilePath()] {
				continue
			}
			seen[d.FilePath()] = true
			if _, err := keys.newKeySet(d); err != nil {
				return fmt.Errorf("equality deletes: %w", err)
			}
		}
	}
	return nil
}

func (s *Scan) inspectFile(ctx context.Context, fs iceio.IO, f *plannedFile) error {
	src, err := openSource(ctx, fs, f.File.FilePath(), f.File.Count(), s.options.Memory)
	if err != nil {
		return err
	}
	defer src.close()
	columns, err := src.columns(s.table.NameMapping(), typesOf(s.whole))
	if err != nil {
		return err
	}
	for _, p := range []projection{s.projection, s.tests} {
		if len(p.schema.Fields()) == 0 {
			continue
		}
		if err := columns.check(ctx, p.reads, p.arrow, s.table.Metadata().Version(), s.options.Memory); err != nil {
			return fmt.Errorf("file %q: %w", src.path, err)
		}
	}
	f.groups = src.rowGroupRows()
	defer func() { f.skip = s.filter != nil && !slices.Contains(f.skips, false) }()
	f.skips = make([]bool, len(f.groups))
	for g := range f.groups {
		if s.filter != nil && !s.options.WholePlan && !s.filter.Possible(s.groupStats(src, columns, f.File, g)) {
			f.skips[g] = true
			s.skipped.RowGroups++
			continue
		}
		meta := src.reader.MetaData().RowGroup(g)
		for _, leaf := range columns.leaves {
			chunk, err := meta.ColumnChunk(leaf)
			if err != nil {
				return fmt.Errorf("file %q, row group %d: %w", src.path, g, err)
			}
			if _, err := compress.GetCodec(chunk.Compression()); err != nil {
				return fmt.Errorf("file %q is compressed with %s, which cannot be read", src.path, chunk.Compression())
			}
		}
	}
	return nil
}

// checkStart refuses to start a scan at a cursor that does not lie in its files: rows would be left
// out, or read twice, without a word.
func (s *Scan) checkStart() error {
	from := s.options.From
	if from == nil || from.File == 0 && from.RowGroup == 0 && from.Row == 0 {
		return nil
	}
	if from.File < 0 || from.File >= int64(len(s.files)) {
		return fmt.Errorf("cursor %s is not in it, which has %d data files: the source changed", from, len(s.files))
	}
	f := s.files[from.File]
	if path := f.File.FilePath(); from.Path != "" && from.Path != path {
		return fmt.Errorf("cursor %s is not in it, where file %d is %q: the source changed", from, from.File, path)
	}
	if from.RowGroup == 0 && from.Row == 0 {
		return nil
	}
	if from.RowGroup < 0 || from.RowGroup >= len(f.groups) || from.Row < 0 || from.Row > f.groups[from.RowGroup] {
		return fmt.Errorf("cursor %s lies behind the end of its file's %d row groups or of its row group: the source changed", from, len(f.groups))
	}
	return nil
}

// avroName is what Avro, and so the library's manifests, take as a field's name.
var avroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// oddPartitionNames says of a plan that failed whether names of partition fields are the reason (case 54).
func (s *Scan) oddPartitionNames() string {
	for _, spec := range s.table.Metadata().PartitionSpecs() {
		for _, f := range spec.Fields() {
			if !avroName.MatchString(f.Name) {
				return fmt.Sprintf("; the name of partition field %q is one that cannot be read: rename it (letters, digits and _) and rewrite the manifests", f.Name)
			}
		}
	}
	return ""
}
