package lake

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
)

// Bounds of the commit loop where the table's commit.retry.* properties say nothing. All but the
// conflicts' are Java's defaults. A commit that lost to another has cost nothing, and the other made
// progress: of many busy writers each gets its turn in few hundred tries, where Java's four would starve
// some (case 77).
const (
	commitRetries   = 4
	conflictRetries = 200
	commitMinWait   = 100 * time.Millisecond
	commitMaxWait   = 60 * time.Second
	conflictMaxWait = 2 * time.Second // a longer one only lets others pass
	commitTotal     = 30 * time.Minute
)

// Bounds of our own.
const (
	commitTimeout = 2 * time.Minute // of one call to the catalog
	longestWait   = 24 * time.Hour  // whatever the properties say
	settleTries   = 9               // to learn what became of a commit: about half a minute
	settleMaxWait = 10 * time.Second
)

// callTimeout is how long one call to the catalog may take.
func (t *Table) callTimeout() time.Duration {
	if t.CallTimeout > 0 {
		return t.CallTimeout
	}
	return commitTimeout
}

// A retryBound limits the commit loop by the table's commit.retry.* properties. Whatever they hold, it
// ends: negative values count as zero.
type retryBound struct {
	owned              bool // the table's owner says how often
	retries, conflicts int  // after a failure, and after a conflict
	min, max           time.Duration
	conflictMax        time.Duration
	total              time.Duration
}

func newRetryBound(p iceberg.Properties) retryBound {
	ms := func(key string, unset time.Duration) time.Duration {
		n := p.GetInt64(key, unset.Milliseconds())
		return time.Duration(min(max(n, 0), longestWait.Milliseconds())) * time.Millisecond
	}
	b := retryBound{
		retries: commitRetries, conflicts: conflictRetries,
		min:         ms("commit.retry.min-wait-ms", commitMinWait),
		max:         ms("commit.retry.max-wait-ms", commitMaxWait),
		conflictMax: ms("commit.retry.max-wait-ms", conflictMaxWait),
		total:       ms("commit.retry.total-timeout-ms", commitTotal),
	}
	if n, err := strconv.Atoi(p["commit.retry.num-retries"]); err == nil {
		b.owned, b.retries = true, max(n, 0)
		b.conflicts = b.retries
	}
	b.min = min(b.min, b.max)
	return b
}

// wait is the pause before the next try: doubled each time, with jitter.
func (b retryBound) wait(try int) time.Duration {
	d := b.min
	for i := 1; i < try && d > 0 && d < b.max; i++ {
		d *= 2
	}
	d = min(d, b.max)
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// begin begins to count the tries of one commit.
func (b retryBound) begin() *retries { return &retries{retryBound: b, began: time.Now()} }

// retries are the tries of one commit so far.
type retries struct {
	retryBound
	began     time.Time
	made      int
	conflicts int // of them, those that another commit was ahead of
}

// next says how long to wait after a try that failed and did not land, and whether there is another.
func (r *retries) next(failed error) (time.Duration, bool) {
	bound, tried, most := r.retryBound, r.made-r.conflicts, r.retryBound.retries
	if isConflict(failed) {
		r.conflicts++
		bound.max = bound.conflictMax
		bound.min = min(bound.min, bound.max)
		tried, most = r.conflicts, r.retryBound.conflicts
	}
	if r.owned {
		tried = r.made // the owner counts all alike
	}
	wait := bound.wait(tried)
	return wait, tried <= most && time.Since(r.began)+wait <= r.total
}

// givenUp is the error of a commit that was tried as often as it may be.
func (r *retries) givenUp(failed error) error {
	limit := fmt.Sprintf("the table's commit.retry.num-retries is %d", r.retryBound.retries)
	if !r.owned {
		limit = fmt.Sprintf("without commit.retry.num-retries in the table, %d after a failure and %d after a conflict", r.retryBound.retries, r.retryBound.conflicts)
	}
	if time.Since(r.began) > r.total/2 {
		limit += fmt.Sprintf(", commit.retry.total-timeout-ms %d", r.total.Milliseconds())
	}
	cure := "run again"
	if isConflict(failed) {
		cure = "another writer commits all the time: run again, or raise the table's commit.retry.num-retries"
	}
	return fmt.Errorf("commit, given up after %d tries (%s): %w; %s", r.made, limit, failed, cure)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
