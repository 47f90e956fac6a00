package rowdiff

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"icepipe/internal/rowform"
)

// A group is the rows of both sides that have one key.
type group struct {
	kinds []kind
	index map[uint64]int32 // of many kinds: the last one by the hash of its row
}

// A kind is rows with the same values.
type kind struct {
	row  []byte
	n    [2]int64
	next int32 // 1 + the kind before it that index has under the same hash
}

// fewKinds are looked through one by one.
const fewKinds = 8

func (g *group) add(side int, row []byte) {
	if i := g.find(row); i >= 0 {
		g.kinds[i].n[side]++
		return
	}
	k := kind{row: bytes.Clone(row)}
	k.n[side] = 1
	g.kinds = append(g.kinds, k)
	switch n := len(g.kinds); {
	case n == fewKinds+1: // a key that many rows share
		g.index = map[uint64]int32{}
		for i := range g.kinds {
			g.enter(i)
		}
	case n > fewKinds:
		g.enter(n - 1)
	}
}

func (g *group) enter(i int) {
	hash := xxh3.Hash(g.kinds[i].row)
	g.kinds[i].next = g.index[hash]
	g.index[hash] = int32(i) + 1
}

// find gives the kind of a row, -1 where there is none.
func (g *group) find(row []byte) int {
	if g.index == nil {
		return slices.IndexFunc(g.kinds, func(k kind) bool { return bytes.Equal(k.row, row) })
	}
	i := g.index[xxh3.Hash(row)]
	for i > 0 && !bytes.Equal(g.kinds[i-1].row, row) {
		i = g.kinds[i-1].next
	}
	return int(i) - 1
}

// agrees reports whether both sides have the same rows.
func (g *group) agrees() bool {
	return !slices.ContainsFunc(g.kinds, func(k kind) bool { return k.n[0] != k.n[1] })
}

// settle takes equal rows of both sides away.
func (g *group) settle() {
	for i := range g.kinds {
		k := &g.kinds[i]
		same := min(k.n[0], k.n[1])
		k.n[0] -= same
		k.n[1] -= same
	}
	g.kinds = slices.DeleteFunc(g.kinds, func(k kind) bool { return k.n[0]+k.n[1] == 0 })
}

// tell pairs what is left of the two sides: first what is equal or as good as equal, then what has changed, and
// what is left over is missing or too many.
func (g *group) tell(d *Diff, emit func(Difference) error) error {
	g.index = nil
	if len(d.Tolerance) > 0 {
		if err := g.pairNear(d); err != nil {
			return err
		}
	}
	g.settle()
	slices.SortFunc(g.kinds, func(a, b kind) int { return bytes.Compare(a.row, b.row) })
	if len(d.Keys) > 0 {
		if err := g.pairChanged(d, emit); err != nil {
			return err
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

// pairChanged pairs rows of the source with rows of the destination one after the other.
func (g *group) pairChanged(d *Diff, emit func(Difference) error) error {
	i, j := 0, 0
	for {
		for i < len(g.kinds) && g.kinds[i].n[0] == 0 {
			i++
		}
		for j < len(g.kinds) && g.kinds[j].n[1] == 0 {
			j++
		}
		if i == len(g.kinds) || j == len(g.kinds) {
			return nil
		}
		a, b := &g.kinds[i], &g.kinds[j]
		n := min(a.n[0], b.n[1])
		a.n[0] -= n
		b.n[1] -= n
		columns, err := d.columns(a.row, b.row)
		if err != nil {
			return err
		}
		if err := emit(Difference{Kind: Changed, Source: a.row, Dest: b.row, Columns: columns, Count: n}); err != nil {
			return err
		}
	}
}

// A loose is a kind by the columns that have a tolerance.
type loose struct {
	*kind
	rest   []byte    // its row without the numbers of those columns
	values []float64 // the numbers
}

// pairNear takes pairs away that are as good as equal. With a tolerance of one column it finds as many as there
// are: by going up on both sides, equal rows among the others, since one that is paired with its equal may be
// missing to another.
func (g *group) pairNear(d *Diff) error {
	if len(d.Tolerance) > 1 {
		g.settle() // with more than one there is no order to go by
	}
	var sides [2][]loose
	for i := range g.kinds {
		l, err := d.loosen(&g.kinds[i])
		if err != nil {
			return err
		}
		for side, n := range l.n {
			if n > 0 {
				sides[side] = append(sides[side], l)
			}
		}
	}
	for _, side := range sides {
		slices.SortFunc(side, func(a, b loose) int {
			return cmp.Or(bytes.Compare(a.rest, b.rest), slices.Compare(a.values, b.values))
		})
	}
	most := d.tolerances()
	from := 0 // what lies before is too low for this and all that follow
	for _, a := range sides[0] {
		for from < len(sides[1]) && (sides[1][from].n[1] == 0 || a.beyond(sides[1][from], most) > 0) {
			from++
		}
		for j := from; j < len(sides[1]) && a.n[0] > 0; j++ {
			b := sides[1][j]
			if a.beyond(b, most) < 0 {
				break
			}
			if a.near(b, most) {
				n := min(a.n[0], b.n[1])
				a.n[0] -= n
				b.n[1] -= n
			}
		}
	}
	return nil
}

// beyond is negative where b comes after all that is near to a, positive where it comes before.
func (a loose) beyond(b loose, most []float64) int {
	if c := bytes.Compare(a.rest, b.rest); c != 0 || len(a.values) == 0 || near(a.values[0], b.values[0], most[0]) {
		return c
	}
	return cmp.Compare(a.values[0], b.values[0])
}

func (a loose) near(b loose, most []float64) bool {
	for i := range a.values {
		if !near(a.values[i], b.values[i], most[i]) {
			return false
		}
	}
	return true
}

// tolerances are those of the columns in their order.
func (d *Diff) tolerances() []float64 {
	var out []float64
	for i := range d.Form.Fields {
		if most, ok := d.Tolerance[i]; ok {
			out = append(out, most)
		}
	}
	return out
}

// loosen takes the numbers with a tolerance out of a kind's row. Nulls, NaN and infinities stay: they are near to
// nothing but themselves.
func (d *Diff) loosen(k *kind) (loose, error) {
	cells, err := d.Form.Cells(k.row)
	if err != nil {
		return loose{}, err
	}
	l := loose{kind: k}
	for i, c := range cells {
		_, tolerated := d.Tolerance[i]
		x, ok := rowform.Double(c)
		if tolerated && ok && finite(x) {
			l.rest = append(l.rest, 2) // no form begins like this
		} else {
			l.rest = append(l.rest, c...)
			x = 0
		}
		if tolerated {
			l.values = append(l.values, x)
		}
	}
	return l, nil
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// near reports whether two numbers differ by most at most; infinities are near to nothing.
func near(x, y, most float64) bool { return finite(x) && finite(y) && math.Abs(x-y) <= most }
