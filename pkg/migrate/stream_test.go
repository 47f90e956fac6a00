package migrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"icepipe/pkg/arrowipc"
	"icepipe/pkg/migrate"
	"icepipe/pkg/rows"
)

func numbers() *iceberg.Schema { return iceberg.NewSchema(0, field(1, "id", prim.Int64)) }

func five() []string { return []string{`{"id":0}`, `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`} }

// smallStream is the stream of three batches, five rows by two, that ice-write would read, and how many batches
// are whole, and vouched for by the message behind them, in each of its beginnings.
func smallStream(t *testing.T) (j *job, stream []byte, whole []int) {
	t.Helper()
	from, to := newStore(t), newStore(t)
	from.create(t, "src", numbers())
	from.insert(t, "src", five()...)
	to.create(t, "dst", numbers())
	j = newJob(from, to, 2)
	j.checkpoint = checkpointPath(t)
	stream, err := j.stream(t.Context(), t)
	must(t, err)
	whole = make([]int, len(stream)+1)
	for n := range whole {
		in, err := arrowipc.Read(bytes.NewReader(stream[:n]))
		if err != nil {
			continue
		}
		for span, err := range in.Spans {
			if err == nil && span.EndsBatch {
				whole[n]++
			}
			span.Release()
		}
	}
	return j, stream, whole
}

// committed holds the destination to have the first n batches, and returns their rows.
func (j *job) committed(t *testing.T, n int) {
	t.Helper()
	snaps := j.to.snaps(t, j.dst)
	if len(snaps) != n {
		t.Fatalf("%d batches are committed, want %d", len(snaps), n)
	}
	for i, s := range snaps {
		equal(t, fmt.Sprintf("batch %d", i), s.rows, five()[2*i:min(5, 2*i+2)])
	}
}

// A stream that is cut, wherever, is unsealed, and no batch is committed that was not whole. The cuts are
// made one byte further each time, into the same destination, so that each batch is committed by the
// first run that has all of it.
func TestStreamCutAtEveryByte(t *testing.T) {
	t.Parallel()
	j, stream, whole := smallStream(t)
	dst := j.to.open(t, j.dst)
	commits := 0
	for n := 0; n < len(stream); n += stride() {
		in, err := arrowipc.Read(bytes.NewReader(stream[:n]))
		if err == nil {
			_, err = migrate.Write(t.Context(), in, dst, j.write())
		}
		if !errors.Is(err, rows.ErrUnsealed) {
			t.Fatalf("cut at byte %d of %d: error %v", n, len(stream), err)
		}
		wantError(t, err, "stream ended before its seal")
		if got := len(dst.Iceberg().Metadata().Snapshots()); got != whole[n] {
			t.Fatalf("cut at byte %d of %d: %d batches are committed, and %d are whole", n, len(stream), got, whole[n])
		}
		if whole[n] != commits {
			commits = whole[n]
			j.committed(t, commits)
		}
	}
	equal(t, "batches committed from the cut streams", commits, 2) // the last one ends with the seal
	_, err := j.writeStream(t.Context(), t, stream)
	must(t, err)
	j.finished(t, five(), 3)
}

// A cut stream without a checkpoint commits the batches that are whole, and nothing of the next.
func TestStreamCutInEachBatch(t *testing.T) {
	j, stream, whole := smallStream(t)
	j.checkpoint = ""
	for n := 1; n < len(stream); n++ {
		if whole[n] == whole[n-1] || whole[n] == 0 {
			continue
		}
		for _, cut := range []int{n, min(n+300, len(stream)-1)} {
			j.to = newStore(t)
			j.to.create(t, "dst", numbers())
			in, err := arrowipc.Read(bytes.NewReader(stream[:cut]))
			must(t, err)
			described := *in.Header.Destination
			described.UUID = j.to.load(t, "dst").Metadata().TableUUID().String()
			in.Header.Destination = &described
			r, err := migrate.Write(t.Context(), in, j.to.open(t, "dst"), j.write())
			if !errors.Is(err, rows.ErrUnsealed) {
				t.Fatalf("cut at byte %d: error %v", cut, err)
			}
			j.committed(t, whole[cut])
			equal(t, "batches in the receipt", r.Batches, whole[cut])
			equal(t, "rows in the receipt", r.RowsMoved, 2*whole[cut])
			equal(t, "complete", r.Complete, false)
		}
	}
}

// One bit flipped in a byte, wherever, is an error, or the very same rows are committed. What is committed
// before the error is whole batches of the stream as it was.
func TestStreamWithABitFlipped(t *testing.T) {
	t.Parallel()
	j, stream, whole := smallStream(t)
	dst := j.to.open(t, j.dst)
	var unfinished []byte // the checkpoint before the job was done
	commits, harmless := 0, 0
	for n := 0; n < len(stream); n += stride() {
		flipped := slices.Clone(stream)
		flipped[n] ^= 1 << (n % 8)
		in, err := arrowipc.Read(bytes.NewReader(flipped))
		if err == nil {
			_, err = migrate.Write(t.Context(), in, dst, j.write())
		}
		got := len(dst.Iceberg().Metadata().Snapshots())
		if err == nil {
			harmless++
			j.finished(t, five(), 3)
			must(t, os.WriteFile(j.checkpoint, unfinished, 0o600))
			commits = got
			continue
		}
		wantError(t, err)
		if got < whole[n] || got > min(3, whole[n]+1) {
			t.Fatalf("bit %d of byte %d of %d flipped: %d batches are committed, and %d are whole before it", n%8, n, len(stream), got, whole[n])
		}
		if got != commits {
			commits = got
			j.committed(t, commits)
		}
		if got > 0 && harmless == 0 {
			unfinished, err = os.ReadFile(j.checkpoint)
			must(t, err)
		}
	}
	t.Logf("%d of %d flipped bits made no difference", harmless, len(stream))
	equal(t, "batches committed from the damaged streams", commits, 3)
}
