package lake

import (
	"context"
	"fmt"
	"strings"
)

// Replaces says for people what an overwrite of a branch takes the place of, as far as can be told before its rows are
// read.
func (t *Table) Replaces(ctx context.Context, branch string) (string, error) {
	touched, err := t.touched(nil)
	if err != nil {
		return "", err
	}
	if len(touched.fields) > 0 {
		var fields []string
		for _, f := range touched.fields {
			fields = append(fields, f.Name)
		}
		return fmt.Sprintf("the partitions, by %s, that rows of the source lie in; which and how many is known only when the rows are read, and a dry run does not", strings.Join(fields, ", ")), nil
	}
	head, err := t.Branch(branch)
	if err != nil {
		return "", err
	}
	files, rows := 0, int64(0)
	if head != nil {
		for entry, err := range t.liveFiles(ctx, head, nil) {
			if err != nil {
				return "", err
			}
			files, rows = files+1, rows+entry.DataFile().Count()
		}
	}
	return fmt.Sprintf("the whole table, which has no partitions: data files %d, with rows %d, deleted ones counted", files, rows), nil
}
