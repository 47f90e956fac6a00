package plan

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
)

// Resolve finds the plan's targets in the destination's present schema, after the plan's changes
// were made: columns by field ID, added ones by name, and all of them with the type that the plan
// says, or one that it was promoted to meanwhile. The order, names and docs of the result are those of
// dst. A column that dst got meanwhile is filled with null; if it is required, or a target is gone or has another type, that is an error
// that names it.
//
// A resolved plan can be resolved again. It keeps its Changes, for the record; Pending tells which
// of them are still to be made.
func (p *Plan) Resolve(dst *iceberg.Schema) (*Plan, error) {
	return p.resolve(resolver{}, dst)
}

// ResolveAhead is Resolve before the plan's changes were made, or when some of them were: what is not
// there yet stays to be added or promoted.
func (p *Plan) ResolveAhead(dst *iceberg.Schema) (*Plan, error) {
	return p.resolve(resolver{ahead: true}, dst)
}

func (p *Plan) resolve(r resolver, dst *iceberg.Schema) (*Plan, error) {
	r.version, r.zone = p.FormatVersion, p.Settings.AssumeTimezone != ""
	out, err := r.plan(p, dst)
	if err != nil {
		return nil, fmt.Errorf("resolve the plan: %w", err)
	}
	out.Changes = changesOf(out.Columns)
	return out, nil
}

// Carry returns the plan that brings rows which p has projected already to the destination's
// present schema: like Resolve's, but its sources are the columns of p's target. A writer needs it
// that gets projected rows and changes the schema itself. It has no Changes.
func (p *Plan) Carry(dst *iceberg.Schema) (*Plan, error) {
	r := resolver{carry: true, version: p.FormatVersion, zone: true}
	out, err := r.plan(p, dst)
	if err != nil {
		return nil, fmt.Errorf("carry the plan: %w", err)
	}
	out.Settings = Options{}
	return out, nil
}

// Pending returns those of the plan's changes that dst does not have yet, in order. An added column
// that is there with another type, or a promoted one that has neither its old nor its new type, is
// an error.
func (p *Plan) Pending(dst *iceberg.Schema) ([]Change, error) {
	var pending []Change
	for _, c := range p.Changes {
		f, ok := lookup(dst.Fields(), c.Path)
		switch {
		case c.Kind == AddColumn && !ok:
			pending = append(pending, c)
		case !ok:
			return nil, fmt.Errorf("column %s: it is to become %s, and the destination no longer has it; make the plan anew",
				quote(c.Path), c.Type)
		case sameType(f.Type, c.Type):
		case c.Kind == PromoteColumn && promotes(f.Type, c.Type, p.FormatVersion):
			pending = append(pending, c)
		default:
			return nil, fmt.Errorf("column %s: the destination has it meanwhile as %s, and the plan wants %s; make the plan anew",
				quote(c.Path), typeText(f.Type), typeText(c.Type))
		}
	}
	return pending, nil
}

func lookup(fields []iceberg.NestedField, path []string) (iceberg.NestedField, bool) {
	for _, f := range fields {
		if f.Name == path[0] {
			if len(path) == 1 {
				return f, true
			}
			return lookup(children(f.Type), path[1:])
		}
	}
	return iceberg.NestedField{}, false
}

type resolver struct {
	carry    bool // take the old target as the source
	ahead    bool // the plan's changes may still be to be made
	version  int
	zone     bool
	warnings []string
}

func (r *resolver) plan(p *Plan, dst *iceberg.Schema) (*Plan, error) {
	if err := checkFields("destination", dst.Fields(), nil, nil); err != nil {
		return nil, err
	}
	out := *p
	out.SchemaID, out.Identifiers = dst.ID, dst.IdentifierFieldIDs
	var err error
	if out.Columns, err = r.fields(p.Columns, dst.Fields(), nil); err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings[:len(out.Warnings):len(out.Warnings)], r.warnings...)
	out.Changes = nil
	return &out, nil
}

