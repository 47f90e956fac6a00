package datafile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"

	"icepipe/internal/localdisk"
)

var idText = iceberg.NewSchema(0, req(1, "id", prim.Int64), opt(2, "p", prim.String))

func manyRows(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",{\"id\":%d,\"p\":\"text %d\"}", from+i, (from+i)*7919%100003)
	}
	return "[" + b.String()[1:] + "]"
}

func TestFilesEndAtTheTargetSize(t *testing.T) {
	cfg := config(t, idText, iceberg.Properties{propTargetSize: "100000", propCodec: "none", propDict: "false"})
	files := write(t, cfg, batchOf(t, memory.DefaultAllocator, idText, manyRows(0, 20000)), batchOf(t, memory.DefaultAllocator, idText, manyRows(20000, 20000)))
	rows, next := int64(0), 0
	for i, f := range files {
		rows += f.Count()
		if i < len(files)-1 && (f.FileSizeBytes() < 100000 || f.FileSizeBytes() > 250000) {
			t.Errorf("file %d has %d bytes", i, f.FileSizeBytes())
		}
		for _, v := range strings.Fields(texts(t, f, "id")) {
			if v != fmt.Sprint(next) {
				t.Fatalf("row %s where %d is due", v, next)
			}
			next++
		}
	}
	if len(files) < 4 || rows != 40000 {
		t.Errorf("%d files, %d rows", len(files), rows)
	}
}

func TestSameInputSameFiles(t *testing.T) {
	var first []byte
	for jobs := range 4 {
		cfg := config(t, idText, nil)
		cfg.Jobs, cfg.Name = jobs+1, func() string { return "f" }
		write(t, cfg, batchOf(t, memory.DefaultAllocator, idText, manyRows(0, 30000)), batchOf(t, memory.DefaultAllocator, idText, manyRows(30000, 10)))
		b := mustRead(t, cfg.Location+"/data/f.parquet")
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%d jobs make another file", jobs+1)
		}
	}
}

func TestBatchesFollowEachOther(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	before := runtime.NumGoroutine()
	w := newWriter(t, config(t, idText, nil))
	var pending []*Pending
	for i := range 5 {
		rb := batchOf(t, mem, idText, manyRows(i*100, 100))
		if err := w.Write(context.Background(), rb); err != nil {
			t.Fatal(err)
		}
		rb.Release()
		pending = append(pending, w.End(context.Background()))
	}
	if files, err := w.Finish(context.Background()); err != nil || len(files) != 0 {
		t.Errorf("a batch without rows: %v, %v", files, err)
	}
	for i, p := range pending {
		files, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(t, files[0], "id"); !strings.HasPrefix(got, fmt.Sprintf("%d %d ", i*100, i*100+1)) || files[0].Count() != 100 {
			t.Errorf("batch %d begins %.20s", i, got)
		}
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}

func TestAbort(t *testing.T) {
	for _, partitioned := range []bool{false, true} {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		cfg := config(t, idText, nil)
		if partitioned {
			cfg.Spec, cfg.GatherBytes = spec(by(2, 1000, "p", iceberg.BucketTransform{NumBuckets: 3})), 3000
		}
		w := newWriter(t, cfg)
		w.Abort() // of nothing
		for i := range 3 {
			rb := batchOf(t, mem, idText, manyRows(i, 1000))
			if err := w.Write(context.Background(), rb); err != nil {
				t.Fatal(err)
			}
			rb.Release()
		}
		w.Abort()
		mem.AssertSize(t, 0)
		rb := batchOf(t, mem, idText, manyRows(0, 2))
		if err := w.Write(context.Background(), rb); err != nil {
			t.Fatal(err)
		}
		rb.Release()
		files, err := w.Finish(context.Background())
		rows := int64(0)
		for _, f := range files {
			rows += f.Count()
		}
		if err != nil || rows != 2 {
			t.Errorf("after Abort: %d rows, %v", rows, err)
		}
		mem.AssertSize(t, 0)
	}
}

// A disk that fails is told by Finish, in time, and the Writer can be used again.
func TestFailures(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	cfg := config(t, idText, iceberg.Properties{propRowGroupSize: "1000"})
	cfg.Name = func() string { return "same" }
	w := newWriter(t, cfg)
	for i, want := range []string{"", "same.parquet: file exists"} {
		rb := batchOf(t, mem, idText, manyRows(0, 500))
		err := w.Write(context.Background(), rb)
		if err == nil {
			_, err = w.Finish(context.Background())
		}
		rb.Release()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("batch %d: %v, want %q", i, err, want)
		}
	}
	if err := os.RemoveAll(cfg.Location); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Location, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rb := batchOf(t, mem, idText, manyRows(0, 500))
	defer rb.Release()
	if err := w.Write(context.Background(), rb); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(context.Background()); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("folder that is a file: %v", err)
	}
	if err := os.Remove(cfg.Location); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), rb); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(context.Background()); err != nil {
		t.Errorf("after mending: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWriter(t, config(t, idText, nil))
	rb := batchOf(t, memory.DefaultAllocator, idText, manyRows(0, 10))
	if err := w.Write(ctx, rb); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Write(ctx, rb); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if _, err := w.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Finish: %v", err)
	}
}

