package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/rows"
)

// overwritable refuses what cannot be replaced, or should not be without a word of the user, before
// anything is written, and in a dry run too.
func overwritable(ctx context.Context, h rows.Header, dst *lake.Table, o WriteOptions) error {
	if !o.OverwritePartitions {
		return nil
	}
	if h.Trial {
		return errors.New("a trial (--limit) would put a part of the rows in the place of whole partitions; write it to another table, or append")
	}
	return dst.Overwritable(ctx, o.branch(), o.WholeTable)
}

// overwrite is how a commit of the job replaces partitions; nil where it adds rows.
func (j *job) overwrite() (*lake.Overwrite, error) {
	if !j.options.OverwritePartitions {
		return nil, nil
	}
	o := &lake.Overwrite{Concurrent: j.options.OverwriteConcurrent, Job: j.note.Job, Resources: j.options.resources()}
	before := j.note.DestSnapshotBefore
	if before == nil {
		return o, nil
	}
	if *before == ckpt.UnknownSnapshot {
		return nil, errors.New("dest_snapshot_before is unknown, so that nobody can tell what others wrote since the job began")
	}
	id, err := strconv.ParseInt(*before, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("dest_snapshot_before %q: %w", *before, err)
	}
	o.Base = &id
	return o, nil
}
