//go:build interop

package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// leastCases is the number of cases that ran when it was last counted: fewer is a failure, so that
// no case gets lost unseen. Raise it with every fixture.
const leastCases = 300

// TestTablesMove moves every fixture without a mode, and the one for append, by the pipe and by
// ice-migrate, and lets other engines read what arrived.
func TestTablesMove(t *testing.T) {
	l := openLab(t)
	before := l.sourceState(t)
	began := time.Now()
	var units [][]*move
	for i := range l.tables {
		if f := &l.tables[i]; f.appends() {
			units = append(units, l.moves(t, f))
		}
	}
	outcomes := l.moveAll(t, units)
	say("%5.1f s  %d moves", time.Since(began).Seconds(), len(outcomes))
	if after := l.sourceState(t); after != before {
		t.Errorf("the sources changed while they were read:\n%s", firstChange(before, after))
	}

	var moved []*outcome
	for _, o := range outcomes {
		if o.err == nil && o.succeeded() {
			moved = append(moved, o)
		}
	}
	copied := 0
	for _, o := range moved {
		if r, err := o.receipt(); err == nil && r.BytesCopied > 0 {
			copied++
		}
	}
	say("interop: %d of %d moves copied columns", copied, len(moved))
	if copied == 0 && len(l.only) == 0 {
		t.Error("no move copied a column")
	}
	db := l.gather(t, moved)
	began = time.Now()
	l.readAll(t, db, moved)
	say("%5.1f s  %d tables read by %s", time.Since(began).Seconds(), len(moved), strings.Join(readers, ", "))

	cases, agreed := 0, map[string]int{}
	for _, o := range outcomes {
		t.Run(o.move.name(), func(t *testing.T) { l.judge(t, o, agreed) })
		cases++
	}
	t.Run("one process and three", func(t *testing.T) { l.compareWays(t, db, outcomes) })
	for _, reader := range readers {
		say("interop: %d of %d tables hold the expected rows, says %s", agreed[reader], len(moved), reader)
	}
	say("interop: %d cases ran", cases)
	if cases < leastCases && len(l.only) == 0 {
		t.Errorf("%d cases ran, at least %d did before", cases, leastCases)
	}
}

// moveAll makes the moves of all fixtures. Those of one come one after the other: their destinations have
// one location, and a refusal must leave it as it was.
func (l *lab) moveAll(t *testing.T, fixtures [][]*move) []*outcome {
	t.Helper()
	type unit struct {
		moves []*move
		done  []*outcome
	}
	units := make([]*unit, len(fixtures))
	for i, moves := range fixtures {
		units[i] = &unit{moves: moves}
	}
	inPairs(units, func(u *unit) {
		for _, m := range u.moves {
			u.done = append(u.done, l.carry(t, m))
		}
	})
	var results []*outcome
	for _, u := range units {
		results = append(results, u.done...)
	}
	return results
}

// judge is the verdict on one move; agreed counts the tables in which an engine found the rows.
func (l *lab) judge(t *testing.T, o *outcome, agreed map[string]int) {
	m := o.move
	defer func() {
		if t.Failed() {
			t.Log(told(o.runs))
		}
	}()
	if o.err != nil {
		t.Fatal(o.err)
	}
	if m.want == nil || m.mayRefuse && !o.succeeded() {
		said, err := o.refused()
		if err != nil {
			t.Fatalf("must be refused before the first write: %v", err)
		}
		if !m.refusal.MatchString(said) {
			t.Errorf("the refusal is %q, want it to say %q", said, m.refusal)
		}
		return
	}
	if !o.succeeded() {
		t.Fatal("the move failed")
	}
	if m.fixture.Mode == "upsert" {
		l.judgeUpsert(t, o)
	} else {
		o.judgeReceipt(t)
	}
	for _, r := range o.verified {
		if r.code != 0 {
			t.Errorf("verification:\n%s", told(o.verified))
		}
	}
	witnesses := 0
	for _, reader := range readers {
		rows, err := l.found(reader, m)
		known := m.fixture.notice(reader)
		switch {
		case errors.Is(err, errNotAsked):
		case err != nil && known == "":
			t.Errorf("%s cannot read the destination: %v", reader, err)
		case err != nil:
		case differ(m.want, rows) == "":
			witnesses++
			agreed[reader]++
		case known == "":
			t.Errorf("%s reads other rows: %s", reader, differ(m.want, rows))
		}
	}
	if witnesses == 0 {
		t.Error("no independent engine found the expected rows")
	}
}

// judgeReceipt holds the receipt and the marks in the table against what was to be moved.
func (o *outcome) judgeReceipt(t *testing.T) {
	t.Helper()
	m := o.move
	r, err := o.receipt()
	if err != nil {
		t.Fatal(err)
	}
	batches := (m.rows + m.batchRows - 1) / m.batchRows
	if !r.Complete || r.Resumed || r.RowsMoved != m.rows || r.RowsInserted != m.rows || len(r.NewSnapshots) != batches {
		t.Errorf("the receipt is %s, want complete, %d rows in %d snapshots", o.stdout, m.rows, batches)
	}
	if m.way == byMigrate && m.fixture.Mode == "" && (r.Verification == nil || r.Verification.Matches == nil || !*r.Verification.Matches) {
		t.Errorf("the receipt %s holds no verification that matches", o.stdout)
	}
	o.judgeMarks(t, batches)
}

// judgeMarks holds that so many snapshots bear the job's marks, each of the batch behind the one before.
func (o *outcome) judgeMarks(t *testing.T, batches int) {
	t.Helper()
	commits, err := commitsOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(commits) != batches {
		t.Errorf("%d snapshots bear the job's marks, want %d", len(commits), batches)
	}
	for i, c := range commits {
		if i > 0 && c.from != commits[i-1].to {
			t.Errorf("commit %d begins at %s, the one before ends at %s", i, c.from, commits[i-1].to)
		}
		if want := fmt.Sprint(i); c.batch != want {
			t.Errorf("commit %d is marked as batch %s", i, c.batch)
		}
	}
}
