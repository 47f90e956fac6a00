package rowdiff

import (
	"bytes"
	"slices"
)

// A group is the rows of both sides that have one key.
type group struct{ kinds []kind }

// A kind is rows with the same values.
type kind struct {
	row []byte
	n   [2]int64
}

func (g *group) add(side int, row []byte) {
	for i := range g.kinds {
		if bytes.Equal(g.kinds[i].row, row) {
			g.kinds[i].n[side]++
			return
		}
	}
	k := kind{row: bytes.Clone(row)}
	k.n[side] = 1
	g.kinds = append(g.kinds, k)
}

// settle takes equal rows of both sides away, and reports whether none is left.
func (g *group) settle() bool {
	left := g.kinds[:0]
	for _, k := range g.kinds {
		same := min(k.n[0], k.n[1])
		k.n[0] -= same
		k.n[1] -= same
		if k.n[0]+k.n[1] > 0 {
			left = append(left, k)
		}
	}
	g.kinds = left
	return len(left) == 0
}

// tell pairs what is left of the two sides: first what is as good as equal, then what has changed, and what is
// left over is missing or too many.
func (g *group) tell(d *Diff, emit func(Difference) error) error {
	slices.SortFunc(g.kinds, func(a, b kind) int { return bytes.Compare(a.row, b.row) })
	for _, loose := range []bool{true, false} {
		if loose && len(d.Tolerance) == 0 || !loose && len(d.Keys) == 0 && len(d.Tolerance) == 0 {
			continue
		}
		for i := range g.kinds {
			for j := range g.kinds {
				a, b := &g.kinds[i], &g.kinds[j]
				n := min(a.n[0], b.n[1])
				if n == 0 {
					continue
				}
				columns, err := d.columns(a.row, b.row)
				if err != nil {
					return err
				}
				if loose && len(columns) > 0 {
					continue
				}
				a.n[0] -= n
				b.n[1] -= n
				if loose {
					continue
				}
				if err := emit(Difference{Kind: Changed, Source: a.row, Dest: b.row, Columns: columns, Count: n}); err != nil {
					return err
				}
			}
		}
	}
	for _, k := range g.kinds {
		if k.n[0] > 0 {
			if err := emit(Difference{Kind: Missing, Source: k.row, Count: k.n[0]}); err != nil {
				return err
			}
		}
		if k.n[1] > 0 {
			if err := emit(Difference{Kind: Extra, Dest: k.row, Count: k.n[1]}); err != nil {
				return err
			}
		}
	}
	return nil
}
