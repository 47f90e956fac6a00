package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/pkg/plan"
)

// Evolve makes the schema changes that a plan needs and the table does not have yet, as one commit of
// metadata alone that asserts the schema and the last field ID it was made on. It returns the changes
// it made, for people. An answer that is not success is settled by loading the table again: changes
// that are there are done.
func (t *Table) Evolve(ctx context.Context, changes []plan.Change) ([]string, error) {
	bound := newRetryBound(t.Properties())
	var made []string
	for try := 1; ; try++ {
		e := evolution{next: t.Metadata().LastColumnID(), version: t.Metadata().Version(), adds: map[int][]iceberg.NestedField{}}
		fields, missing, err := e.apply(t.Schema(), changes)
		if err != nil {
			return nil, fmt.Errorf("schema of table %q: %w", t.Name(), err)
		}
		if len(missing) == 0 {
			return made, nil
		}
		made = missing
		failed := t.evolveOnce(ctx, fields, &e)
		if failed == nil {
			return made, nil
		}
		if err := t.Reload(context.WithoutCancel(ctx)); err != nil {
			return nil, errors.Join(fmt.Errorf("change the schema of table %q: %w", t.Name(), failed), err)
		}
		if try > bound.retries || ctx.Err() != nil {
			return nil, fmt.Errorf("change the schema of table %q, given up after %d tries: %w", t.Name(), try, failed)
		}
		if err := sleep(ctx, bound.wait(try)); err != nil {
			return nil, err
		}
	}
}

func (t *Table) evolveOnce(ctx context.Context, fields []iceberg.NestedField, e *evolution) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	meta := t.Metadata()
	id := 0
	for _, s := range meta.Schemas() {
		id = max(id, s.ID+1)
	}
	schema := iceberg.NewSchemaWithIdentifiers(id, slices.Clone(t.Schema().IdentifierFieldIDs), fields...)
	updates := []table.Update{table.NewAddSchemaUpdate(schema), table.NewSetCurrentSchemaUpdate(-1)}
	if mapping := t.NameMapping(); mapping != nil {
		mapping, err := iceberg.UpdateNameMapping(mapping, nil, e.adds)
		if err != nil {
			return err
		}
		text, err := json.Marshal(mapping)
		if err != nil {
			return err
		}
		updates = append(updates, table.NewSetPropertiesUpdate(iceberg.Properties{table.DefaultNameMappingKey: string(text)}))
	}
	return t.send(ctx, []table.Requirement{
		table.AssertTableUUID(meta.TableUUID()),
		table.AssertCurrentSchemaID(t.Schema().ID),
		table.AssertLastAssignedFieldID(meta.LastColumnID()),
	}, updates)
}

// An evolution applies changes to a schema and hands out field IDs.
type evolution struct {
	next    int // last ID in use
	version int
	adds    map[int][]iceberg.NestedField // by the parent's ID, for the name mapping
}

// apply returns the schema's fields with the changes made, and those that were not there yet.
func (e *evolution) apply(schema *iceberg.Schema, changes []plan.Change) ([]iceberg.NestedField, []string, error) {
	fields := slices.Clone(schema.Fields())
	var missing []string
	for _, c := range changes {
		var did bool
		var err error
		if fields, did, err = e.change(fields, table.TableRootID, c.Path, c); err != nil {
			return nil, nil, fmt.Errorf("%s column %q: %w", c.Kind, plan.FormatPath(c.Path), err)
		}
		if did {
			missing = append(missing, describe(c))
		}
	}
	return fields, missing, nil
}

func describe(c plan.Change) string {
	if c.Kind == plan.AddColumn {
		return fmt.Sprintf("added column %s %s", plan.FormatPath(c.Path), c.Type)
	}
	return fmt.Sprintf("column %s is now %s", plan.FormatPath(c.Path), c.Type)
}

// change makes one change below the fields of a struct; path leads to the column.
func (e *evolution) change(fields []iceberg.NestedField, parent int, path []string, c plan.Change) ([]iceberg.NestedField, bool, error) {
	at := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == path[0] })
	if len(path) == 1 && c.Kind == plan.AddColumn {
		return e.add(fields, parent, at, c)
	}
	if at < 0 {
		return nil, false, fmt.Errorf("there is no %q any more", path[0])
	}
	f := fields[at]
	kind, did, err := e.inside(f, path[1:], c)
	if err != nil || !did {
		return fields, false, err
	}
	f.Type = kind
	fields = slices.Clone(fields)
	fields[at] = f
	return fields, true, nil
}

func (e *evolution) add(fields []iceberg.NestedField, parent, at int, c plan.Change) ([]iceberg.NestedField, bool, error) {
	if at >= 0 {
		if !sameType(fields[at].Type, c.Type) {
			return nil, false, fmt.Errorf("it is there already, as %s", fields[at].Type)
		}
		return fields, false, nil
	}
	e.next++
	f := iceberg.NestedField{ID: e.next, Name: c.Path[len(c.Path)-1], Doc: c.Doc}
	if e.version >= 3 {
		f.InitialDefault, f.WriteDefault = c.InitialDefault, c.WriteDefault
	}
	f.Type = e.fresh(c.Type)
	e.adds[parent] = append(e.adds[parent], f)
	return append(slices.Clone(fields), f), true, nil
}

// inside makes a change in the type of a field: the field's own promotion, or one further down.
func (e *evolution) inside(f iceberg.NestedField, path []string, c plan.Change) (iceberg.Type, bool, error) {
	if len(path) == 0 {
		if f.Type.Equals(c.Type) {
			return f.Type, false, nil
		}
		return c.Type, true, nil
	}
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		fields, did, err := e.change(t.FieldList, f.ID, path, c)
		return &iceberg.StructType{FieldList: fields}, did, err
	case *iceberg.ListType:
		element := t.ElementField()
		if path[0] == "element" {
			kind, did, err := e.inside(element, path[1:], c)
			return &iceberg.ListType{ElementID: t.ElementID, Element: kind, ElementRequired: t.ElementRequired}, did, err
		}
	case *iceberg.MapType:
		out := *t
		var did bool
		var err error
		switch path[0] {
		case "key":
			out.KeyType, did, err = e.inside(t.KeyField(), path[1:], c)
			return &out, did, err
		case "value":
			out.ValueType, did, err = e.inside(t.ValueField(), path[1:], c)
			return &out, did, err
		}
	}
	return nil, false, fmt.Errorf("there is no %q in %s", path[0], f.Type)
}

// fresh gives the fields inside a type new IDs.
func (e *evolution) fresh(t iceberg.Type) iceberg.Type {
	id := func() int { e.next++; return e.next }
	switch t := t.(type) {
	case *iceberg.StructType:
		fields := slices.Clone(t.FieldList)
		for i := range fields {
			fields[i].ID = id()
		}
		for i := range fields {
			fields[i].Type = e.fresh(fields[i].Type)
		}
		return &iceberg.StructType{FieldList: fields}
	case *iceberg.ListType:
		out := iceberg.ListType{ElementID: id(), ElementRequired: t.ElementRequired}
		out.Element = e.fresh(t.Element)
		return &out
	case *iceberg.MapType:
		out := iceberg.MapType{KeyID: id(), ValueID: id(), ValueRequired: t.ValueRequired}
		out.KeyType, out.ValueType = e.fresh(t.KeyType), e.fresh(t.ValueType)
		return &out
	}
	return t
}

// sameType reports whether two types are equal but for field IDs.
func sameType(a, b iceberg.Type) bool {
	x, y := evolution{}, evolution{}
	return x.fresh(a).Equals(y.fresh(b))
}