// brokenStore is a store whose files take some bytes and no more.
type brokenStore struct {
	iceio.LocalFS
	room   *int
	closed *int
}

func (s brokenStore) Create(string) (iceio.FileWriter, error) { return &brokenFile{s}, nil }

type brokenFile struct{ brokenStore }

func (f *brokenFile) Write(p []byte) (int, error) {
	if *f.room -= len(p); *f.room < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}
func (f *brokenFile) Close() error                        { *f.closed++; return nil }
func (f *brokenFile) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{f}, r) }

// failsAtAnyByte writes files into a store that takes more and more bytes, until it takes all: before that writing ends
// with the store's failure, and always with one file that was closed once.
func failsAtAnyByte(t *testing.T, cfg Config, step int, write func(*Writer) error) {
	t.Helper()
	cfg.Location = "mem://bucket/table"
	for room := 0; ; room += step {
		left, closed := room, 0
		cfg.FS = brokenStore{room: &left, closed: &closed}
		err := write(newWriter(t, cfg))
		if closed != 1 {
			t.Errorf("room for %d bytes: file closed %d times", room, closed)
		}
		if err == nil {
			if left < 0 {
				t.Error("the failure was not told")
			}
			return
		}
		if !strings.Contains(err.Error(), "disk full") {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
	}
}

func TestWritesThatFailAtAnyByte(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	rb := batchOf(t, mem, idText, manyRows(0, 3000))
	defer rb.Release()
	cfg := config(t, idText, iceberg.Properties{propRowGroupSize: "5000", propCodec: "none"})
	failsAtAnyByte(t, cfg, 10000, func(w *Writer) error {
		err := w.Write(context.Background(), rb)
		if err != nil {
			w.Abort()
		} else {
			_, err = w.Finish(context.Background())
		}
		return err
	})
}

func TestVerify(t *testing.T) {
	f := write(t, config(t, idText, nil), batchOf(t, memory.DefaultAllocator, idText, manyRows(0, 100)))[0]
	path, _ := localdisk.Path(f.FilePath())
	whole := mustRead(t, path)
	for name, tc := range map[string]struct {
		bytes []byte
		want  string
	}{
		"whole":     {whole, ""},
		"cut":       {whole[:len(whole)-1], "bytes"},
		"no footer": {make([]byte, len(whole)), "magic"},
		"gone":      {nil, "no such file"},
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if tc.bytes != nil {
			if err := os.WriteFile(path, tc.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := Verify(context.Background(), iceio.LocalFS{}, f)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), f.FilePath())) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	df, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, f.FilePath(), iceberg.ParquetFile, nil, nil, nil, 99, f.FileSizeBytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(context.Background(), nil, df.Build()); err == nil || !strings.Contains(err.Error(), "has 100 rows, 99 were written") {
		t.Errorf("other row count: %v", err)
	}
}

func TestUnknownIsNotStored(t *testing.T) {
	s := iceberg.NewSchema(0, opt(1, "u", iceberg.UnknownType{}), req(2, "id", prim.Int64),
		opt(3, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{opt(4, "v", iceberg.UnknownType{}), opt(5, "x", prim.Int32)}}))
	cfg := config(t, s, nil)
	cfg.Version = 3
	f := write(t, cfg, batchOf(t, memory.DefaultAllocator, s, `[{"id":1,"st":{"x":5}},{"id":2,"st":null},{"id":3,"st":{"x":null}}]`))[0]
	if got := fmt.Sprint(texts(t, f, "id"), texts(t, f, "st"), openParquet(t, f).MetaData().Schema.NumColumns()); got != `1 2 3{"x":5} null {"x":null}2` {
		t.Error(got)
	}
}
