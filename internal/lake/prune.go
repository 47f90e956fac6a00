package lake

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/metrics"
	"github.com/apache/iceberg-go/table"
)

// Skipped is what is not read since the bounds of its values say that no row passes the filter.
type Skipped struct {
	Manifests int64 // of data files
	Files     int64 // data files, those of the manifests among them
	RowGroups int64 // of files that are read
}

// Skipped is what the scan, from its start on, does not read because of the filter.
func (s *Scan) Skipped() Skipped { return s.skipped }

// tasks are the files of the snapshot with their deletes, but for those that the library knows to hold no
// row that passes the filter. Its residuals are never applied.
func (s *Scan) tasks(ctx context.Context) ([]table.FileScanTask, error) {
	read := func(o ...table.ScanOption) ([]table.FileScanTask, error) {
		scan := s.table.Scan(append(o, table.WithSnapshotID(s.snapshot.SnapshotID))...)
		defer scan.Close()
		return scan.PlanFiles(ctx)
	}
	if s.filter == nil || s.options.WholePlan {
		return read()
	}
	manifests, err := s.manifests(ctx)
	if err != nil {
		return nil, err
	}
	scan := s.table.Scan(table.WithSnapshotID(s.snapshot.SnapshotID))
	condition, err := s.pruning(manifests, scan)
	scan.Close()
	if err != nil {
		return nil, err
	}
	counter := &skipCounter{}
	tasks, err := read(table.WithRowFilter(condition), table.WithReporter(counter))
	if err != nil && ctx.Err() == nil {
		return read() // bounds that the library cannot read are no reason not to read the table
	}
	for _, m := range manifests {
		if m.ManifestContent() == iceberg.ManifestContentData {
			s.skipped.Files += int64(max(0, m.AddedDataFiles())) + int64(max(0, m.ExistingDataFiles()))
		}
	}
	s.skipped.Files = max(0, s.skipped.Files-wholeFiles(tasks))
	s.skipped.Manifests = counter.manifests
	return tasks, err
}

// wholeFiles are the files of tasks, some of which are parts of one file.
func wholeFiles(tasks []table.FileScanTask) (n int64) {
	for _, t := range tasks {
		if t.Start == 0 {
			n++
		}
	}
	return n
}

func (s *Scan) manifests(ctx context.Context) ([]iceberg.ManifestFile, error) {
	fs, err := s.table.FS(ctx)
	if err != nil {
		return nil, err
	}
	return s.snapshot.Manifests(fs)
}

// skipCounter counts the manifests that the library left out of a plan.
type skipCounter struct{ manifests int64 }

// Report implements metrics.Reporter.
func (c *skipCounter) Report(_ context.Context, report metrics.MetricsReport) {
	if r, ok := report.(metrics.ScanReport); ok {
		if n := r.Metrics.SkippedDataManifests; n != nil {
			c.manifests = n.Value
		}
	}
}

// Close implements metrics.Reporter.
func (c *skipCounter) Close() error { return nil }

// pruning is the condition that the library plans by: true for all rows that pass the filter.
//
// Nothing is left out where equality deletes may be: a delete file may hold more columns than its keys,
// whose bounds say nothing about the rows that it deletes. Columns are asked about whose type never
// changed, since the library cannot read bounds that were written before a promotion (case 43), under
// the name that the library finds them by.
func (s *Scan) pruning(manifests []iceberg.ManifestFile, scan *table.Scan) (iceberg.BooleanExpression, error) {
	if s.equalityDeletes(manifests) {
		return iceberg.AlwaysTrue{}, nil
	}
	planned, err := scan.Projection() // the schema that the library plans with
	if err != nil {
		return nil, err
	}
	meta := s.table.Metadata()
	partitions := func(id int) (string, []iceberg.Transform) {
		now, ok := s.whole.FindFieldByID(id)
		name, found := planned.FindColumnName(id)
		if !ok || !found {
			return "", nil
		}
		if f, ok := planned.FindFieldByName(name); !ok || f.ID != id || !f.Type.Equals(now.Type) {
			return "", nil
		}
		for _, old := range meta.Schemas() {
			if f, ok := old.FindFieldByID(id); ok && !f.Type.Equals(now.Type) {
				return "", nil
			}
		}
		var out []iceberg.Transform
		for _, spec := range meta.PartitionSpecs() {
			for _, p := range spec.FieldsBySourceID(id) {
				switch p.Transform.(type) {
				case iceberg.IdentityTransform, iceberg.BucketTransform,
					iceberg.YearTransform, iceberg.MonthTransform, iceberg.DayTransform, iceberg.HourTransform:
					if !slices.ContainsFunc(out, p.Transform.Equals) {
						out = append(out, p.Transform)
					}
				}
			}
		}
		return name, out
	}
	return s.filter.Pruning(partitions), nil
}

// equalityDeletes reports whether the snapshot may have equality deletes.
func (s *Scan) equalityDeletes(manifests []iceberg.ManifestFile) bool {
	if s.snapshot.Summary != nil && s.snapshot.Summary.Properties["total-equality-deletes"] == "0" {
		return false
	}
	return slices.ContainsFunc(manifests, func(m iceberg.ManifestFile) bool {
		return m.ManifestContent() == iceberg.ManifestContentDeletes
	})
}
