package plan

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/apache/iceberg-go"
)

// An Action says what happens to a destination column.
type Action string

// The actions of a plan. What happens to the values of an added column its types say.
const (
	Take     Action = "take"      // the source column of that name, as it is
	Renamed  Action = "rename"    // a source column of another name, as it is
	Promote  Action = "promote"   // a source column, its values widened exactly
	Cast     Action = "cast"      // a source column, each value converted; what does not fit is named
	NullFill Action = "null-fill" // nothing in the source: null is written (PolicyNull)
	Default  Action = "default"   // nothing in the source: the write-default is written (PolicySkip)
	Skip     Action = "skip"      // nothing in the source, no write-default: null is written (PolicySkip)
	Add      Action = "add"       // a source column that the destination gets (PolicyAutoAdd)
)

// fills tells whether values come from no source column.
func (a Action) fills() bool { return a == NullFill || a == Default || a == Skip }

// A Plan is how source columns become destination columns. It is immutable once made.
type Plan struct {
	FormatVersion int      // of the destination
	SchemaID      int      // of the destination schema that it was made for
	Identifiers   []int    // identifier field IDs of that schema
	Settings      Options  // what the user asked for
	Columns       []Column // the destination's columns in its order, then those to add
	LeftOut       []Left   // source columns that go nowhere
	Changes       []Change // what the destination's schema needs first, in order
	Warnings      []string // what may go wrong, one line each

	// Destination describes the table that the plan was made for, so that it can be applied where no catalog
	// is; nil where it is not known. It is an object that whoever made the plan owns.
	Destination json.RawMessage
}

// A Column is a destination column at any depth and where its values come from.
type Column struct {
	Path   []string            // in the destination
	Target iceberg.NestedField // what the destination has, or will; ID 0 on a column not added yet
	Action Action

	Source         []string     // path in the source; nil when Action fills
	SourceType     iceberg.Type // of a primitive source column
	SourceRequired bool         // the source column is never null
	Was            iceberg.Type // the destination's type before it is promoted; nil when it stays

	// Fields are the fields of a struct in order, the element of a list, or the key and the value
	// of a map. A filled column has none.
	Fields []Column
}

// A Left is a source column that goes nowhere.
type Left struct {
	Path []string
	Type iceberg.Type
}

// A ChangeKind says what becomes of a destination column.
type ChangeKind string

// The kinds of schema changes.
const (
	AddColumn     ChangeKind = "add"     // a new optional column
	PromoteColumn ChangeKind = "promote" // a wider type for a column that is there
)

// A Change is one schema change that the destination needs before the first row. Path holds the
// names from the root, with element, key and value as the parts inside lists and maps. The field
// IDs in Type mean nothing: the table assigns them. Defaults are set on an added column only, and
// only where the destination's format version has them.
type Change struct {
	Kind           ChangeKind
	Path           []string
	Type           iceberg.Type
	Doc            string
	InitialDefault any
	WriteDefault   any
}

// WithPolicy returns the plan with another policy for values that do not fit: PolicyError, PolicyNull or
// PolicyReject; "" leaves it as it is.
func (p *Plan) WithPolicy(onCastError string) *Plan {
	out := *p
	out.Settings.OnCastError = cmp.Or(onCastError, p.Settings.OnCastError)
	return &out
}

// CastPolicy is what becomes of values that do not fit: PolicyError, PolicyNull or PolicyReject.
func (p *Plan) CastPolicy() string { return cmp.Or(p.Settings.OnCastError, PolicyError) }

// Target returns the schema of projected rows: the destination's with its changes made. Added
// columns have the field ID 0 until the plan is resolved.
func (p *Plan) Target() *iceberg.Schema {
	fields := make([]iceberg.NestedField, len(p.Columns))
	for i, c := range p.Columns {
		fields[i] = c.Target
	}
	return iceberg.NewSchemaWithIdentifiers(p.SchemaID, slices.Clone(p.Identifiers), fields...)
}

// changesOf lists what the columns change in the destination's schema.
func changesOf(columns []Column) []Change {
	var changes []Change
	for i := range columns {
		switch c := &columns[i]; {
		case c.Action == Add:
			changes = append(changes, Change{
				Kind: AddColumn, Path: c.Path, Type: c.Target.Type, Doc: c.Target.Doc,
				InitialDefault: c.Target.InitialDefault, WriteDefault: c.Target.WriteDefault,
			})
		case c.Was != nil:
			changes = append(changes, Change{Kind: PromoteColumn, Path: c.Path, Type: c.Target.Type})
		default:
			changes = append(changes, changesOf(c.Fields)...)
		}
	}
	return changes
}

// withFields returns t with its children replaced by the targets of columns.
func withFields(t iceberg.Type, columns []Column) iceberg.Type {
	switch t.(type) {
	case *iceberg.StructType:
		fields := make([]iceberg.NestedField, len(columns))
		for i, c := range columns {
			fields[i] = c.Target
		}
		return &iceberg.StructType{FieldList: fields}
	case *iceberg.ListType:
		e := columns[0].Target
		return &iceberg.ListType{ElementID: e.ID, Element: e.Type, ElementRequired: e.Required}
	case *iceberg.MapType:
		k, v := columns[0].Target, columns[1].Target
		return &iceberg.MapType{KeyID: k.ID, KeyType: k.Type, ValueID: v.ID, ValueType: v.Type, ValueRequired: v.Required}
	}
	return t
}

// children returns the fields of a nested type, nil for a primitive one.
func children(t iceberg.Type) []iceberg.NestedField {
	if n, ok := t.(iceberg.NestedType); ok {
		return n.Fields()
	}
	return nil
}
