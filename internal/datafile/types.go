package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// checkTypes says whether record batches of an Arrow schema have the columns, in order, by name and
// with the Arrow types that table.SchemaToArrowSchema gives for the table's schema. Large strings and
// large binaries pass for plain ones; nullability and metadata do not count.
func (c *checker) checkTypes(s *arrow.Schema) error {
	if s == c.seen {
		return nil
	}
	if s.NumFields() != len(c.fields) {
		return fmt.Errorf("record batch has %d columns, the table has %d", s.NumFields(), len(c.fields))
	}
	for i, f := range c.fields {
		if err := f.checkType(s.Field(i), true); err != nil {
			return err
		}
	}
	c.seen = s
	return nil
}

func (c *checked) checkType(f arrow.Field, named bool) error {
	if named && f.Name != c.field.Name {
		return fmt.Errorf("record batch has column %q where the table has %q", f.Name, c.path)
	}
	t := f.Type
	ok := false
	switch want := c.field.Type.(type) {
	case *iceberg.StructType:
		st, is := t.(*arrow.StructType)
		if !is {
			break
		}
		if st.NumFields() != len(c.kids) {
			return fmt.Errorf("column %q: record batch has a struct of %d fields, the table has %d", c.path, st.NumFields(), len(c.kids))
		}
		for i, k := range c.kids {
			if err := k.checkType(st.Field(i), true); err != nil {
				return err
			}
		}
		return nil
	case *iceberg.ListType:
		if l, is := t.(*arrow.ListType); is {
			return c.kids[0].checkType(l.ElemField(), false)
		}
	case *iceberg.MapType:
		if m, is := t.(*arrow.MapType); is {
			if err := c.kids[0].checkType(m.KeyField(), false); err != nil {
				return err
			}
			return c.kids[1].checkType(m.ItemField(), false)
		}
	default:
		ok = holds(t, want)
	}
	if !ok {
		return fmt.Errorf("column %q: record batch has Arrow type %s, which is not what %s is written from", c.path, t, c.field.Type)
	}
	return nil
}

// holds reports whether an Arrow type is what a primitive type is written from.
func holds(t arrow.DataType, want iceberg.Type) bool {
	stamp := func(unit arrow.TimeUnit, zoned bool) bool {
		ts, is := t.(*arrow.TimestampType)
		return is && ts.Unit == unit && (ts.TimeZone != "") == zoned
	}
	fixed := func(width int) bool {
		f, is := t.(*arrow.FixedSizeBinaryType)
		return is && f.ByteWidth == width
	}
	switch want := want.(type) {
	case iceberg.BooleanType:
		return t.ID() == arrow.BOOL
	case iceberg.Int32Type:
		return t.ID() == arrow.INT32
	case iceberg.Int64Type:
		return t.ID() == arrow.INT64
	case iceberg.Float32Type:
		return t.ID() == arrow.FLOAT32
	case iceberg.Float64Type:
		return t.ID() == arrow.FLOAT64
	case iceberg.DateType:
		return t.ID() == arrow.DATE32
	case iceberg.TimeType:
		tt, is := t.(*arrow.Time64Type)
		return is && tt.Unit == arrow.Microsecond
	case iceberg.TimestampType:
		return stamp(arrow.Microsecond, false)
	case iceberg.TimestampTzType:
		return stamp(arrow.Microsecond, true)
	case iceberg.TimestampNsType:
		return stamp(arrow.Nanosecond, false)
	case iceberg.TimestampTzNsType:
		return stamp(arrow.Nanosecond, true)
	case iceberg.StringType:
		return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING
	case iceberg.BinaryType:
		return t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY
	case iceberg.UUIDType:
		_, is := t.(*extensions.UUIDType)
		return is || fixed(16)
	case iceberg.FixedType:
		return fixed(want.Len())
	case iceberg.DecimalType:
		d, is := t.(*arrow.Decimal128Type)
		return is && int(d.Precision) == want.Precision() && int(d.Scale) == want.Scale()
	case iceberg.UnknownType:
		return t.ID() == arrow.NULL
	}
	return false
}
