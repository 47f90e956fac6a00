package datafile

import (
	"errors"
	"fmt"
	"sync"

	"github.com/apache/iceberg-go"

	"icepipe/internal/crash"
)

// errAborted ends the work of a batch that was given up.
var errAborted = errors.New("writing was aborted")

const (
	// pieceRows is how many rows are given to an encoder at a time: enough to be worth the way,
	// few enough that columns share the workers evenly.
	pieceRows = 32 << 10
	// waitingBytes bounds what is queued for encoders, so that a slow column does not let the others
	// run ahead with the record batches that it still needs.
	waitingBytes = 8 << 20
	// groupsAhead is how many row groups may wait for the one that is written to its file.
	groupsAhead = 1
)

// batch is the making of the files of one batch: encoders side by side, and one goroutine that
// assembles files. Whoever started it waits for it (wait).
type batch struct {
	plan   *plan
	pool   *pool
	places places
	groups chan *rowGroup
	writer sync.WaitGroup

	all       []int     // columns
	open      *rowGroup // takes rows
	openBytes int64
	limit     int64 // of openBytes

	file     *File // the one that is open
	location string
	filePart *partition
	fileSort int
	files    []iceberg.DataFile
	bytes    Bytes // of files
	err      error // of the assembler
}

// rowGroup is a row group on its way to a file.
type rowGroup struct {
	rows    int64
	part    *partition
	shape   *Shape // of its file; nil: the plan's
	sortID  int
	endFile bool // no row group of the same file comes behind

	chunks  [][]Chunk // by column
	pending sync.WaitGroup
}

// done takes a column's chunks; nil after a failure.
func (g *rowGroup) done(i int, chunks []Chunk) {
	g.chunks[i] = chunks
	g.pending.Done()
}

// announce tells a file that it begins with a row group some of whose pages may be copied by its store.
func (g *rowGroup) announce(out Output) error {
	to, ok := out.(composer)
	if !ok {
		return nil
	}
	for _, cs := range g.chunks {
		for _, c := range cs {
			if from, ok := c.body.(*fileRange); ok {
				_, err := to.CopyRange(from.source.at, 0, 0)
				return err
			}
		}
	}
	return nil
}

func startBatch(p *plan, encoders []*Encoder) *batch {
	b := &batch{
		plan:   p,
		pool:   startPool(p.cfg.Jobs, waitingBytes, encoders),
		places: places{fs: p.cfg.FS},
		groups: make(chan *rowGroup, groupsAhead),
		// A target below the size of a row group is met by smaller row groups, of which files take
		// several, as what goes in shrinks.
		limit: min(p.settings.rowGroupSize, p.cfg.RowGroupBytes, max(p.settings.targetSize, 64<<10)),
	}
	for i := range p.shape.columns {
		b.all = append(b.all, i)
	}
	b.writer.Go(b.assemble)
	return b
}

// add encodes rows of g into the open row group of a partition, and ends row groups as they fill.
// Consecutive calls with the same partition, without end between them, go on in the same file.
func (b *batch) add(g *gathered, v span, part *partition, sortID int) {
	perRow := max(1, g.bytes/max(1, g.rows))
	for at := 0; at < v.n; {
		if b.open == nil {
			b.open, b.openBytes = &rowGroup{part: part, sortID: sortID}, 0
		}
		fits := max(1, (b.limit-b.openBytes)/perRow)
		n := int(min(fits, pieceRows, int64(v.n-at)))
		weight := int64(n) * perRow
		for i, c := range b.plan.shape.columns {
			g.hold()
			b.pool.submit(i, task{rows: g, column: c.index, span: v.sub(at, n), weight: 1 + weight/int64(len(b.plan.shape.columns))})
		}
		at += n
		b.open.rows += int64(n)
		if b.openBytes += weight; b.openBytes >= b.limit {
			b.endGroup(false)
		}
	}
}

