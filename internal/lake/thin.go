package lake

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table/dv"

	"icepipe/internal/datafile"
)

// Thin writes data files that wait for a commit anew without the rows at some positions, as files of the job: one
// whose rows all go leaves nothing. Row IDs that rows were given stay theirs, and the files it read are left to lie.
func (t *Table) Thin(ctx context.Context, job string, with datafile.Resources, files []iceberg.DataFile, without map[string]*dv.RoaringPositionBitmap) ([]iceberg.DataFile, error) {
	id := t.Schema().ID
	scan, err := t.PlanScan(ctx, ScanOptions{Pin: Pin{SchemaID: &id, None: true}, also: files, lineage: t.Metadata().Version() >= 3})
	if err != nil {
		return nil, err
	}
	return t.writeStaying(ctx, scan, job, with, func(rows liveRows) ([]int32, error) {
		var stays []int32
		gone := without[rows.path]
		for i, at := range rows.at {
			if gone == nil || !gone.Contains(uint64(rows.before)+uint64(at)) {
				stays = append(stays, int32(i))
			}
		}
		return stays, nil
	})
}
