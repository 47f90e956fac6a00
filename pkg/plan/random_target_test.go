package plan

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// mutate makes a destination out of a source: other order, names, wider types, columns more and
// less. It returns the fields and notes the mapping that leads back.
func (m *maker) mutate(src []iceberg.NestedField, sp, dp []string, inKey bool, o *Options) []iceberg.NestedField {
	var dst []iceberg.NestedField
	for _, f := range src {
		if !inKey && m.chance(0.15) {
			continue // auto_add brings it
		}
		d := iceberg.NestedField{Name: f.Name, Required: f.Required && m.chance(0.5)}
		from := join(sp, f.Name)
		if m.chance(0.2) {
			d.Name = m.name()
			o.Mapping = append(o.Mapping, Rename{FormatPath(from), FormatPath(join(dp, d.Name))})
		}
		d.Type = m.mutateType(f.Type, from, join(dp, d.Name), inKey, o)
		dst = append(dst, d)
	}
	for range m.n(3) {
		d := iceberg.NestedField{Name: m.name(), Type: arrowReaderType(m.typ(2))}
		dst = append(dst, d)
	}
	m.rng.Shuffle(len(dst), func(i, j int) { dst[i], dst[j] = dst[j], dst[i] })
	return dst
}

func arrowReaderType(t arrow.DataType) iceberg.Type {
	f, err := (&arrowReader{}).field(arrow.Field{Type: t, Nullable: true}, []string{"x"})
	if err != nil {
		panic(err)
	}
	return f.Type
}

func (m *maker) mutateType(t iceberg.Type, sp, dp []string, inKey bool, o *Options) iceberg.Type {
	switch t := t.(type) {
	case *iceberg.StructType:
		return &iceberg.StructType{FieldList: m.mutate(t.FieldList, sp, dp, inKey, o)}
	case *iceberg.ListType:
		return &iceberg.ListType{Element: m.mutateType(t.Element, join(sp, "element"), join(dp, "element"), inKey, o)}
	case *iceberg.MapType:
		return &iceberg.MapType{
			KeyType:   m.mutateType(t.KeyType, join(sp, "key"), join(dp, "key"), true, o),
			ValueType: m.mutateType(t.ValueType, join(sp, "value"), join(dp, "value"), inKey, o),
		}
	}
	if m.casts && m.chance(0.7) {
		for range 20 {
			to := castTargets[m.n(len(castTargets))]
			if r := ruleOf(t, to, 3, true); r.answer != AnswerRefuse && (!inKey || !r.joins) && r.answer != AnswerPromote {
				return to
			}
		}
	}
	for _, wider := range []iceberg.Type{iceberg.Int64Type{}, iceberg.Float64Type{}, iceberg.DecimalTypeOf(38, 2), iceberg.DecimalTypeOf(38, 5),
		iceberg.TimestampType{}, iceberg.TimestampNsType{}, iceberg.StringType{}} {
		if promotes(t, wider, 3) && m.chance(0.5) {
			return wider
		}
	}
	return t
}

// castTargets are types that casts of random plans go to.
var castTargets = []iceberg.Type{iceberg.BooleanType{}, iceberg.Int32Type{}, iceberg.Int64Type{}, iceberg.Float32Type{}, iceberg.Float64Type{},
	iceberg.DecimalTypeOf(9, 2), iceberg.DecimalTypeOf(38, 10), iceberg.DecimalTypeOf(4, 0), iceberg.DateType{}, iceberg.TimeType{}, iceberg.TimestampType{},
	iceberg.TimestampTzType{}, iceberg.TimestampNsType{}, iceberg.TimestampTzNsType{}, iceberg.StringType{}, iceberg.UUIDType{}, iceberg.FixedTypeOf(3),
	iceberg.FixedTypeOf(16), iceberg.BinaryType{}}

// withIDs gives every field an ID of its own.
func withIDs(fields []iceberg.NestedField, next *int) []iceberg.NestedField {
	out := make([]iceberg.NestedField, len(fields))
	id := func() int { *next++; return *next }
	var typ func(t iceberg.Type) iceberg.Type
	typ = func(t iceberg.Type) iceberg.Type {
		switch t := t.(type) {
		case *iceberg.StructType:
			return &iceberg.StructType{FieldList: withIDs(t.FieldList, next)}
		case *iceberg.ListType:
			return &iceberg.ListType{ElementID: id(), Element: typ(t.Element), ElementRequired: t.ElementRequired}
		case *iceberg.MapType:
			return &iceberg.MapType{KeyID: id(), KeyType: typ(t.KeyType), ValueID: id(), ValueType: typ(t.ValueType), ValueRequired: t.ValueRequired}
		}
		return t
	}
	for i, f := range fields {
		f.ID, f.Type = id(), typ(f.Type)
		out[i] = f
	}
	return out
}
