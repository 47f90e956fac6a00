package datafile

import (
	"errors"
	"fmt"

	"icepipe/pkg/rows"
)

// A CopyMode says whether column chunks are copied.
type CopyMode int8

const (
	CopyNever   CopyMode = iota
	CopyAuto             // where it can be done
	CopyRequire          // or not at all: a row group that is not copied whole is an error
)

// Copy says which column chunks of source files are copied as they are.
type Copy struct {
	Mode     CopyMode
	Promoted bool // those of promoted columns too, in their old type
	// Rows is how many rows a row group below 1 MiB must have to be copied: those of fewer are
	// put together with their neighbours. CopyRequire takes all.
	Rows int64
}

const (
	// smallGroup is below what a row group costs its readers more than its bytes do.
	smallGroup = 1 << 20
	// takenBytes is how much of a row group beside copied chunks may be encoded anew: its pages are held
	// until the row group is written.
	takenBytes = 16 << 20
)

// errNoCopy is the reason why nothing is copied that was not to be.
var errNoCopy = errors.New("copying is not asked for")

// A copying is how a row group of a file becomes one of the output.
type copying struct {
	layout *Shape // of its file
	part   *partition
	copied [][]int    // by column that is stored: the leaves to copy, nil for those that are taken
	taken  *rows.Part // the others
}

// copying says how a part is copied, or why it is not.
func (p *plan) copying(part *rows.Part) (*copying, error) {
	c := p.cfg.Copy
	if c.Mode == CopyNever {
		return nil, errNoCopy
	}
	source, ok := part.File.(*Source)
	if !ok || len(part.Leaves) != len(p.shape.fields) {
		return nil, errors.New("it is not from a file")
	}
	out, err := p.copyingOf(source, part)
	if err != nil {
		return nil, fmt.Errorf("file %q, row group %d cannot be copied: %w", source.Path, part.Ordinal, err)
	}
	return out, nil
}

func (p *plan) copyingOf(source *Source, part *rows.Part) (*copying, error) {
	n := part.GroupRows
	switch {
	case p.sort.sorts():
		return nil, errors.New("the destination has a sort order, and its rows are to be sorted")
	case part.Mask != nil:
		return nil, errors.New("some of its rows are deleted, or do not pass the filter")
	case !part.Whole():
		return nil, errors.New("its rows go into more than one batch; --batch-rows auto makes batches of whole row groups")
	}
	if p.cfg.Copy.Mode == CopyAuto && n < p.cfg.Copy.Rows && groupBytes(source, part.Ordinal) < smallGroup {
		return nil, errors.New("it is small, and is put together with its neighbours")
	}
	out := &copying{copied: make([][]int, len(p.shape.columns))}
	fit := fitting{plan: p, source: source, group: part.Ordinal, rows: n}
	taken := *part
	taken.Leaves = make([]int, len(part.Leaves))
	takes, copies := int64(0), false
	for i, f := range p.shape.fields {
		taken.Leaves[i] = rows.Nulls
		leaves, err := fit.column(f, part.Leaves[i], nestedOf(part, i))
		switch {
		case err == nil && leaves == nil:
		case err == nil:
			out.copied[f.column] = leaves
			copies = true
		case p.cfg.Copy.Mode == CopyRequire || !f.takes(part.Leaves[i], source.Reader.MetaData(), source.Reader.MetaData().RowGroup(part.Ordinal)):
			return nil, fmt.Errorf("column %q: %w", f.path, err)
		default:
			taken.Leaves[i] = part.Leaves[i]
			if chunk, err := source.Reader.MetaData().RowGroup(part.Ordinal).ColumnChunk(part.Leaves[i]); err == nil {
				takes += chunk.TotalCompressedSize()
			}
		}
	}
	switch {
	case !copies:
		return nil, errors.New("none of its columns can be")
	case takes > takenBytes:
		return nil, fmt.Errorf("%d bytes of its columns are to be written anew, which memory is not to hold", takes)
	}
	var err error
	if out.part, err = p.part.sure(source, part); err != nil {
		return nil, err
	}
	out.taken = &taken
	out.layout, err = fit.layout()
	return out, err
}

func nestedOf(p *rows.Part, i int) []int {
	if p.Nested == nil {
		return nil
	}
	return p.Nested[i]
}

// groupBytes are the bytes of a row group in its file.
func groupBytes(source *Source, group int) int64 {
	n := int64(0)
	for _, c := range source.Reader.MetaData().RowGroups[group].Columns {
		if c.MetaData != nil {
			n += c.MetaData.TotalCompressedSize
		}
	}
	return n
}

// chunks are the copied chunks of a column, which hold the source.
func (c *copying) chunks(leaves []int, first int, part *rows.Part, stop func() error) []Chunk {
	var out []Chunk
	for i, leaf := range leaves {
		out = append(out, copiedChunk(part.File.(*Source), part.Ordinal, leaf, &c.layout.Leaves[first+i], first+i, stop))
	}
	return out
}

// copy hands a row group on that is copied, and queues what of it is taken.
func (b *batch) copy(c *copying, part *rows.Part) {
	b.endGroup(false) // rows before it
	g := &rowGroup{rows: part.GroupRows, part: c.part, shape: c.layout, chunks: make([][]Chunk, len(c.copied))}
	var columns []int
	for i, leaves := range c.copied {
		if leaves == nil {
			columns = append(columns, i)
			continue
		}
		g.chunks[i] = c.chunks(leaves, b.plan.shape.columns[i].firstLeaf(), part, b.pool.failure)
	}
	if len(columns) > 0 {
		t := newTaking(b.plan, c.taken)
		for t.next < part.GroupRows {
			b.taken(t, columns, min(pieceRows, part.GroupRows-t.next))
		}
		t.drop()
	}
	g.pending.Add(len(columns))
	for _, i := range columns {
		b.pool.submit(i, task{end: g, index: i})
	}
	b.groups <- g
}

// firstLeaf is the first leaf of a column that is stored, in Shape.Leaves.
func (n *node) firstLeaf() int {
	for n.kind != leafNode {
		for _, k := range n.kids {
			if k.stored {
				n = k
				break
			}
		}
	}
	return n.leaf
}
