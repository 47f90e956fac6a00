package migrate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/filter"
	"icepipe/pkg/migrate"
	"icepipe/pkg/plan"
)

// rejected reads a reject file of either form: "ROW COLUMN VALUE RULE SOURCE", the source row as JSON.
func rejected(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var out []string
	note := func(row int64, column, value, rule, source string) {
		out = append(out, fmt.Sprintf("%d %s %s %s %s", row, column, value, rule, source))
	}
	if filepath.Ext(path) != ".arrow" {
		for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			if line == "" {
				continue
			}
			var e struct {
				File, Cursor, Column, Value, Rule string
				RowGroup                          *int `json:"row_group"`
				Row                               int64
				Source                            json.RawMessage
			}
			must(t, json.Unmarshal([]byte(line), &e))
			if e.File == "" || e.RowGroup == nil || !strings.HasSuffix(e.Cursor, e.File) {
				t.Errorf("no place: %s", line)
			}
			note(e.Row, e.Column, e.Value, e.Rule, string(e.Source))
		}
		return out
	}
	if len(text) == 0 {
		return nil
	}
	in, err := ipc.NewReader(bytes.NewReader(text))
	must(t, err)
	defer in.Release()
	for in.Next() {
		rec := in.RecordBatch()
		text := func(i int) string { return rec.Column(i).(*array.String).Value(0) }
		source, err := json.Marshal(rec.Column(8).GetOneForMarshal(0))
		must(t, err)
		note(rec.Column(2).(*array.Int64).Value(0), text(4), text(5), text(6), string(source))
	}
	return out
}

// cures are the ways in which a value in the middle of a batch does not fit, and what mends the destination.
var cures = []struct {
	name     string
	src, dst iceberg.NestedField
	bad      string // the value of row 4, as JSON
	says     string
	mended   iceberg.NestedField
}{
	{"a number that does not fit", field(2, "v", prim.Int64), field(2, "v", prim.Int32), "3000000000",
		`column "v": 3000000000 is beyond the range of int`, field(2, "v", prim.Int64)},
	{"null into required (case 28)", field(2, "v", prim.Int64), required(field(2, "v", prim.Int64)), "null",
		`column "v": null where a value is required`, field(2, "v", prim.Int64)},
	{"a decimal that does not fit (case 29)", field(2, "v", iceberg.DecimalTypeOf(9, 2)), field(2, "v", iceberg.DecimalTypeOf(4, 2)), `"12345.67"`,
		`column "v": 12345.67 is beyond the range of decimal(4, 2)`, field(2, "v", iceberg.DecimalTypeOf(9, 2))},
}

func required(f iceberg.NestedField) iceberg.NestedField {
	f.Required = true
	return f
}

// A value that does not fit, in the middle of batch 2 of 3: the run stops and names the row, with the batches
// before committed. After the cure the job goes on, and the destination holds every other row once.
func TestValueStopsAndCures(t *testing.T) {
	for _, c := range cures {
		for _, f := range []form{one, three} {
			for _, cure := range []string{"reject, JSON lines", "reject, Arrow", "mend the destination"} {
				t.Run(c.name+"/"+f.name+"/"+cure, func(t *testing.T) {
					from, to := newStore(t), newStore(t)
					from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), c.src))
					var all []string
					for i := range 9 {
						v := fmt.Sprint(i)
						if i == 4 {
							v = c.bad
						}
						all = append(all, fmt.Sprintf(`{"id":%d,"v":%s}`, i, v))
					}
					from.insert(t, "src", all...)
					to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), c.dst))
					j := newJob(from, to, 3)
					j.checkpoint, j.shortcut = checkpointPath(t), f.name == three.name
					_, err := f.run(j, t.Context(), t)
					wantError(t, err, c.says, "row 4 of row group 0 of file")
					if bad := new(migrate.PlacedError); f.name == one.name && (!errors.As(err, &bad) || bad.At.Row != 4 || !bad.Exact) {
						t.Errorf("the place is not told: %v", err)
					}
					before := len(to.content(t, "dst"))
					if before != 3 && f.name == one.name {
						t.Errorf("%d rows before the cure", before)
					}

					want := from.content(t, "src")
					switch cure {
					case "mend the destination":
						to.evolve(t, "dst", func(u *table.UpdateSchema) {
							u.UpdateColumn([]string{"v"}, table.ColumnUpdate{
								FieldType: iceberg.Optional[iceberg.Type]{Val: c.mended.Type, Valid: true}, Required: iceberg.Optional[bool]{Val: false, Valid: true}})
						})
					default:
						want = slices.Delete(want, 4, 5)
						j.reconcile.OnCastError = plan.PolicyReject
						j.rejects.File = filepath.Join(t.TempDir(), map[bool]string{true: "r.arrow", false: "r.jsonl"}[cure == "reject, Arrow"])
					}
					r, err := f.run(j, t.Context(), t)
					must(t, err)
					if !r.Resumed && f.name == one.name || !r.Complete {
						t.Errorf("receipt %+v", r)
					}
					equal(t, "rows", to.content(t, "dst"), want)
					if cure == "mend the destination" {
						return
					}
					equal(t, "rejected", r.RowsRejected, 1)
					got := rejected(t, j.rejects.File)
					if len(got) != 1 || !strings.HasPrefix(got[0], "4 v ") || !strings.Contains(got[0], `"id":4`) || !strings.Contains(c.says, strings.Fields(got[0])[2]) {
						t.Errorf("reject file: %q", got)
					}
					var o migrate.VerifyOptions // goes by what the last run did with such rows
					must(t, o.By(j.note(t)))
					for _, o.Method = range []string{migrate.MethodRowCount, migrate.MethodPartitionHash} {
						v, err := migrate.Verify(t.Context(), from.open(t, "src"), to.open(t, "dst"), o)
						if must(t, err); !v.Matches {
							t.Errorf("%s: %v", o.Method, v.Details)
						}
					}
				})
			}
		}
	}
}

