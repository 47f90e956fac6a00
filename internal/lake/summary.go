package lake

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// overwriteSummary makes the summary of a staged snapshot that of an overwrite, with the counts that Java's
// library gives: ours has counted the data files that it added, and knows nothing of what was taken out and of
// the delete files that came. added are all files that came.
func (t *Table) overwriteSummary(s *table.Snapshot, added, removed []iceberg.DataFile) error {
	if s.Summary == nil {
		return fmt.Errorf("snapshot %d has no summary", s.SnapshotID)
	}
	p := iceberg.Properties{}
	for k, v := range s.Summary.Properties {
		if !strings.HasPrefix(k, "partitions.") && k != "partition-summaries-included" { // of what was added alone
			p[k] = v
		}
	}
	deletes, gone := map[string]int64{}, map[string]int64{}
	places := map[string]bool{}
	for _, f := range added {
		places[t.place(f)] = true
		if f.ContentType() != iceberg.EntryContentData {
			countDeletes(deletes, "added", f)
			deletes["added-files-size"] += sizeOf(f)
		}
	}
	for _, f := range removed {
		places[t.place(f)] = true
		gone["removed-files-size"] += sizeOf(f)
		if f.ContentType() == iceberg.EntryContentData {
			gone["deleted-data-files"]++
			gone["deleted-records"] += f.Count()
			continue
		}
		countDeletes(gone, "removed", f)
	}
	for name, by := range map[string][2]string{
		"total-files-size": {"added-files-size", "removed-files-size"}, "total-data-files": {"", "deleted-data-files"}, "total-records": {"", "deleted-records"},
		"total-delete-files":     {"added-delete-files", "removed-delete-files"},
		"total-equality-deletes": {"added-equality-deletes", "removed-equality-deletes"},
		"total-position-deletes": {"added-position-deletes", "removed-position-deletes"},
	} {
		if total, err := strconv.ParseInt(p[name], 10, 64); err == nil {
			p[name] = strconv.FormatInt(max(0, total+deletes[by[0]]-gone[by[1]]), 10)
		}
	}
	if size, err := strconv.ParseInt(p["added-files-size"], 10, 64); err == nil {
		deletes["added-files-size"] += size
	}
	for _, n := range []map[string]int64{deletes, gone} {
		for name, count := range n {
			p[name] = strconv.FormatInt(count, 10)
		}
	}
	p["changed-partition-count"] = strconv.Itoa(len(places))
	s.Summary = &table.Summary{Operation: table.OpOverwrite, Properties: p}
	return nil
}

// countDeletes counts a delete file that was added or removed.
func countDeletes(n map[string]int64, what string, f iceberg.DataFile) {
	n[what+"-delete-files"]++
	switch {
	case f.ContentType() == iceberg.EntryContentEqDeletes:
		n[what+"-equality-delete-files"]++
		n[what+"-equality-deletes"] += f.Count()
		return
	case table.IsDeletionVector(f):
		n[what+"-dvs"]++
	default:
		n[what+"-position-delete-files"]++
	}
	n[what+"-position-deletes"] += f.Count()
}

// sizeOf are the bytes that a summary counts of a file: of a deletion vector its own, since one file holds many.
func sizeOf(f iceberg.DataFile) int64 {
	if size := f.ContentSizeInBytes(); size != nil && table.IsDeletionVector(f) {
		return *size
	}
	return f.FileSizeBytes()
}
