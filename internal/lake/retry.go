package lake

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/apache/iceberg-go"
)

// Bounds of the commit loop where the table's commit.retry.* properties say nothing: Java's defaults.
const (
	commitTries   = 4
	commitMinWait = 100 * time.Millisecond
	commitMaxWait = 60 * time.Second
	commitTotal   = 30 * time.Minute
)

// Bounds of our own.
const (
	loadEvery = 8 // commits in a row that are gone on from without loading the table again

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
	retries  int
	min, max time.Duration
	total    time.Duration
}

func newRetryBound(p iceberg.Properties) retryBound {
	ms := func(key string, unset time.Duration) time.Duration {
		n := p.GetInt64(key, unset.Milliseconds())
		return time.Duration(min(max(n, 0), longestWait.Milliseconds())) * time.Millisecond
	}
	b := retryBound{
		retries: max(p.GetInt("commit.retry.num-retries", commitTries), 0),
		min:     ms("commit.retry.min-wait-ms", commitMinWait),
		max:     ms("commit.retry.max-wait-ms", commitMaxWait),
		total:   ms("commit.retry.total-timeout-ms", commitTotal),
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