// A run that dies has rejects of batches that were not committed; the next run has each once.
func TestRejectsAreNotDoubled(t *testing.T) {
	for _, name := range []string{"r.jsonl", "r.arrow"} {
		t.Run(name, func(t *testing.T) {
			from, to := newStore(t), newStore(t)
			from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.String)))
			var all []string
			for i := range 12 {
				v := fmt.Sprint(i)
				if i%4 == 1 {
					v = "x" + v
				}
				all = append(all, fmt.Sprintf(`{"id":%d,"v":%q}`, i, v))
			}
			from.insert(t, "src", all[:6]...)
			from.insert(t, "src", all[6:]...)
			to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.Int64)))
			j := newJob(from, to, 2)
			j.checkpoint, j.shortcut = checkpointPath(t), true
			j.reconcile.OnCastError = plan.PolicyReject
			j.rejects.File = filepath.Join(t.TempDir(), name)
			j.spoil = brokenAfter(3, errors.New("broken"))
			_, err := j.three(t.Context(), t)
			wantError(t, err, "broken")
			equal(t, "entries of the run that died", len(rejected(t, j.rejects.File)), 3)
			j.spoil = nil
			_, err = j.three(t.Context(), t)
			must(t, err)
			var want []string
			for _, at := range []int{1, 5, 9} {
				want = append(want, fmt.Sprintf(`%d v "x%d" does not read as long %s`, at%6, at, all[at]))
			}
			equal(t, "rejected", rejected(t, j.rejects.File), want)
			if n := len(to.content(t, "dst")); n != 9 {
				t.Errorf("%d rows", n)
			}
			totals := j.note(t).Totals
			equal(t, "totals", []int64{totals.RowsMoved, totals.RowsInserted, totals.RowsRejected}, []int64{12, 9, 3})
		})
	}
}

// A pipe that reads from the start again, and dies before it has come to where the job stands, keeps what was
// rejected up to there; so does one of a job that is complete.
func TestRejectsOutliveShorterRuns(t *testing.T) {
	for _, name := range []string{"r.jsonl", "r.arrow"} {
		t.Run(name, func(t *testing.T) {
			from, to := newStore(t), newStore(t)
			from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.String)))
			var all, want []string
			for i := range 12 {
				all = append(all, fmt.Sprintf(`{"id":%d,"v":"%s%d"}`, i, []string{"", "x"}[i%2], i))
				if i%2 == 1 {
					want = append(want, fmt.Sprintf(`%d v "x%d" does not read as long %s`, i, i, all[i]))
				}
			}
			from.insert(t, "src", all...)
			to.create(t, "dst", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.Int64)))
			j := newJob(from, to, 2)
			j.scan.RecordRows = 2
			j.checkpoint = checkpointPath(t)
			j.reconcile.OnCastError = plan.PolicyReject
			j.rejects.File = filepath.Join(t.TempDir(), name)
			stops := func(after int64) {
				t.Helper()
				j.rejects.Max = after
				_, err := j.three(t.Context(), t)
				wantError(t, err, "rows do not fit")
				if len(rejected(t, j.rejects.File)) < int(after) {
					t.Errorf("%d entries after a run of %d", len(rejected(t, j.rejects.File)), after)
				}
			}
			j.spoil = brokenAfter(4, errors.New("broken"))
			_, err := j.three(t.Context(), t)
			wantError(t, err, "broken")
			j.spoil = nil
			stops(1)
			equal(t, "rejected", rejected(t, j.rejects.File), want)
			j.rejects.Max = 0
			j.shortcut = true
			_, err = j.three(t.Context(), t)
			must(t, err)
			equal(t, "rejected", rejected(t, j.rejects.File), want)
			j.shortcut = false
			stops(2) // of what is complete
			equal(t, "rejected", rejected(t, j.rejects.File), want)
		})
	}
}

