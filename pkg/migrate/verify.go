package migrate

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/iceberg-go/table"

	"icepipe/internal/lake"
)

// A Verification is the answer of a comparison of two tables. A comparison that could not be made is
// an error, never a Verification that does not match.
type Verification struct {
	Method              string   `json:"method"`
	Matches             bool     `json:"matches"`
	SourceCount         *int64   `json:"source_count"`
	DestCount           *int64   `json:"dest_count"`
	SampleSize          *int64   `json:"sample_size"`
	MismatchedPartition []string `json:"mismatched_partitions"`
	Details             []string `json:"details"`
	SourceSnapshot      *string  `json:"source_snapshot"`
	DestSnapshot        *string  `json:"dest_snapshot"`
}

// WriteText writes the verification for people.
func (v Verification) WriteText(w io.Writer) error {
	word := "differ"
	if v.Matches {
		word = "agree"
	}
	if _, err := fmt.Fprintf(w, "verify %s: the tables %s\n", v.Method, word); err != nil {
		return err
	}
	for _, d := range v.Details {
		if _, err := fmt.Fprintf(w, "  %s\n", d); err != nil {
			return err
		}
	}
	return nil
}

// A VerifyOptions says what is compared.
type VerifyOptions struct {
	Method     string // row_count
	Source     Pin    // snapshot of the source, the current one by default
	DestBranch string // "" for main
}

// Verify compares a source, at one snapshot, with the whole of a destination, as it is now. Rows that
// were in the destination before, and rows of others, count as differences.
func Verify(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	if o.Method != "" && o.Method != "row_count" {
		return Verification{}, fmt.Errorf("verification method %q is not known; there is row_count", o.Method)
	}
	want, err := src.lake.Count(ctx, o.Source.lake())
	if err != nil {
		return Verification{}, err
	}
	pin := lake.Pin{Ref: o.DestBranch}
	if pin.Ref == table.MainBranch {
		pin.Ref = "" // which need not have a snapshot
	}
	got, err := dst.lake.Count(ctx, pin)
	if err != nil {
		return Verification{}, err
	}
	return Verification{
		Method:              "row_count",
		Matches:             want.Rows == got.Rows,
		SourceCount:         &want.Rows,
		DestCount:           &got.Rows,
		MismatchedPartition: []string{},
		Details: []string{
			counted("source", src, want),
			counted("destination", dst, got),
		},
		SourceSnapshot: snapshotText(want.Snapshot),
		DestSnapshot:   snapshotText(got.Snapshot),
	}, nil
}

func counted(side string, t *Table, c lake.Count) string {
	s := fmt.Sprintf("%s %s at snapshot %s: %s in %s", side, t.lake.Name(), orNone(snapshotText(c.Snapshot)), plural(c.Rows, "row", "rows"), plural(c.Files, "file", "files"))
	if c.Scanned > 0 {
		s += fmt.Sprintf(", %s of them read for their equality deletes", grouped(c.Scanned))
	}
	return s
}
