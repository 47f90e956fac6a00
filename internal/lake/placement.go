package lake

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"icepipe/internal/datafile"
)

// A Placement holds the rows of a scan against the partitions that their files claim to be of. A row in the
// wrong partition is lost to every query that prunes by it.
type Placement struct {
	scan  *Scan
	specs map[int]*datafile.Partitions // nil where rows cannot tell: a source column was dropped
	files map[int64]string             // key of the partition that a file claims
}

// Placement returns the placement of the scan's rows.
func (s *Scan) Placement() *Placement {
	return &Placement{scan: s, specs: map[int]*datafile.Partitions{}, files: map[int64]string{}}
}

// Misplaced counts the rows of a record batch of the file of that ordinal that belong to another partition
// than the file claims.
func (p *Placement) Misplaced(file int64, batch arrow.RecordBatch) (int64, error) {
	f := p.scan.files[file].File
	id := int(f.SpecID())
	ps, ok := p.specs[id]
	if !ok {
		spec := p.scan.table.Metadata().PartitionSpecByID(id)
		if spec == nil {
			return 0, fmt.Errorf("file %q is of partition spec %d, which the table does not have", f.FilePath(), id)
		}
		ps = p.partitions(*spec)
		p.specs[id] = ps
	}
	if ps == nil {
		return 0, nil
	}
	want, ok := p.files[file]
	if !ok {
		want = ps.Key(f.Partition())
		p.files[file] = want
	}
	of, found, err := ps.Split(batch)
	if err != nil {
		return 0, fmt.Errorf("file %q: %w", f.FilePath(), err)
	}
	wrong := make([]bool, len(found))
	for i, part := range found {
		wrong[i] = part.Key != want
	}
	n := int64(0)
	for _, i := range of {
		if wrong[i] {
			n++
		}
	}
	return n, nil
}

// partitions are those of a spec, nil where there is nothing to tell rows apart by.
func (p *Placement) partitions(spec iceberg.PartitionSpec) *datafile.Partitions {
	if spec.IsUnpartitioned() {
		return nil
	}
	ps, err := datafile.NewPartitions(p.scan.schema, spec)
	if err != nil {
		return nil
	}
	return ps
}

// FilePath is the path of the file of that ordinal.
func (s *Scan) FilePath(file int64) string { return s.files[file].File.FilePath() }
