package migrate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// settings are all that decides which rows and values are written.
func settings(h rows.Header, dst *lake.Table, branch string) (ckpt.Settings, error) {
	optional := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	var reconciler any
	if len(h.Reconciler) > 0 {
		reconciler = h.Reconciler
	}
	var selected any
	if h.Select != nil {
		selected = h.Select
	}
	var snapshot any
	if h.Source.SnapshotID != nil {
		snapshot = strconv.FormatInt(*h.Source.SnapshotID, 10)
	}
	return ckpt.NewSettings(map[string]any{
		"source":             tableKey(h.Source.UUID, h.Source.Location),
		"source_snapshot_id": snapshot,
		"source_ref":         optional(h.Source.Branch),
		"source_schema_id":   h.Source.SchemaID,
		"source_files":       h.Files,
		"destination":        tableKey(uuidText(dst.Metadata().TableUUID()), dst.Location()),
		"branch":             branch,
		"row_filter":         optional(h.RowFilter),
		"select":             selected,
		"batch_rows":         h.BatchRows,
		"write_mode":         "append",
		"reconciler":         reconciler,
	})
}

func uuidText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// tableKey identifies a table: by UUID, or by location where a v1 table has none.
func tableKey(id, location string) string {
	if id != "" {
		return "uuid " + id
	}
	return "location " + location
}

// apart refuses a destination that is the stream's source: each run would double its rows.
func apart(h rows.Header, dst rows.Table) error {
	if h.Foreign || tableKey(h.Source.UUID, h.Source.Location) != tableKey(dst.UUID, dst.Location) {
		return nil
	}
	return fmt.Errorf("source and destination are the same table (%s, %s): its rows would be written into it once more; name another destination",
		plan.FormatPath(dst.Identifier), tableKey(dst.UUID, dst.Location))
}

// resumable refuses a checkpoint whose job is over.
func resumable(c *ckpt.Checkpoint) error {
	switch c.State {
	case ckpt.Complete:
		return fmt.Errorf("it records a completed migration; reset it or delete the file to run again%s", undoHint(c))
	case ckpt.Undone:
		return fmt.Errorf("it records a migration that was undone; reset it or delete the file to run again")
	}
	return nil
}

// unchanged refuses a resume with other settings, naming which, then and now.
func unchanged(c *ckpt.Checkpoint, now ckpt.Settings) error {
	if len(c.Settings) == 0 {
		return fmt.Errorf("it records no settings, so that nothing tells whether this is the same job; reset it to begin anew%s", undoHint(c))
	}
	diff := c.Settings.Diff(now)
	if len(diff) == 0 {
		return nil
	}
	var texts []string
	for _, d := range diff {
		texts = append(texts, d.String())
	}
	return fmt.Errorf("settings differ from those the job was begun with: %s; go on with the same, or reset it to begin anew%s", strings.Join(texts, "; "), undoHint(c))
}

// undoHint names the snapshot to roll back to, when batches are in the destination or may be.
func undoHint(c *ckpt.Checkpoint) string {
	var what string
	switch {
	case c.Batches > 0 && c.Pending != nil:
		what = fmt.Sprintf("%d batches, and perhaps a pending one, are", c.Batches)
	case c.Batches == 1:
		what = "1 batch is"
	case c.Batches > 0:
		what = fmt.Sprintf("%d batches are", c.Batches)
	case c.Pending != nil:
		what = "a pending batch may be"
	default:
		return ""
	}
	return fmt.Sprintf(" (%s in the destination: roll it back to dest_snapshot_before, %s, first, or their rows are written again)", what, before(c))
}

func before(c *ckpt.Checkpoint) string {
	if c.DestSnapshotBefore == nil {
		return "its state before the first snapshot"
	}
	return "snapshot " + *c.DestSnapshotBefore
}
