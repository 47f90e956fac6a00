package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"icepipe/pkg/migrate"
)

type broken struct{}

func (broken) Run(context.Context, *World) error { panic("no such thing") }

// A panic is a failure, which 2 is not: that says that tables differ.
func TestPanic(t *testing.T) {
	programs["ice-broken"] = program{"", func() any { return new(broken) }}
	defer delete(programs, "ice-broken")
	for traceback, more := range map[string]string{"": "", "1": "exit_test.go"} {
		t.Setenv("ICE_TRACEBACK", traceback)
		var stderr bytes.Buffer
		code := Run(t.Context(), "ice-broken", &World{Name: "ice-broken", Stdout: &stderr, Stderr: &stderr})
		if says := stderr.String(); code != exitFailed || !strings.HasPrefix(says, "Error: no such thing: this is a mistake of the program") || !strings.Contains(says, more) || more == "" && strings.Count(says, "\n") != 1 {
			t.Errorf("exit code %d, %q", code, says)
		}
	}
}

// What a second run would do depends on what the first has done, and why it ended.
func TestAdvice(t *testing.T) {
	failed := fmt.Errorf("commit: table x %w", migrate.ErrMovedAway)
	for _, c := range []struct {
		receipt    migrate.Receipt
		checkpoint string
		err        error
		want       string
	}{
		{migrate.Receipt{}, "c.json", context.Canceled, "run the same command again to resume"},
		{migrate.Receipt{Batches: 1}, "c.json", failed, "ice-migrate status says what another run would do"},
		{migrate.Receipt{Complete: true, Batches: 1}, "c.json", context.Canceled, "ice-verify --checkpoint c.json makes it"},
		{migrate.Receipt{Complete: true, Batches: 1}, "", context.Canceled, "its verification is not: ice-verify makes it"},
		{migrate.Receipt{}, "", context.Canceled, "nothing was committed"},
	} {
		if got := (commitFlags{Checkpoint: c.checkpoint}).advice(c.receipt, c.err); !strings.Contains(got, c.want) {
			t.Errorf("%+v, %v: %q, want %q", c.receipt, c.err, got, c.want)
		}
	}
}
