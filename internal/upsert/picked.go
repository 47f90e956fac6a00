package upsert

import (
	"context"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"icepipe/internal/lake"
)

// picked are rows of a record batch that are to be written, with the row IDs that they keep, negative for
// none.
type picked struct {
	rows []int32
	ids  []int64
}

func (p *picked) add(row int, id int64) {
	p.rows, p.ids = append(p.rows, int32(row)), append(p.ids, id)
}

// write gives the rows to write, in the source's order.
func (p *picked) write(ctx context.Context, rec arrow.RecordBatch, lineage bool, write func(arrow.RecordBatch) error) error {
	if len(p.rows) == 0 {
		return nil
	}
	sort.Stable(p)
	ids := p.ids
	if !lineage {
		ids = nil
	}
	out, err := lake.Chosen(ctx, rec, p.rows, ids)
	if err != nil {
		return err
	}
	defer out.Release()
	return write(out)
}

func (p *picked) Len() int           { return len(p.rows) }
func (p *picked) Less(i, j int) bool { return p.rows[i] < p.rows[j] }
func (p *picked) Swap(i, j int) {
	p.rows[i], p.rows[j] = p.rows[j], p.rows[i]
	p.ids[i], p.ids[j] = p.ids[j], p.ids[i]
}
