package command

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"icepipe/pkg/migrate"
)

// logEvery is how often a line of progress is written where stderr is not a terminal.
const logEvery = 30 * time.Second

// A progress shows how far a run is: a bar on a terminal, else a line now and then.
type progress struct {
	w     *World
	quiet bool
	bar   *progressbar.ProgressBar
	begin time.Time
	last  time.Time
}

func newProgress(w *World, quiet bool) *progress {
	now := time.Now()
	return &progress{w: w, quiet: quiet, begin: now, last: now}
}

// watch shows the run that o is for.
func (p *progress) watch(o *migrate.WriteOptions) {
	o.Observe, o.Begin, o.Waiting = p.observe, p.hints, p.waiting
}

// hints writes the advice on a run to come.
func (p *progress) hints(texts []string) {
	if p.quiet {
		return
	}
	for _, text := range texts {
		fmt.Fprintf(p.w.Stderr, "Hint: %s\n", text)
	}
}

// waiting says why an interrupted program does not end at once.
func (p *progress) waiting() {
	fmt.Fprintln(p.w.Stderr, "Interrupted: the commit in flight is brought to its end first; interrupt again to kill")
}

func (p *progress) observe(e migrate.Event) {
	if p.quiet {
		return
	}
	if !p.w.Terminal(p.w.Stderr) {
		if time.Since(p.last) >= logEvery {
			p.last = time.Now()
			fmt.Fprintf(p.w.Stderr, "%d of %d rows, %d commits, %.0f rows/s\n", e.Rows, e.Expected, e.Commits, float64(e.Rows)/time.Since(p.begin).Seconds())
		}
		return
	}
	p.draw(fmt.Sprintf("%d commits", e.Commits), e.Rows, e.Expected)
}

// compared shows how many rows of both tables a verification has read. It is called once at a time.
func (p *progress) compared(rows int64) {
	switch {
	case p.quiet:
	case p.w.Terminal(p.w.Stderr):
		p.draw("rows read of both tables", rows, -1) // how often a diff reads them is not known before
	case time.Since(p.last) >= logEvery:
		p.last = time.Now()
		fmt.Fprintf(p.w.Stderr, "%d rows read of both tables, %.0f rows/s\n", rows, float64(rows)/time.Since(p.begin).Seconds())
	}
}

// draw draws the bar; expected is -1 where nobody knows.
func (p *progress) draw(what string, n, expected int64) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(max(expected, -1),
			progressbar.OptionSetWriter(p.w.Stderr), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("rows"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionEnableColorCodes(os.Getenv("NO_COLOR") == ""), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(expected > 0))
	}
	p.bar.Describe(what)
	p.bar.Set64(n)
}

// end takes the bar away. It may be called twice.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Clear()
		p.bar = nil
	}
}
