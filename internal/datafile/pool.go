package datafile

import (
	"sync"
)

// pool encodes columns: each column's work is done in order, by one worker at a time; different
// columns go side by side. What waits is bounded by bytes.
type pool struct {
	mu      sync.Mutex
	changed *sync.Cond
	columns []poolColumn
	waiting int64 // bytes of arrays not yet encoded
	bound   int64
	closed  bool
	err     error // the first failure: what comes after it is only given back
	workers sync.WaitGroup
}

type poolColumn struct {
	enc   *Encoder
	queue []task
	busy  bool
}

// task is rows to encode, or the end of a row group.
type task struct {
	rows   *gathered
	column int // of rows
	span   span
	weight int64

	from     *taking // instead of rows: what is taken of those from first on, n of them, of its column
	first, n int64
	kept     int64 // how many that is

	end   *rowGroup // instead of rows
	index int       // of the column in it
}

// startPool starts workers; stop waits for them.
func startPool(jobs int, bound int64, encoders []*Encoder) *pool {
	p := &pool{bound: bound}
	p.changed = sync.NewCond(&p.mu)
	for _, e := range encoders {
		p.columns = append(p.columns, poolColumn{enc: e})
	}
	for range min(jobs, len(encoders)) {
		p.workers.Go(p.work)
	}
	return p
}

// submit queues a task of a column. It waits while too many bytes are queued.
func (p *pool) submit(column int, t task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t.weight > 0 && p.waiting > 0 && p.waiting+t.weight > p.bound {
		p.changed.Wait()
	}
	p.waiting += t.weight
	p.columns[column].queue = append(p.columns[column].queue, t)
	p.changed.Broadcast()
}

// next gives the column that is the farthest behind, or none when all is done and over.
func (p *pool) next() (*poolColumn, task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var c *poolColumn
		for i := range p.columns {
			o := &p.columns[i]
			if !o.busy && len(o.queue) > 0 && (c == nil || len(o.queue) > len(c.queue)) {
				c = o
			}
		}
		if c != nil {
			t := c.queue[0]
			c.queue[0] = task{}
			c.queue = c.queue[1:]
			c.busy = true
			return c, t, true
		}
		if p.closed && p.idle() {
			return nil, task{}, false
		}
		p.changed.Wait()
	}
}

func (p *pool) idle() bool {
	for i := range p.columns {
		if len(p.columns[i].queue) > 0 {
			return false
		}
	}
	return true
}

func (p *pool) work() {
	d := decodedRuns.Get().(*decoded) // buffers of this worker
	defer d.giveBack()
	for {
		c, t, ok := p.next()
		if !ok {
			return
		}
		err := p.failure()
		if err == nil {
			err = t.run(c.enc, d)
		}
		if err != nil {
			p.fail(err)
			c.enc.Discard()
			if t.end != nil {
				t.end.done(t.index, nil)
			}
			if t.from != nil {
				t.from.fail(t.column, err)
			}
		}
		if t.rows != nil {
			t.rows.drop()
		}
		if t.from != nil {
			t.from.drop()
		}
		p.mu.Lock()
		c.busy = false
		p.waiting -= t.weight
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// run does the task, with d's buffers; on failure a row group's end is not told, which the caller does.
func (t task) run(e *Encoder, d *decoded) error {
	e.lend(&d.packed)
	defer e.lend(nil)
	if t.from != nil {
		return e.take(t.from.columns[t.column], t.first, t.n, t.kept, d)
	}
	if t.end == nil {
		arr, err := t.rows.column(t.column)
		if err != nil {
			return err
		}
		return e.append(arr, t.span)
	}
	chunks, err := e.Finish()
	if err != nil {
		return err
	}
	t.end.done(t.index, chunks)
	return nil
}

func (p *pool) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

func (p *pool) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// stop waits until all that was submitted is done, and ends the workers.
func (p *pool) stop() {
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	p.workers.Wait()
}
