package lake

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// copied writes data files of which rows go anew without these, into files of the table's present partition spec,
// and finds the delete files that are of no use then. Of a file all whose live rows go nothing is written.
func (t *Table) copied(ctx context.Context, u *Upsert, head *table.Snapshot, live liveness, gone map[string]*dv.RoaringPositionBitmap) (*replacement, error) {
	r := &replacement{data: map[string]bool{}, deletes: map[string]bool{}}
	for path := range gone {
		r.data[path] = true
	}
	id := t.Schema().ID
	scan, err := t.PlanScan(ctx, ScanOptions{
		Pin: Pin{Snapshot: &head.SnapshotID, SchemaID: &id}, Only: r.data, Memory: u.memory(), lineage: t.Metadata().Version() >= 3,
	})
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	key := fmt.Sprint(goneDigest("copies", gone), scan.digest(), " ", id, " ", spec.ID())
	done := u.kept[key]
	if done == nil {
		done = &replacement{}
		met := map[string]int64{}
		done.kept, err = t.writeStaying(ctx, scan, keptJob(u.Job), u.Resources, func(rows liveRows) ([]int32, error) {
			var stays []int32
			for i, at := range rows.at {
				if gone[rows.path].Contains(uint64(rows.before) + uint64(at)) {
					met[rows.path]++
					continue
				}
				stays = append(stays, int32(i))
			}
			return stays, nil
		})
		if err != nil {
			return nil, err
		}
		for path, bits := range gone {
			if dead := bits.Cardinality() - met[path]; dead != 0 {
				return nil, lasting{fmt.Errorf("of the %d rows that are to go of data file %q, %d are deleted already", bits.Cardinality(), path, dead)}
			}
		}
		u.keep(key, done)
	}
	r.kept = done.kept
	return r, t.uselessDeletes(ctx, head, live.all, r)
}

// FileConfigLineage is FileConfig for files of format version 3 whose rows say in two columns behind the others,
// _row_id and _last_updated_sequence_number, what they are: a row that takes the place of another has its row ID
// and a null, a new one two nulls, which the commit fills in (specification, "Row Lineage").
func (t *Table) FileConfigLineage(ctx context.Context, with datafile.Resources) (datafile.Config, error) {
	if version := t.Metadata().Version(); version < 3 {
		return datafile.Config{}, fmt.Errorf("table %q has format version %d, whose rows have no IDs", t.Name(), version)
	}
	c, err := t.FileConfig(ctx, with)
	if err != nil {
		return c, err
	}
	c.Schema = withLineage(c.Schema)
	return c, nil
}

// withLineage is a schema with the two columns of row lineage behind its own.
func withLineage(s *iceberg.Schema) *iceberg.Schema {
	fields := append(s.Fields()[:len(s.Fields()):len(s.Fields())], iceberg.RowID(), iceberg.LastUpdatedSequenceNumber())
	return iceberg.NewSchema(s.ID, fields...)
}
