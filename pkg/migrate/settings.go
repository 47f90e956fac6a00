package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"icepipe/internal/lake"
	"icepipe/pkg/ckpt"
	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// settings are all that decides which rows and values are written.
func settings(h rows.Header, dst *lake.Table, o WriteOptions) (ckpt.Settings, error) {
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
	all := map[string]any{
		"source":             tableKey(h.Source.UUID, h.Source.Location),
		"source_snapshot_id": snapshot,
		"source_ref":         optional(h.Source.Branch),
		"source_schema_id":   h.Source.SchemaID,
		"source_files":       h.Files,
		"destination":        tableKey(uuidText(dst.Metadata().TableUUID()), dst.Location()),
		"branch":             o.Branch,
		"row_filter":         optional(h.RowFilter),
		"select":             selected,
		"batch_rows":         h.BatchRows,
		"write_mode":         o.mode(),
		"reconciler":         reconciler,
	}
	if o.Once && !o.OverwritePartitions {
		all["commit"] = "once" // left out where each batch is committed, as in jobs of before there was a choice
	}
	if h.Follow {
		all["batches"] = "row groups" // left out where they are of so many rows each, as in jobs of before
	}
	if o.Upsert != nil {
		for name, value := range o.Upsert.settings() {
			all[name] = value
		}
	}
	return ckpt.NewSettings(all)
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

// resumable refuses a checkpoint whose job is over. dst may be nil: see undoHint.
func resumable(c *ckpt.Checkpoint, path string, dst *lake.Table) error {
	if c.State != ckpt.Undone && c.Left != nil && dst != nil {
		history, err := dst.History(c.Destination.Branch)
		if err != nil {
			return err
		}
		if !holds(history, c.Left.Head) {
			return fmt.Errorf("an undo of it was begun, and took its batches out without a note; ice-migrate undo --checkpoint %q notes that", path)
		}
	}
	switch c.State {
	case ckpt.Complete:
		return fmt.Errorf("it records a completed migration; %s to run again%s", deleteFile(path), undoHint(c, dst))
	case ckpt.Undone:
		return fmt.Errorf("it records a migration that was undone; ice-migrate redo puts its batches back, and ice-migrate reset forgets it (or %s) to run again", deleteFile(path))
	}
	return nil
}

// deleteFile is how a job is begun anew.
func deleteFile(path string) string {
	if path == "" {
		return "delete the checkpoint's file"
	}
	return fmt.Sprintf("delete the file %q", path)
}

// remade refuses a destination that is not the job's.
func remade(c *ckpt.Checkpoint, path string, dst *lake.Table) error {
	now := tableNow(dst, c.Destination.Branch)
	switch {
	case sameTable(c.Destination, now):
		return nil
	case sameName(c.Destination, now):
		return fmt.Errorf("the destination was dropped and made anew (%s); the job's rows are not in it; reset the checkpoint (%s) to begin anew", thenNow(c.Destination, now), deleteFile(path))
	}
	return fmt.Errorf("its destination is table %s (%s), and table %q is another one (%s); name the job's destination, or %s to begin anew%s",
		plan.FormatPath(c.Destination.Identifier), tableKey(c.Destination.UUID, c.Destination.Location), dst.Name(), tableKey(now.UUID, now.Location), deleteFile(path), undoHint(c, nil))
}

// otherSource refuses a source that is not the job's.
func otherSource(c *ckpt.Checkpoint, path string, now ckpt.Table, dst *lake.Table) error {
	switch {
	case sameTable(c.Source, now):
		return nil
	case sameName(c.Source, now):
		return fmt.Errorf("the source was dropped and made anew (%s); its rows need not be those that the job began with; reset the checkpoint (%s) to begin anew%s", thenNow(c.Source, now), deleteFile(path), undoHint(c, dst))
	}
	return fmt.Errorf("its source is table %s (%s), and table %q is another one (%s); name the job's source, or %s to begin anew%s",
		plan.FormatPath(c.Source.Identifier), tableKey(c.Source.UUID, c.Source.Location), plan.FormatPath(now.Identifier), tableKey(now.UUID, now.Location), deleteFile(path), undoHint(c, dst))
}

// sameTable goes by UUID, or by location where one of them has none.
func sameTable(then, now ckpt.Table) bool {
	if then.UUID != "" && now.UUID != "" {
		return then.UUID == now.UUID
	}
	return then.Location == now.Location
}

// sameName tells whether two tables have one identifier in one catalog, as far as is known.
func sameName(then, now ckpt.Table) bool {
	return slices.Equal(then.Identifier, now.Identifier) && (then.Place == nil || now.Place == nil || *then.Place == *now.Place)
}

func thenNow(then, now ckpt.Table) string {
	if then.UUID != "" && now.UUID != "" {
		return fmt.Sprintf("UUID %s then, %s now", then.UUID, now.UUID)
	}
	return fmt.Sprintf("%s then, %s now", tableKey(then.UUID, then.Location), tableKey(now.UUID, now.Location))
}

// unchanged refuses a resume with other settings, naming which, then and now.
func unchanged(c *ckpt.Checkpoint, path string, now ckpt.Settings, dst *lake.Table) error {
	if len(c.Settings) == 0 {
		return fmt.Errorf("it records no settings, so that nothing tells whether this is the same job; %s to begin anew%s", deleteFile(path), undoHint(c, dst))
	}
	diff := c.Settings.Diff(now)
	if len(diff) == 0 {
		return nil
	}
	var texts []string
	moved := path != "" // the source has other rows now, and that is all
	for _, d := range diff {
		texts = append(texts, d.String())
		moved = moved && (d.Name == "source_snapshot_id" || d.Name == "source_files")
	}
	same := "go on with the same"
	if moved {
		same = fmt.Sprintf("go on with the same: ice-scan --checkpoint %q reads it", path)
	}
	return fmt.Errorf("settings differ from those the job was begun with: %s; %s, or %s to begin anew%s", strings.Join(texts, "; "), same, deleteFile(path), undoHint(c, dst))
}

// undoHint says how the job's batches are taken out of the destination before it is begun anew: those
// that its present history holds or, where dst is nil, those that the checkpoint knows of.
func undoHint(c *ckpt.Checkpoint, dst *lake.Table) string {
	n, hidden := c.Batches, false
	if dst != nil {
		n, hidden = present(c, dst)
	}
	var what string
	switch {
	case n == 0 && hidden && c.Batches > 0:
		what = "snapshots have expired, so that batches may be"
	case n == 1 && c.Pending != nil:
		what = "1 batch, and perhaps a pending one, are"
	case n > 0 && c.Pending != nil:
		what = fmt.Sprintf("%d batches, and perhaps a pending one, are", n)
	case n == 1:
		what = "1 batch is"
	case n > 0:
		what = fmt.Sprintf("%d batches are", n)
	case c.Pending != nil:
		what = "a pending batch may be"
	case c.Batches > 0:
		return " (0 batches of the job are in the destination's present history)"
	default:
		return ""
	}
	return fmt.Sprintf(" (%s in the destination: %s first, or their rows are written again)", what, rollBack(c))
}

// present counts the job's snapshots in the destination's history, and tells whether it goes back to the
// beginning no more.
func present(c *ckpt.Checkpoint, dst *lake.Table) (n int64, hidden bool) {
	history, err := dst.History(c.Destination.Branch)
	if err != nil {
		return c.Batches, false
	}
	marks, err := history.MarksOf(c.Job)
	if err != nil {
		return c.Batches, false
	}
	return int64(len(marks)), !history.Whole
}

func rollBack(c *ckpt.Checkpoint) string {
	if c.DestSnapshotBefore == nil {
		return "empty it (dest_snapshot_before is none: the table had no snapshot)"
	}
	if *c.DestSnapshotBefore == ckpt.UnknownSnapshot {
		return "delete the job's rows from it (dest_snapshot_before is unknown: it has expired)"
	}
	return "roll it back to dest_snapshot_before, snapshot " + *c.DestSnapshotBefore + ","
}

// beforeText is the destination's snapshot before the job, for people.
func beforeText(id *string) string {
	if id == nil {
		return "none: the table had no snapshot"
	}
	if *id == ckpt.UnknownSnapshot {
		return "unknown: it has expired"
	}
	return *id
}
