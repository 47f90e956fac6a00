package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/internal/datafile"
	"icepipe/internal/rowdiff"
	"icepipe/internal/rowform"
)

// A PartitionDigest is what partition_hash finds of one partition: how many rows each side has in it, and the
// sum of their hashes modulo 2^256 in hexadecimal. The hash of a row is SHA-256 of its canonical form
// (internal/rowform), so that the order of rows does not matter, and how often each is there does.
type PartitionDigest struct {
	Partition    string `json:"partition"`
	SourceRows   int64  `json:"source_rows"`
	DestRows     int64  `json:"dest_rows"`
	SourceDigest string `json:"source_digest"`
	DestDigest   string `json:"dest_digest"`
}

func (p PartitionDigest) matches() bool {
	return p.SourceRows == p.DestRows && p.SourceDigest == p.DestDigest
}

// partitionSum is the rows of one side in one partition.
type partitionSum struct {
	text string
	rows int64
	sum  rowdiff.Sum
}

// verifyHash compares the digests of partitions: those of the destination's present spec, by the values of the
// rows on both sides. Rows of the destination that lie in a file of another partition are a difference too.
func verifyHash(ctx context.Context, src, dst *Table, o VerifyOptions) (Verification, error) {
	c, err := newComparison(ctx, src, dst, o)
	if err != nil {
		return Verification{}, err
	}
	parts, err := datafile.NewPartitions(dst.lake.Schema(), dst.lake.Spec())
	if err != nil {
		return Verification{}, fmt.Errorf("table %q: %w", dst.Name(), err)
	}
	counter := observed(o.Observe)
	wrong := map[string]int64{}
	source, dest := map[string]*partitionSum{}, map[string]*partitionSum{}
	err = rowdiff.Both(ctx,
		func(ctx context.Context) error { return c.sum(ctx, c.sourceSide, parts, source, counter) },
		func(ctx context.Context) error { return c.sum(ctx, c.placedSide(wrong), parts, dest, counter) })
	if err != nil {
		return Verification{}, err
	}
	v := o.verification(MethodPartitionHash, c.sourceAt, c.destAt)
	v.Details = append(v.Details, c.rejects()...)
	v.SourceCount, v.DestCount = new(int64), new(int64)
	for _, key := range slices.Sorted(maps.Keys(union(source, dest))) {
		a, b := orEmpty(source[key]), orEmpty(dest[key])
		p := PartitionDigest{Partition: cmp.Or(a.text, b.text), SourceRows: a.rows, DestRows: b.rows, SourceDigest: a.hex(), DestDigest: b.hex()}
		v.Partitions = append(v.Partitions, p)
		*v.SourceCount += a.rows
		*v.DestCount += b.rows
		if !p.matches() {
			v.MismatchedPartitions = append(v.MismatchedPartitions, p.Partition)
			v.Details = append(v.Details, fmt.Sprintf("%s: source has %s with digest %s, destination %s with digest %s",
				partitionText(p.Partition), plural(p.SourceRows, "row", "rows"), p.SourceDigest[:16], plural(p.DestRows, "row", "rows"), p.DestDigest[:16]))
		}
	}
	v.Details = append(v.Details, misplaced(wrong)...)
	v.Matches = len(v.MismatchedPartitions) == 0 && len(wrong) == 0
	if v.Matches {
		v.Details = append(v.Details, fmt.Sprintf("%s in %s agree", plural(*v.DestCount, "row", "rows"), plural(int64(len(v.Partitions)), "partition", "partitions")))
	}
	return v, nil
}

// misplaced says which files of the destination hold rows of another partition than their own.
func misplaced(wrong map[string]int64) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		out = append(out, fmt.Sprintf("file %q of the destination: %s of another partition than the file is of", path, plural(wrong[path], "row is", "rows are")))
	}
	return out
}

func partitionText(text string) string {
	if text == "" {
		return "the table"
	}
	return "partition " + text
}

func orEmpty(p *partitionSum) partitionSum {
	if p == nil {
		return partitionSum{}
	}
	return *p
}

func (p partitionSum) hex() string {
	return fmt.Sprintf("%016x%016x%016x%016x", p.sum[0], p.sum[1], p.sum[2], p.sum[3])
}

func union(a, b map[string]*partitionSum) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

// sum adds up a side's rows by partition.
func (c *comparison) sum(ctx context.Context, side rowdiff.Side, parts *datafile.Partitions, into map[string]*partitionSum, counter func(int64)) error {
	var buf []byte
	for batch, err := range side(ctx) {
		if err != nil {
			return err
		}
		if buf, err = c.sumBatch(batch, parts, into, buf); err != nil {
			return err
		}
		counter(batch.NumRows())
	}
	return nil
}

// sumBatch takes the record batch over.
func (c *comparison) sumBatch(batch arrow.RecordBatch, parts *datafile.Partitions, into map[string]*partitionSum, buf []byte) ([]byte, error) {
	defer batch.Release()
	bound, err := c.form.Bind(batch)
	if err != nil {
		return buf, err
	}
	of, found, err := parts.Split(batch)
	if err != nil {
		return buf, err
	}
	sums := make([]*partitionSum, len(found))
	for i, f := range found {
		if into[f.Key] == nil {
			into[f.Key] = &partitionSum{text: f.Text}
		}
		sums[i] = into[f.Key]
	}
	for row, i := range of {
		buf = bound.Append(buf[:0], row)
		sums[i].sum.Add(sha256.Sum256(buf))
		sums[i].rows++
	}
	return buf, nil
}

// rowText is a row as JSON, by the names of the destination's columns.
func rowText(form *rowform.Form, row []byte) (string, error) {
	cells, err := form.Cells(row)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, f := range form.Fields {
		text, err := rowform.JSON(cells[i], f.Type)
		if err != nil {
			return "", err
		}
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		name, _ := json.Marshal(f.Name) // text always can be
		fmt.Fprintf(&b, "%s:%s", name, text)
	}
	return b.String() + "}", nil
}
