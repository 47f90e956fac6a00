package plan

import (
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
)

// A reader checks the columns of a document against their targets.
type reader struct {
	version int
	zone    bool         // a time zone is assumed
	ids     map[int]bool // the field IDs met
}

// A place is where columns stand.
type place struct {
	path, source []string
	added        bool // in a column that is added
	inKey        bool // in the key of a map
	named        bool // the names are element, key and value
}

func (r *reader) fields(docs []columnDoc, targets []iceberg.NestedField, at place) ([]Column, error) {
	if len(docs) != len(targets) {
		return nil, fmt.Errorf("column %s: %d fields for the %d of its type", quote(at.path), len(docs), len(targets))
	}
	columns := make([]Column, 0, len(docs))
	sources := map[string]bool{}
	for i, d := range docs {
		c, err := r.column(d, targets[i], at)
		if err != nil {
			return nil, err
		}
		if c.Source != nil && sources[key(c.Source)] {
			return nil, fmt.Errorf("column %s: its source %s is taken twice", quote(c.Path), quote(c.Source))
		}
		if c.Source != nil {
			sources[key(c.Source)] = true
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func (r *reader) column(d columnDoc, target iceberg.NestedField, at place) (Column, error) {
	c := Column{Path: join(at.path, target.Name), Target: target, Action: d.Action, SourceRequired: d.SourceRequired}
	if d.Column != FormatPath(c.Path) {
		return c, fmt.Errorf("column %s: its target is called %s", quoteText(d.Column), quote(c.Path))
	}
	if len(at.path) > 0 && d.Target != nil {
		return c, fmt.Errorf("column %s: a target stands on columns at the root only", quote(c.Path))
	}
	if err := r.id(c); err != nil {
		return c, err
	}
	if !isNested(target.Type) && since(target.Type) > r.version {
		return c, fmt.Errorf("column %s: the type %s needs format version %d, and the destination has version %d",
			quote(c.Path), target.Type, since(target.Type), r.version)
	}
	if err := r.was(&c, d, at); err != nil {
		return c, err
	}
	if d.Action.fills() {
		return c, r.filled(c, d, at)
	}
	return r.sourced(c, d, at)
}

func (r *reader) id(c Column) error {
	id := c.Target.ID
	switch {
	case id < 0 || (id == 0 && c.Action != Add):
		return fmt.Errorf("column %s: field ID %d is not one", quote(c.Path), id)
	case id > 0 && r.ids[id]:
		return fmt.Errorf("column %s: field ID %d is taken twice", quote(c.Path), id)
	}
	r.ids[id] = id > 0
	return nil
}

// was reads the type that the destination's column is promoted from.
func (r *reader) was(c *Column, d columnDoc, at place) error {
	if d.Was == "" {
		return nil
	}
	was, err := parseType(d.Was)
	if err != nil {
		return fmt.Errorf("column %s: promoted_from: %w", quote(c.Path), err)
	}
	if at.inKey || c.Action == Add || !promotes(was, c.Target.Type, r.version) {
		return fmt.Errorf("column %s: the destination's type %s cannot be promoted to %s", quote(c.Path), was, typeText(c.Target.Type))
	}
	c.Was = was
	return nil
}

// filled checks a column without source.
func (r *reader) filled(c Column, d columnDoc, at place) error {
	switch {
	case at.added || at.named:
		return fmt.Errorf("column %s: it cannot be filled, it is inside one that has a source", quote(c.Path))
	case d.Source != "" || d.SourceType != "" || d.SourceRequired || d.Fields != nil:
		return fmt.Errorf("column %s: it is filled and has a source", quote(c.Path))
	case c.Action == Default:
		if _, err := literalOf(c.Target.WriteDefault, c.Target.Type); err != nil {
			return fmt.Errorf("column %s: its write-default cannot be written: %w", quote(c.Path), err)
		}
	case c.Target.Required:
		return fmt.Errorf("column %s: it is required and cannot be filled with null", quote(c.Path))
	case c.Action == Skip && c.Target.WriteDefault != nil:
		return fmt.Errorf("column %s: it has a write-default, which skip would write", quote(c.Path))
	}
	return r.inside(c.Target.Type, c.Path)
}

// inside notes the field IDs in a filled column.
func (r *reader) inside(t iceberg.Type, path []string) error {
	for _, f := range children(t) {
		c := Column{Path: join(path, f.Name), Target: f}
		if err := r.id(c); err != nil {
			return err
		}
		if err := r.inside(f.Type, c.Path); err != nil {
			return err
		}
	}
	return nil
}

// sourced checks a column with a source, and what is in it.
func (r *reader) sourced(c Column, d columnDoc, at place) (Column, error) {
	var err error
	if c.Source, err = ParsePath(d.Source); err != nil {
		return c, fmt.Errorf("column %s: source: %w", quote(c.Path), err)
	}
	last := len(c.Source) - 1
	if !slices.Equal(c.Source[:last], at.source) || (at.named && c.Source[last] != c.Target.Name) {
		return c, fmt.Errorf("column %s: its source %s is in another place", quote(c.Path), quote(c.Source))
	}
	if at.added != (c.Action == Add) && (at.added || at.named) {
		return c, fmt.Errorf("column %s: all of an added column is added, and nothing else of a list or map", quote(c.Path))
	}
	isKey := at.named && c.Target.Name == "key"
	if c.Action == Add && (c.Target.Required != isKey || (at.inKey && !at.added)) {
		return c, fmt.Errorf("column %s: an added column is optional, and not in the key of a map that is there", quote(c.Path))
	}
	if isNested(c.Target.Type) {
		if d.SourceType != "" {
			return c, fmt.Errorf("column %s: %s has no single source type", quote(c.Path), kind(c.Target.Type))
		}
		_, isStruct := c.Target.Type.(*iceberg.StructType)
		inner := place{path: c.Path, source: c.Source, added: c.Action == Add, inKey: at.inKey || isKey, named: !isStruct}
		if c.Fields, err = r.fields(d.Fields, children(c.Target.Type), inner); err != nil {
			return c, err
		}
	} else if err := r.leaf(&c, d, at.inKey || isKey); err != nil {
		return c, err
	}
	if want := actionOf(c, r.version); c.Action != Add && c.Action != want {
		return c, fmt.Errorf("column %s: its action is %s, not %s", quote(c.Path), want, quoteText(string(c.Action)))
	}
	return c, nil
}

func (r *reader) leaf(c *Column, d columnDoc, inKey bool) error {
	if d.Fields != nil {
		return fmt.Errorf("column %s: %s has no fields", quote(c.Path), typeText(c.Target.Type))
	}
	var err error
	if c.SourceType, err = parseType(d.SourceType); err != nil {
		return fmt.Errorf("column %s: source_type: %w", quote(c.Path), err)
	}
	if err := checkLeaf(c.SourceType); err != nil {
		return fmt.Errorf("column %s: source_type: %w", quote(c.Path), err)
	}
	if rule := ruleOf(c.SourceType, c.Target.Type, r.version, r.zone); rule.answer == AnswerRefuse || inKey && rule.joins {
		return fmt.Errorf("column %s: %s does not become %s", quote(c.Path), c.SourceType, c.Target.Type)
	}
	return nil
}
