package lake

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A data file of ours is told by its name alone, wherever it lies, from those of other tables and programs.
func TestFileName(t *testing.T) {
	tbl, other := newTable(t, idAndText(), unpartitioned()), newTable(t, idAndText(), unpartitioned())
	job := uuid.NewString()
	names := tbl.FileNames(job)
	name := names()
	if again := names(); again == name {
		t.Errorf("%s twice", name)
	}
	for _, location := range []string{
		"/w/t/data/" + name + ".parquet", "file:///w/t/data/p=1/" + name + ".parquet",
		"s3://bucket/t/data/0110/1011/0001/10100011-" + name + ".parquet", "s3://b/t/data/0110/1011/0001/10100011/p=1/" + name + ".parquet",
	} {
		if !tbl.Ours(location) {
			t.Errorf("%s is not ours", location)
		}
		if other.Ours(location) {
			t.Errorf("%s is of another table", location)
		}
	}
	for _, location := range []string{
		name, name + ".parquet.crc", name + ".orc", "x-" + name + ".parquet", strings.ToUpper(name) + ".parquet",
		"00000-0-" + uuid.NewString() + ".parquet", uuid.NewString() + ".parquet", "icepipe-" + uuid.NewString() + ".parquet", "",
	} {
		if tbl.Ours(location) {
			t.Errorf("%s is taken for ours", location)
		}
	}
}

// The jobs of a history are told apart, the newest last; what cannot be read of one hides no other.
func TestTraces(t *testing.T) {
	tbl := newTable(t, idAndText(), unpartitioned())
	appended(t, tbl, 0, ids(1, 1))
	appended(t, tbl, 1, ids(2, 2))
	another(t, tbl)
	if err := tbl.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	history, err := tbl.History("main")
	if err != nil {
		t.Fatal(err)
	}
	mine := history.Snapshots[1].Summary.Properties
	history.Snapshots[0].Summary.Properties[MarkJob] = "their job"
	traces := history.Traces()
	if len(traces) != 2 || traces[1].Job != "their job" || !traces[1].Foreign || traces[0].Foreign {
		t.Fatalf("traces %+v", traces)
	}
	if first := traces[0]; len(first.Marks) != 2 || first.Marks[0].Batch != 0 || first.Before != nil || first.Last != history.Snapshots[1].SnapshotID || first.Settings != mine[MarkSettings] {
		t.Errorf("trace %+v", first)
	}
	history.Snapshots[0].Summary.Properties[MarkTo] = "nowhere"
	traces = history.Traces()
	if traces[1].Foreign || traces[1].Err == nil || len(traces[0].Marks) != 2 || traces[0].Err != nil {
		t.Errorf("traces %+v", traces)
	}
	for i, want := range []bool{true, true} {
		held, err := tbl.HoldsRowsOf(t.Context(), "main", history.Snapshots[i+1].SnapshotID)
		if err != nil || held != want {
			t.Errorf("snapshot %d: held %v, %v", i, held, err)
		}
	}
	if held, err := tbl.HoldsRowsOf(t.Context(), "main", 4711); err != nil || held {
		t.Errorf("held %v, %v", held, err)
	}
}