// A file that holds the rejected rows of one job is not taken for those of another: of another destination,
// filter or mapping.
func TestRejectsOfAnotherJob(t *testing.T) {
	for _, name := range []string{"r.jsonl", "r.arrow"} {
		for what, change := range map[string]func(*testing.T, *job){
			"destination": func(_ *testing.T, j *job) { j.dst = "other" },
			"filter": func(t *testing.T, j *job) {
				where, err := filter.Parse("id < 2")
				must(t, err)
				j.scan.Filter = where
			},
			"mapping": func(_ *testing.T, j *job) { j.reconcile.MissingInSource = plan.PolicyNull },
		} {
			t.Run(name+", another "+what, func(t *testing.T) {
				from, to := newStore(t), newStore(t)
				from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.String)))
				from.insert(t, "src", `{"id":0,"v":"a"}`, `{"id":1,"v":"1"}`, `{"id":2,"v":"b"}`)
				for _, dst := range []string{"dst", "other"} {
					to.create(t, dst, iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.Int64)))
				}
				j := newJob(from, to, 2)
				j.reconcile.OnCastError = plan.PolicyReject
				j.rejects.File = filepath.Join(t.TempDir(), name)
				_, err := j.one(t.Context(), t)
				must(t, err)
				want := rejected(t, j.rejects.File)
				equal(t, "entries", len(want), 2)
				before := len(to.content(t, "dst")) + len(to.content(t, "other"))
				change(t, j)
				_, err = j.one(t.Context(), t)
				wantError(t, err, "it holds rejected rows of another job")
				wantError(t, err, "give another file")
				equal(t, "entries", rejected(t, j.rejects.File), want)
				equal(t, "rows", len(to.content(t, "dst"))+len(to.content(t, "other")), before)
			})
		}
	}
}

// What is no reject file is not written over; too many rejects are an error; null takes the place of values.
func TestRejectPolicies(t *testing.T) {
	from := newStore(t)
	from.create(t, "src", iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.String)))
	from.insert(t, "src", `{"id":0,"v":"a"}`, `{"id":1,"v":"1"}`, `{"id":2,"v":"b"}`)
	dst := iceberg.NewSchema(0, field(1, "id", prim.Int64), field(2, "v", prim.Int64))
	for _, f := range []form{one, three} {
		t.Run(f.name, func(t *testing.T) {
			to := newStore(t)
			to.create(t, "dst", dst)
			j := newJob(from, to, 2)
			j.reconcile.OnCastError = plan.PolicyReject
			_, err := f.run(j, t.Context(), t)
			wantError(t, err, "--reject-file FILE")
			j.rejects.File = filepath.Join(t.TempDir(), "notes.txt")
			must(t, os.WriteFile(j.rejects.File, []byte("my notes\n"), 0o600))
			_, err = f.run(j, t.Context(), t)
			wantError(t, err, "line 1 is no rejected row; give another file")
			if text, err := os.ReadFile(j.rejects.File); err != nil || string(text) != "my notes\n" {
				t.Errorf("%q, %v", text, err)
			}
			j.rejects.File += ".jsonl"
			j.rejects.Max = 1
			_, err = f.run(j, t.Context(), t)
			wantError(t, err, "more than 1 rows do not fit", "row 2 of row group 0")
			j.reconcile.OnCastError, j.rejects = plan.PolicyNull, migrate.Rejects{}
			to.create(t, "dst2", dst)
			j.dst = "dst2"
			r, err := f.run(j, t.Context(), t)
			must(t, err)
			equal(t, "rows", to.content(t, "dst2"), []string{`{"id":0,"v":null}`, `{"id":1,"v":1}`, `{"id":2,"v":null}`})
			if !slices.Contains(r.Warnings, "2 values did not fit, and null was written in their place") {
				t.Errorf("%q", r.Warnings)
			}
		})
	}
}
