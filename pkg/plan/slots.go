package plan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A site is a place in the plan where a value may not fit.
type site struct {
	path     string // of the destination's column, in quotes
	plain    string // the same without
	nullable bool   // null may take the value's place
}

func siteOf(c *Column) site {
	name := c.Path[len(c.Path)-1]
	key := len(c.Path) > 1 && name == "key" && c.Target.Required
	return site{path: quote(c.Path), plain: FormatPath(c.Path), nullable: !c.Target.Required && !key}
}

// slots are those of an array that is being made out of another of the same length.
type slots struct {
	r     *run
	at    site
	n     int
	valid *memory.Buffer // of the array to make; nil: none is null
	nulls int
	dead  bitmap // slots whose values do not count, the null ones among them; nil: none
	own   bool   // valid is not shared
}

// slots begins the array that is made of in. It is to be ended, or left.
func (r *run) slots(in arrow.ArrayData, dead bitmap, at site) *slots {
	valid := validity(r, in)
	return &slots{r: r, at: at, n: in.Len(), valid: valid, nulls: nullCount(in, valid), dead: alsoNull(dead, valid, in.Len())}
}

// counts tells whether the value of a slot is seen by anybody.
func (s *slots) counts(i int) bool { return s.dead == nil || bitutil.BitIsNotSet(s.dead, i) }

// fail says that the value of slot i does not fit. It returns an error where that ends the projection;
// else the slot is null where it may be, and the caller puts anything in it.
func (s *slots) fail(i int, value func() string, rule string) error {
	if err := s.r.fail(s.at, i, value, rule); err != nil {
		return err
	}
	if !s.at.nullable { // its row is rejected
		return nil
	}
	if !s.own {
		fresh := s.r.buffer(int(bitutil.BytesForBits(int64(s.n))))
		if s.valid == nil {
			memory.Set(fresh.Bytes(), 0xff)
		} else {
			copy(fresh.Bytes(), s.valid.Bytes())
		}
		release(s.valid)
		s.valid, s.own = fresh, true
	}
	bitutil.ClearBit(s.valid.Bytes(), i)
	if s.nulls >= 0 { // else nobody has counted them
		s.nulls++
	}
	return nil
}

// end makes the array. It takes the buffers over.
func (s *slots) end(to arrow.DataType, buffers ...*memory.Buffer) arrow.ArrayData {
	defer s.leave()
	defer func() {
		for _, b := range buffers {
			release(b)
		}
	}()
	return array.NewData(to, s.n, append([]*memory.Buffer{s.valid}, buffers...), nil, s.nulls, 0)
}

// leave gives back what the slots hold.
func (s *slots) leave() {
	release(s.valid)
	s.valid = nil
}

// requiredStep is a step into a column that requires a value, from one that may hold null (case 28).
type requiredStep struct {
	then step // nil takes the values as they are
	at   site
}

func (requiredStep) checks() bool { return true }

func (s requiredStep) do(r *run, in arrow.ArrayData, dead bitmap) (arrow.ArrayData, error) {
	out := in
	if s.then == nil {
		in.Retain()
	} else {
		var err error
		if out, err = s.then.do(r, in, dead); err != nil {
			return nil, err
		}
	}
	if err := s.check(r, out, dead); err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}

func (s requiredStep) check(r *run, out arrow.ArrayData, dead bitmap) error {
	if out.NullN() == 0 || out.Buffers()[0] == nil || out.Buffers()[0].Len() == 0 {
		return nil
	}
	valid := out.Buffers()[0].Bytes()
	for i := range out.Len() {
		if bitutil.BitIsSet(valid, out.Offset()+i) || dead != nil && bitutil.BitIsSet(dead, i) {
			continue
		}
		if err := r.fail(s.at, i, func() string { return "null" }, "where a value is required"); err != nil {
			return err
		}
	}
	return nil
}
