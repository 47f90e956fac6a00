package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/filter"
	"icepipe/pkg/rows"
)

// DefaultBatchRows is the number of rows of a batch unless one is asked for.
const DefaultBatchRows = 50_000

// AutoBatchRows asks for batches of whole row groups, as many as make a number of rows that suits the source's files.
const AutoBatchRows = -1

// A ScanOptions says which rows of a source are read and how they are cut into batches.
type ScanOptions struct {
	Pin        Pin
	Select     []string     // top-level columns, nil for all
	Filter     *filter.Expr // rows to read, nil for all
	BatchRows  int64        // 0 for DefaultBatchRows, AutoBatchRows for whole row groups, as many as suit the files
	RecordRows int64        // rows of a record batch at most, 0 for a number that suits the rows
	Limit      int64        // rows at most, 0 for all; such a trial takes no checkpoint

	// Checkpoint, where it has been written, pins the snapshot and the batch size and tells where
	// to start. It is a short cut: Write decides which rows are missing.
	Checkpoint *ckpt.Store

	dst *lake.Table // whose staged files are looked at, where it is known
}

// Scan plans the source and returns its rows as a stream. Everything that cannot be read is refused
// before Scan returns.
func Scan(ctx context.Context, src *Table, o ScanOptions) (rows.Stream, error) {
	scan, err := planScan(ctx, src, o)
	if err != nil {
		return rows.Stream{}, err
	}
	return scan.Stream(ctx), nil
}

func planScan(ctx context.Context, src *Table, o ScanOptions) (*lake.Scan, error) {
	l, err := o.lake()
	if err != nil {
		return nil, err
	}
	if o.Checkpoint != nil {
		if o.Limit > 0 {
			return nil, fmt.Errorf("a trial of %d rows takes no checkpoint; leave out the limit or the checkpoint", o.Limit)
		}
		c, err := o.Checkpoint.Load()
		if err != nil {
			return nil, err
		}
		if c != nil {
			if err := pinned(ctx, &l, o, c, src); err != nil {
				return nil, fmt.Errorf("checkpoint %q: %w", o.Checkpoint.Path(), err)
			}
		}
	}
	scan, err := src.lake.PlanScan(ctx, l)
	if err != nil && l.From != nil {
		if changed := otherFilter(ctx, o, l, src); changed != nil {
			err = changed
		}
	}
	return scan, err
}

// otherFilter says of a scan that could not go on from a checkpoint whether another filter is the reason:
// its files are others, in which the checkpoint's cursor means nothing.
func otherFilter(ctx context.Context, o ScanOptions, l lake.ScanOptions, src *Table) error {
	c, err := o.Checkpoint.Load()
	if err != nil || c == nil {
		return nil
	}
	l.From = nil
	scan, err := src.lake.PlanScan(ctx, l)
	if err != nil {
		return nil
	}
	var then string // stays empty for null
	if err := json.Unmarshal(c.Settings["row_filter"], &then); err != nil {
		return nil
	}
	now := scan.Header().RowFilter
	if then == now {
		return nil
	}
	show := func(text string) string {
		if text == "" {
			return "absent"
		}
		return strconv.Quote(text)
	}
	path := o.Checkpoint.Path()
	return fmt.Errorf("checkpoint %q: settings differ from those the job was begun with: row_filter: %s then, %s now; go on with the same, or %s to begin anew%s",
		path, show(then), show(now), deleteFile(path), undoHint(c, nil))
}

func (o ScanOptions) lake() (lake.ScanOptions, error) {
	l := lake.ScanOptions{Pin: o.Pin.lake(), Ref: o.Pin.Ref, Select: o.Select, Filter: o.Filter, BatchRows: o.BatchRows, RecordRows: o.RecordRows, Limit: o.Limit}
	switch {
	case o.BatchRows == 0:
		l.BatchRows = DefaultBatchRows
	case o.BatchRows == AutoBatchRows:
		l.BatchRows, l.Follow = 0, true
	case o.BatchRows < 0:
		return l, fmt.Errorf("batch rows %d: want at least 1", o.BatchRows)
	}
	return l, nil
}

// pinned makes a scan go on where a checkpoint stands: its snapshot wins over a branch that moved.
func pinned(ctx context.Context, l *lake.ScanOptions, o ScanOptions, c *ckpt.Checkpoint, src *Table) error {
	path := o.Checkpoint.Path()
	if err := resumable(c, path, nil); err != nil {
		return err
	}
	if err := otherSource(c, path, tableNow(src.lake, ""), nil); err != nil {
		return err
	}
	start, err := rows.ParseCursor(c.Cursor)
	if err != nil {
		return err
	}
	l.From = &start
	if staged, err := waitingStart(ctx, o.Checkpoint, c, o.dst); err != nil {
		return err
	} else if staged != nil {
		l.From = staged
	}
	if err := pinSnapshot(l, o, c, src); err != nil {
		return err
	}
	if o.BatchRows == AutoBatchRows {
		if err := json.Unmarshal(c.Settings["batch_rows"], &l.BatchRows); err != nil {
			return fmt.Errorf("setting batch_rows: %w", err)
		}
		_, l.Follow = c.Settings["batches"]
	}
	return nil
}

// pinSnapshot pins the snapshot that the job reads, with the schema it is read with.
func pinSnapshot(l *lake.ScanOptions, o ScanOptions, c *ckpt.Checkpoint, src *Table) error {
	if c.Source.SnapshotID == "" {
		if head := src.lake.CurrentSnapshot(); head != nil {
			return fmt.Errorf("its source had no snapshot when the job began, and has snapshot %d now; %s to move its rows, none was moved yet", head.SnapshotID, deleteFile(o.Checkpoint.Path()))
		}
		return nil // as empty as it was
	}
	id, err := strconv.ParseInt(c.Source.SnapshotID, 10, 64)
	if err != nil {
		return fmt.Errorf("source snapshot %q: %w", c.Source.SnapshotID, err)
	}
	if o.Pin.Snapshot != nil && *o.Pin.Snapshot != id {
		return fmt.Errorf("the job reads source snapshot %d, and %d was asked for; leave it out to resume, or %s to begin anew%s", id, *o.Pin.Snapshot, deleteFile(o.Checkpoint.Path()), undoHint(c, nil))
	}
	if o.Pin.AsOf != "" {
		if err := sameTime(o.Pin, id, src); err != nil {
			return fmt.Errorf("%w; leave the time out to resume, or %s to begin anew%s", err, deleteFile(o.Checkpoint.Path()), undoHint(c, nil))
		}
	}
	if src.lake.Metadata().SnapshotByID(id) == nil {
		return fmt.Errorf("source snapshot %d, which the job reads, has expired; %s to begin anew with another snapshot%s", id, deleteFile(o.Checkpoint.Path()), undoHint(c, nil))
	}
	var schema int
	if err := json.Unmarshal(c.Settings["source_schema_id"], &schema); err != nil {
		return fmt.Errorf("setting source_schema_id: %w", err)
	}
	l.Pin = lake.Pin{Snapshot: &id, SchemaID: &schema}
	return nil
}

// sameTime refuses a time at which another snapshot than the job's was current.
func sameTime(pin Pin, id int64, src *Table) error {
	at, _, err := src.lake.Resolve(pin.lake())
	if err != nil {
		return fmt.Errorf("the job reads source snapshot %d, and which one was current at %q cannot be told: %w", id, pin.AsOf, err)
	}
	if at.SnapshotID != id {
		return fmt.Errorf("the job reads source snapshot %d, and that of %q, which was asked for, is %d", id, pin.AsOf, at.SnapshotID)
	}
	return nil
}
