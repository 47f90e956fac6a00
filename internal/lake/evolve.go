package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/crash"
	"icepipe/pkg/plan"
)

// Evolve makes the schema changes of a plan that the table does not have yet, as one commit of
// metadata alone that asserts the schema and the last field ID it was made on. It returns the changes
// it made, for people. An answer that is not success is settled by loading the table again: changes
// that are there are done.
func (t *Table) Evolve(ctx context.Context, p *plan.Plan) ([]string, error) {
	tries := newRetryBound(t.Properties()).begin()
	var made []string
	for {
		pending, err := p.Pending(t.Schema())
		if err != nil {
			return nil, fmt.Errorf("schema of table %q: %w", t.Name(), err)
		}
		if len(pending) == 0 {
			return made, nil
		}
		e := t.evolution()
		fields, err := e.apply(t.Schema(), pending)
		if err != nil {
			return nil, fmt.Errorf("schema of table %q: %w", t.Name(), err)
		}
		made = nil
		for _, c := range pending {
			made = append(made, describe(c))
		}
		tries.made++
		failed := t.evolveOnce(ctx, fields, e)
		if failed == nil {
			crash.Here("lake.schema-changed")
			return made, nil
		}
		if err := t.persist(context.WithoutCancel(ctx), tries.retryBound, t.Reload); err != nil {
			return nil, fmt.Errorf("change the schema of table %q: %w; %w", t.Name(), failed, err)
		}
		if left, err := p.Pending(t.Schema()); err == nil && len(left) == 0 {
			return made, nil // it landed, or another process made the same changes
		}
		if isDenied(failed) {
			return nil, fmt.Errorf("change the schema of table %q: %w", t.Name(), t.deniedText(failed))
		}
		wait, more := tries.next(failed)
		if !more || isLasting(failed) || ctx.Err() != nil {
			return nil, fmt.Errorf("change the schema of table %q, given up after %d tries: %w", t.Name(), tries.made, failed)
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (t *Table) evolveOnce(ctx context.Context, fields []iceberg.NestedField, e *evolution) error {
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
	return t.sendWithin(ctx, []table.Requirement{
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

func (t *Table) evolution() *evolution {
	return &evolution{next: t.Metadata().LastColumnID(), version: t.Metadata().Version(), adds: map[int][]iceberg.NestedField{}}
}

// apply returns the schema's fields with the changes made.
func (e *evolution) apply(schema *iceberg.Schema, changes []plan.Change) ([]iceberg.NestedField, error) {
	if highest := schema.HighestFieldID(); len(changes) > 0 && highest > e.next {
		return nil, fmt.Errorf("its metadata is damaged: last-column-id is %d, and there is a column with field ID %d, so that a new column could get one that is taken", e.next, highest)
	}
	fields := slices.Clone(schema.Fields())
	for _, c := range changes {
		var err error
		if fields, err = e.change(fields, table.TableRootID, c.Path, c); err != nil {
			return nil, fmt.Errorf("%s column %q: %w", c.Kind, plan.FormatPath(c.Path), err)
		}
	}
	return fields, nil
}

func describe(c plan.Change) string {
	if c.Kind == plan.AddColumn {
		return fmt.Sprintf("added column %s %s", plan.FormatPath(c.Path), c.Type)
	}
	return fmt.Sprintf("column %s is now %s", plan.FormatPath(c.Path), c.Type)
}

// change makes one change below the fields of a struct; path leads to the column.
func (e *evolution) change(fields []iceberg.NestedField, parent int, path []string, c plan.Change) ([]iceberg.NestedField, error) {
	at := slices.IndexFunc(fields, func(f iceberg.NestedField) bool { return f.Name == path[0] })
	if len(path) == 1 && c.Kind == plan.AddColumn {
		if at >= 0 {
			return nil, fmt.Errorf("it is there already, as %s", fields[at].Type)
		}
		return append(slices.Clone(fields), e.add(parent, c)), nil
	}
	if at < 0 {
		return nil, fmt.Errorf("there is no %q any more", path[0])
	}
	kind, err := e.inside(fields[at], path[1:], c)
	if err != nil {
		return nil, err
	}
	fields = slices.Clone(fields)
	fields[at].Type = kind
	return fields, nil
}

func (e *evolution) add(parent int, c plan.Change) iceberg.NestedField {
	e.next++
	f := iceberg.NestedField{ID: e.next, Name: c.Path[len(c.Path)-1], Doc: c.Doc}
	if e.version >= 3 {
		f.InitialDefault, f.WriteDefault = c.InitialDefault, c.WriteDefault
	}
	f.Type = e.fresh(c.Type)
	e.adds[parent] = append(e.adds[parent], f)
	return f
}

// inside makes a change in the type of a field: the field's own promotion, or one further down.
func (e *evolution) inside(f iceberg.NestedField, path []string, c plan.Change) (iceberg.Type, error) {
	if len(path) == 0 {
		return c.Type, nil
	}
	var err error
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		out := *t
		out.FieldList, err = e.change(t.FieldList, f.ID, path, c)
		return &out, err
	case *iceberg.ListType:
		if out := *t; path[0] == "element" {
			out.Element, err = e.inside(t.ElementField(), path[1:], c)
			return &out, err
		}
	case *iceberg.MapType:
		switch out := *t; path[0] {
		case "key":
			out.KeyType, err = e.inside(t.KeyField(), path[1:], c)
			return &out, err
		case "value":
			out.ValueType, err = e.inside(t.ValueField(), path[1:], c)
			return &out, err
		}
	}
	return nil, fmt.Errorf("there is no %q in %s", path[0], f.Type)
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