// endGroup ends the open row group, and with it its file where that is asked for.
func (b *batch) endGroup(endFile bool) {
	g := b.open
	b.open = nil
	if g == nil {
		if endFile {
			b.groups <- &rowGroup{endFile: true}
		}
		return
	}
	g.endFile = endFile
	columns := len(b.plan.shape.columns)
	g.chunks = make([][]Chunk, columns)
	g.pending.Add(columns)
	for i := range columns {
		b.pool.submit(i, task{end: g, index: i})
	}
	b.groups <- g
}

// assemble writes row groups into files, in order.
func (b *batch) assemble() {
	for g := range b.groups {
		g.pending.Wait()
		if b.err == nil {
			b.err = b.pool.failure()
		}
		if b.err == nil {
			b.err = b.assembleGroup(g)
			if b.err != nil {
				b.pool.fail(b.err)
			}
		}
		for _, cs := range g.chunks {
			for _, c := range cs {
				c.Release()
			}
		}
	}
	if b.file != nil {
		_ = b.file.Abort() // only left open by a failure
	}
}

func (b *batch) assembleGroup(g *rowGroup) error {
	if g.shape == nil {
		g.shape = b.plan.shape
	}
	if g.rows > 0 {
		if b.file != nil && !b.continues(g) {
			if err := b.close(); err != nil {
				return err
			}
		}
		if b.file == nil {
			if err := b.create(g); err != nil {
				return err
			}
		}
		if err := b.write(g); err != nil {
			return fmt.Errorf("write %s: %w", b.location, err)
		}
	}
	if b.file != nil && (g.endFile || b.file.Pos() >= b.plan.settings.targetSize) {
		return b.close()
	}
	return nil
}

// continues reports whether a row group may stand in the open file.
func (b *batch) continues(g *rowGroup) bool {
	return b.file.shape == g.shape && b.fileSort == g.sortID && (b.plan.part.plain || b.plan.part.key(b.filePart) == b.plan.part.key(g.part))
}

func (b *batch) create(g *rowGroup) error {
	b.location = fileLocation(b.plan.cfg, b.plan.base, g.part.folder, b.plan.fileName())
	out, err := b.places.create(b.location)
	if err != nil {
		return fmt.Errorf("create %s: %w", b.location, err)
	}
	crash.Here("datafile.created")
	if err := g.announce(out); err != nil {
		return fmt.Errorf("write %s: %w", b.location, errors.Join(err, out.Abort()))
	}
	b.filePart, b.fileSort = g.part, g.sortID
	if b.file, err = Create(out, g.shape); err != nil {
		return fmt.Errorf("write %s: %w", b.location, err)
	}
	return nil
}

func (b *batch) write(g *rowGroup) error {
	if err := b.file.RowGroup(g.rows); err != nil {
		return err
	}
	for i, cs := range g.chunks {
		g.chunks[i] = nil
		for j, c := range cs {
			if err := b.file.Add(c); err != nil {
				for _, c := range cs[j+1:] {
					c.Release()
				}
				return err
			}
		}
	}
	return nil
}

func (b *batch) close() error {
	f := b.file
	b.file = nil
	footer, size, err := f.Close()
	if err != nil {
		return fmt.Errorf("write %s: %w", b.location, err)
	}
	crash.Here("datafile.closed")
	df, err := dataFile(b.plan.cfg, f.shape, finished{
		location: b.location, size: size, footer: footer, unsure: f.unsure, part: b.filePart, sortID: b.fileSort,
	})
	if err != nil {
		return err
	}
	b.bytes = b.bytes.Plus(f.bytes)
	b.files = append(b.files, df)
	return nil
}

// wait ends the batch: its files in order, on disk, or the first failure. It returns when no goroutine
// of the batch is left.
func (b *batch) wait() ([]iceberg.DataFile, error) {
	close(b.groups)
	b.writer.Wait()
	b.pool.stop()
	if b.err == nil {
		b.err = b.pool.failure()
	}
	if b.err == nil {
		b.err = b.places.sync()
	}
	if b.err != nil {
		return nil, b.err
	}
	crash.Here("datafile.written")
	return b.files, nil
}
