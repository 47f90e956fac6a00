package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The mode that a job gets.
func TestDeleteMode(t *testing.T) {
	for _, c := range []struct {
		version, mode, props string
		want                 DeleteMode
		refused              string
	}{
		{"1", "auto", "", CopyOnWrite, ""},
		{"1", "auto", "write.merge.mode=merge-on-read", CopyOnWrite, ""},
		{"1", "position", "", 0, "upgrade the table to version 2"},
		{"1", "copy-on-write", "", CopyOnWrite, ""},
		{"2", "auto", "", MergeOnRead, ""},
		{"2", "position", "write.merge.mode=copy-on-write", MergeOnRead, ""},
		{"2", "auto", "write.merge.mode=Copy-On-Write", CopyOnWrite, ""},
		{"2", "auto", "write.update.mode=copy-on-write", CopyOnWrite, ""},
		{"2", "auto", "write.delete.mode=copy-on-write", MergeOnRead, ""},
		{"3", "auto", "write.merge.mode=MERGE-ON-READ,write.update.mode=copy-on-write", MergeOnRead, ""},
		{"3", "copy-on-write", "write.merge.mode=merge-on-read", CopyOnWrite, ""},
		{"3", "auto", "write.merge.mode=both", 0, `"both": want copy-on-write or merge-on-read`},
		{"3", "always", "", 0, "want auto, copy-on-write or position"},
	} {
		tbl := newTable(t, idAndText(), unpartitioned(), append(slices.DeleteFunc(strings.Split(c.props, ","), func(s string) bool { return s == "" }), "version="+c.version)...)
		got, err := tbl.DeleteMode(c.mode)
		if c.refused != "" {
			fails(t, fmt.Sprint(c), err, c.refused)
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%v: %s, %v", c, got, err)
		}
	}
}
