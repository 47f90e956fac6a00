package datafile

import (
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// A ValueError says which value of a record batch the table cannot hold.
type ValueError struct {
	Column string // full name, dotted
	Row    int64  // in the record batch
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("column %q, row %d: %s", e.Column, e.Row, e.Reason)
}

// CheckValues looks for a value that a table of the schema cannot hold and returns it as a
// *ValueError: a null where a value is required, at any depth, provided that what it is part of is
// there (case 28); a decimal that does not fit its precision (case 29). The batch has the schema's
// columns in its order; one that has not is an error of another kind.
func CheckValues(s *iceberg.Schema, batch arrow.RecordBatch) error {
	c := newChecker(s)
	if err := c.checkTypes(batch.Schema()); err != nil {
		return err
	}
	return c.check(batch)
}

// checker looks at the values of record batches of one schema.
type checker struct {
	fields []*checked
	seen   *arrow.Schema // found right last
}

// checked is a field, and what there is to check at it.
type checked struct {
	field     iceberg.NestedField
	path      string
	precision int // of a decimal; 0: none
	kids      []*checked
	idle      bool // nothing to check here and below
}

func newChecker(s *iceberg.Schema) *checker {
	return &checker{fields: checkedFields(s.Fields(), "")}
}

func checkedFields(fields []iceberg.NestedField, path string) []*checked {
	out := make([]*checked, len(fields))
	for i, f := range fields {
		c := &checked{field: f, path: join(path, f.Name)}
		switch t := f.Type.(type) {
		case iceberg.DecimalType:
			c.precision = t.Precision()
		case *iceberg.StructType:
			c.kids = checkedFields(t.FieldList, c.path)
		case *iceberg.ListType:
			c.kids = checkedFields([]iceberg.NestedField{t.ElementField()}, c.path)
		case *iceberg.MapType:
			c.kids = checkedFields([]iceberg.NestedField{t.KeyField(), t.ValueField()}, c.path)
		}
		c.idle = !f.Required && c.precision == 0
		for _, k := range c.kids {
			c.idle = c.idle && k.idle
		}
		out[i] = c
	}
	return out
}

func (c *checker) check(batch arrow.RecordBatch) error {
	for i, f := range c.fields {
		if err := f.check(batch.Column(i), nil, func(i int) int { return i }); err != nil {
			return err
		}
	}
	return nil
}

// check looks at an array. there says which of its places belong to a value that is there, nil: all.
// row gives the row of a place.
func (c *checked) check(arr arrow.Array, there []bool, row func(int) int) error {
	if c.idle || arr.Len() == 0 {
		return nil
	}
	nulls := arr.NullN() > 0
	if c.field.Required && nulls {
		for i := range arr.Len() {
			if arr.IsNull(i) && (there == nil || there[i]) {
				return &ValueError{Column: c.path, Row: int64(row(i)), Reason: "null where a value is required"}
			}
		}
	}
	switch a := storage(arr).(type) {
	case *array.Decimal128:
		return c.checkDecimals(a, there, row)
	case *array.Struct:
		there = narrow(a, there)
		for i, k := range c.kids {
			if err := k.check(a.Field(i), there, row); err != nil {
				return err
			}
		}
	case *array.Map:
		return c.checkElements(a.List, []arrow.Array{a.Keys(), a.Items()}, there, row)
	case *array.List:
		return c.checkElements(a, []arrow.Array{a.ListValues()}, there, row)
	}
	return nil
}

// narrow adds an array's own nulls to what is not there.
func narrow(arr arrow.Array, there []bool) []bool {
	if arr.NullN() == 0 {
		return there
	}
	out := make([]bool, arr.Len())
	for i := range out {
		out[i] = arr.IsValid(i) && (there == nil || there[i])
	}
	return out
}

func (c *checked) checkElements(l *array.List, kids []arrow.Array, there []bool, row func(int) int) error {
	if !c.worthLooking(kids) {
		return nil
	}
	there = narrow(l, there)
	offsets := l.Offsets()[l.Data().Offset() : l.Data().Offset()+l.Len()+1]
	below := make([]bool, kids[0].Len())
	for i := range l.Len() {
		if there == nil || there[i] {
			for e := offsets[i]; e < offsets[i+1]; e++ {
				below[e] = true
			}
		}
	}
	rowBelow := func(e int) int {
		return row(sort.Search(l.Len(), func(i int) bool { return int(offsets[i+1]) > e }))
	}
	for i, k := range c.kids {
		if err := k.check(kids[i], below, rowBelow); err != nil {
			return err
		}
	}
	return nil
}

// worthLooking reports whether elements can be wrong at all: a plain one only by being null.
func (c *checked) worthLooking(kids []arrow.Array) bool {
	for i, k := range c.kids {
		if !k.idle && (k.precision > 0 || len(k.kids) > 0 || kids[i].NullN() > 0) {
			return true
		}
	}
	return false
}

func (c *checked) checkDecimals(a *array.Decimal128, there []bool, row func(int) int) error {
	limit := decimal128.GetScaleMultiplier(c.precision) // 10^precision
	low := limit.Negate()
	small := c.precision <= 18
	edge := int64(limit.LowBits())
	for i, v := range a.Values() {
		if small {
			// In 64 bits: the high half only repeats the sign.
			lo := int64(v.LowBits())
			if v.HighBits() == lo>>63 && lo < edge && lo > -edge {
				continue
			}
		} else if v.Less(limit) && low.Less(v) {
			continue
		}
		if a.IsNull(i) || there != nil && !there[i] {
			continue
		}
		scale := a.DataType().(*arrow.Decimal128Type).Scale
		return &ValueError{Column: c.path, Row: int64(row(i)), Reason: fmt.Sprintf("%s does not fit %s", v.ToString(scale), c.field.Type)}
	}
	return nil
}