// fields finds the columns of one struct, list or map again.
func (r *resolver) fields(old []Column, dst []iceberg.NestedField, dp []string) ([]Column, error) {
	byID, byName := map[int]int{}, map[string]int{}
	for i, c := range old {
		if c.Target.ID > 0 {
			byID[c.Target.ID] = i
		} else {
			byName[c.Target.Name] = i
		}
	}
	found := make([]bool, len(old))
	columns := make([]Column, 0, len(dst))
	for _, d := range dst {
		path := join(dp, d.Name)
		i, ok := byID[d.ID]
		if !ok {
			i, ok = byName[d.Name]
		}
		if !ok {
			c, err := r.fresh(d, path)
			if err != nil {
				return nil, err
			}
			columns = append(columns, c)
			continue
		}
		found[i] = true
		c, err := r.column(old[i], d, path)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	for i, c := range old {
		if found[i] {
			continue
		}
		if c.Target.ID == 0 && r.ahead {
			columns = append(columns, placed(c, dp))
			continue
		}
		if c.Target.ID == 0 {
			return nil, fmt.Errorf("column %s: it was to be added, and the destination does not have it; make the schema changes first",
				quote(c.Path))
		}
		return nil, fmt.Errorf("column %s (field ID %d): the destination no longer has it; make the plan anew", quote(c.Path), c.Target.ID)
	}
	return columns, nil
}

// placed is a column that is to be added to a struct, by the struct's present name.
func placed(c Column, dp []string) Column {
	c.Path = join(dp, c.Target.Name)
	c.Fields = slices.Clone(c.Fields)
	for i := range c.Fields {
		c.Fields[i] = placed(c.Fields[i], c.Path)
	}
	return c
}

// fresh fills a column that the destination got meanwhile.
func (r *resolver) fresh(d iceberg.NestedField, path []string) (Column, error) {
	if d.Required {
		return Column{}, fmt.Errorf("column %s: the destination got it after the plan was made, and it is required; make the plan anew",
			quote(path))
	}
	r.warnings = append(r.warnings, fmt.Sprintf("column %s: the destination got it after the plan was made; it is filled with null", quote(path)))
	return Column{Path: path, Target: d, Action: NullFill}, nil
}

func (r *resolver) column(old Column, d iceberg.NestedField, path []string) (Column, error) {
	if r.ahead && old.Was != nil && sameType(d.Type, old.Was) {
		d.Type = old.Target.Type
	}
	c := old
	c.Path, c.Target = path, d
	if old.Action.fills() {
		return r.refill(c, old.Target.Type)
	}
	if err := sameKind(old.Target.Type, d.Type, path); err != nil && !r.widened(old, d.Type) {
		return c, err
	}
	if d.Required && !old.Target.Required && !old.SourceRequired {
		r.warnings = append(r.warnings, fmt.Sprintf("column %s: the destination requires a value meanwhile; "+
			"a null stops the batch before it is written", quote(path)))
	}
	if r.carry {
		c.Source, c.SourceRequired, c.SourceType, c.Was = old.Path, old.Target.Required, nil, nil
		if !isNested(d.Type) {
			c.SourceType = old.Target.Type
		}
	}
	if isNested(d.Type) {
		var err error
		if c.Fields, err = r.fields(old.Fields, children(d.Type), path); err != nil {
			return c, err
		}
		if r.ahead {
			c.Target.Type = withFields(d.Type, c.Fields)
		}
	}
	if r.carry || c.Action != Add {
		c.Action = actionOf(c, r.version)
	}
	return c, nil
}

// widened tells whether a column was promoted meanwhile to a type that its source fits as well.
func (r *resolver) widened(old Column, now iceberg.Type) bool {
	if old.Target.ID == 0 || old.Was != nil || old.SourceType == nil || !promotes(old.Target.Type, now, r.version) {
		return false
	}
	return r.carry || ruleOf(old.SourceType, now, r.version, r.zone).answer != AnswerRefuse
}

// refill fills a column again, by what the destination says of it now: null has every type.
func (r *resolver) refill(c Column, was iceberg.Type) (Column, error) {
	if c.Was != nil { // the promotion is the plan's own
		if err := sameKind(was, c.Target.Type, c.Path); err != nil {
			return c, err
		}
	}
	if r.carry {
		c.Was = nil
	}
	if c.Action != NullFill {
		c.Action = Skip
		if c.Target.WriteDefault != nil {
			c.Action = Default
			if _, err := literalOf(c.Target.WriteDefault, c.Target.Type); err != nil {
				return c, fmt.Errorf("column %s: its write-default cannot be written: %w", quote(c.Path), err)
			}
		}
	}
	if c.Target.Required && c.Action != Default {
		return c, fmt.Errorf("column %s: it is to be filled with null, and the destination requires a value meanwhile; make the plan anew",
			quote(c.Path))
	}
	return c, nil
}

// sameKind holds a target found again to the type that the plan says.
func sameKind(was, is iceberg.Type, path []string) error {
	if isNested(was) && fmt.Sprintf("%T", was) == fmt.Sprintf("%T", is) || was.Equals(is) {
		return nil
	}
	return fmt.Errorf("column %s: the destination has it as %s, and the plan says %s; make the plan anew", quote(path), kind(is), kind(was))
}
