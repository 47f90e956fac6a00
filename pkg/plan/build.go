package plan

import (
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

// Build makes the plan that brings rows of schema src into a table of schema dst and format version
// dstVersion. It refuses whatever cannot be carried out, in one line that names the columns and the
// cure.
func Build(src, dst *iceberg.Schema, dstVersion int, o Options) (*Plan, error) {
	if dstVersion < 1 || dstVersion > 3 {
		return nil, fmt.Errorf("destination format version %d is not supported: 1, 2 and 3 are", dstVersion)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := newBuilder(dstVersion, o)
	if err := b.known(src.Fields(), dst.Fields()); err != nil {
		return nil, err
	}
	if err := checkFields("source", src.Fields(), nil, b.dropped); err != nil {
		return nil, err
	}
	if err := checkFields("destination", dst.Fields(), nil, nil); err != nil {
		return nil, err
	}
	columns, err := b.fields(src.Fields(), dst.Fields(), nil, nil)
	if err != nil {
		return nil, err
	}
	if err := b.unused(); err != nil {
		return nil, err
	}
	if err := b.missing(); err != nil {
		return nil, err
	}
	b.warnCase(dst.Fields(), nil)

	p := &Plan{
		FormatVersion: dstVersion,
		SchemaID:      dst.ID,
		Identifiers:   dst.IdentifierFieldIDs,
		Settings:      o.canonical().options(),
		Columns:       columns,
		LeftOut:       b.left,
		Changes:       changesOf(columns),
		Warnings:      b.warnings,
	}
	return p, checkAdded(p.Columns)
}

// rule decides about a pair of primitive types for this destination and these options.
func (b *builder) rule(from, to iceberg.Type) rule { return ruleOf(from, to, b.version, b.zone) }

// A builder walks both schemas at once.
type builder struct {
	version  int
	nulls    string // policy for columns missing in the source
	extras   string // policy for columns missing in the destination
	fold     bool   // names that differ only by case are the same
	zone     bool   // a time zone is assumed
	drop     map[string]*dropping
	drops    []*dropping
	left     []Left
	to       map[string]*mapping
	from     map[string]*mapping
	coerce   map[string]*coercion
	order    []*mapping
	coerced  []*coercion
	warnings []string

	noSource [][]string // destination columns without source
	noDest   []stray    // source columns without destination
	inKey    bool       // inside the key of a map
}

type coercion struct {
	column []string
	typ    iceberg.Type
	used   bool
}

// A stray is a source column without destination: where it is mapped to, if it is, and the column
// whose name differs only by case, if there is one.
type stray struct{ path, to, near []string }

// siblings are the names in one struct of the destination.
type siblings struct {
	has  map[string]bool
	fold map[string]string // by name in lower case
}

func (s siblings) put(name string) {
	s.has[name] = true
	s.fold[strings.ToLower(name)] = name
}

func newBuilder(version int, o Options) *builder {
	b := &builder{
		version: version,
		nulls:   o.MissingInSource,
		extras:  o.MissingInDest,
		fold:    o.IgnoreCase,
		zone:    o.AssumeTimezone != "",
		drop:    map[string]*dropping{},
		to:      map[string]*mapping{}, from: map[string]*mapping{}, coerce: map[string]*coercion{},
	}
	for _, r := range o.Mapping { // Check has parsed all of them
		m := &mapping{}
		m.from, _ = ParsePath(r.From)
		m.to, _ = ParsePath(r.To)
		b.order = append(b.order, m)
	}
	for _, r := range o.Coercions {
		c := &coercion{}
		c.column, _ = ParsePath(r.Column)
		c.typ, _ = parseType(r.Type)
		b.coerced = append(b.coerced, c)
	}
	for _, text := range o.Drop {
		d := &dropping{}
		d.path, _ = ParsePath(text)
		b.drops = append(b.drops, d)
	}
	return b
}

// fields matches the fields of two structs at the paths sp and dp by name.
func (b *builder) fields(src, dst []iceberg.NestedField, sp, dp []string) ([]Column, error) {
	from, err := b.names(src, dst, sp, dp)
	if err != nil {
		return nil, err
	}
	taken := make([]bool, len(src))
	names := siblings{has: make(map[string]bool, len(dst)), fold: make(map[string]string, len(dst))}
	columns := make([]Column, 0, len(dst))
	for _, d := range dst {
		names.put(d.Name)
		path := join(dp, d.Name)
		i, err := b.sourceOf(path, from, sp)
		if err != nil {
			return nil, err
		}
		if i >= 0 && taken[i] {
			return nil, fmt.Errorf("column %s: its source %s is taken by another column; map one of them", quote(path), quote(join(sp, src[i].Name)))
		}
		var c Column
		if i < 0 {
			c, err = b.fill(d, path)
		} else {
			taken[i] = true
			c, err = b.column(src[i], d, join(sp, src[i].Name), path)
		}
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	for i, s := range src {
		if taken[i] {
			continue
		}
		c, ok, err := b.extra(s, join(sp, s.Name), dp, names)
		if err != nil {
			return nil, err
		}
		if ok {
			names.put(c.Target.Name)
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// sourceOf finds the source field of the destination column at path, -1 if there is none.
func (b *builder) sourceOf(path []string, src sources, sp []string) (int, error) {
	name := path[len(path)-1]
	m := b.to[key(path)]
	if m == nil {
		i, ok := src.named[b.folded(name)]
		if !ok {
			return -1, nil
		}
		return i, nil
	}
	if err := m.inside(sp, path[:len(path)-1]); err != nil {
		return 0, err
	}
	i, ok := src.mapped[m.from[len(m.from)-1]]
	if !ok {
		return -1, nil
	}
	m.used = true
	return i, nil
}

// column matches a source field with a destination field.
func (b *builder) column(src, dst iceberg.NestedField, sp, dp []string) (Column, error) {
	c := Column{Path: dp, Target: dst, Source: sp, SourceRequired: src.Required}
	if err := b.coerceTo(&c); err != nil {
		return c, err
	}
	if dst.Required && !src.Required {
		b.warnings = append(b.warnings, fmt.Sprintf("column %s: the source may hold null and the destination requires a value; "+
			"a null stops the batch before it is written", quote(dp)))
	}
	if isNested(src.Type) || isNested(dst.Type) {
		return b.nested(c, src)
	}
	c.SourceType = src.Type
	if err := b.castable(&c); err != nil {
		return c, err
	}
	if is[iceberg.UnknownType](src.Type) && dst.Required {
		return c, fmt.Errorf("column %s: the source column %s has the type unknown, which is always null, and the destination "+
			"requires a value; make it optional in the destination", quote(dp), quote(sp))
	}
	c.Action = actionOf(c, b.version)
	return c, nil
}

// castable refuses a pair of types that has no cast, and warns of one that may not go through.
func (b *builder) castable(c *Column) error {
	r := b.rule(c.SourceType, c.Target.Type)
	if r.answer == AnswerRefuse {
		return b.refuseCast(c.Path, c.SourceType, c.Target.Type, r)
	}
	if b.inKey && r.joins {
		return fmt.Errorf("column %s: the source has %s and the destination %s: two keys of a map could become the same one; "+
			"make the types equal in one of the tables", quote(c.Path), typeText(c.SourceType), typeText(c.Target.Type))
	}
	w := c.warning()
	if w == "" {
		return nil
	}
	if promotes(c.Target.Type, c.SourceType, b.version) && c.Target.ID > 0 && b.coerce[key(c.Path)] == nil && !b.inKey {
		w += fmt.Sprintf("; --type-coercion %s:%s would widen the destination's column", FormatPath(c.Path), c.SourceType)
	}
	b.warnings = append(b.warnings, w)
	return nil
}

// nested matches the insides of two structs, lists or maps.
func (b *builder) nested(c Column, src iceberg.NestedField) (Column, error) {
	var err error
	switch d := c.Target.Type.(type) {
	case *iceberg.StructType:
		s, ok := src.Type.(*iceberg.StructType)
		if !ok {
			return c, b.refuseCast(c.Path, src.Type, d, rule{})
		}
		c.Fields, err = b.fields(s.FieldList, d.FieldList, c.Source, c.Path)
	case *iceberg.ListType:
		s, ok := src.Type.(*iceberg.ListType)
		if !ok {
			return c, b.refuseCast(c.Path, src.Type, d, rule{})
		}
		c.Fields, err = b.inner(c, s.Fields(), d.Fields())
	case *iceberg.MapType:
		s, ok := src.Type.(*iceberg.MapType)
		if !ok {
			return c, b.refuseCast(c.Path, src.Type, d, rule{})
		}
		c.Fields, err = b.inner(c, s.Fields(), d.Fields())
	default:
		return c, b.refuseCast(c.Path, src.Type, d, rule{})
	}
	if err != nil {
		return c, err
	}
	c.Target.Type = withFields(c.Target.Type, c.Fields)
	c.Action = actionOf(c, b.version)
	return c, nil
}

// inner matches the element of a list, or the key and the value of a map.
func (b *builder) inner(c Column, src, dst []iceberg.NestedField) ([]Column, error) {
	columns := make([]Column, len(dst))
	for i := range dst {
		outer := b.inKey
		b.inKey = outer || dst[i].Name == "key"
		var err error
		columns[i], err = b.column(src[i], dst[i], join(c.Source, src[i].Name), join(c.Path, dst[i].Name))
		b.inKey = outer
		if err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// actionOf names what happens to a column that has a source and is not added, for a destination of a
// format version.
func actionOf(c Column, version int) Action {
	switch {
	case c.rule(version).answer == AnswerPromote:
		return Promote
	case c.rule(version).answer == AnswerCast:
		return Cast
	case c.Source[len(c.Source)-1] != c.Path[len(c.Path)-1]:
		return Renamed
	}
	return Take
}

// coerceTo applies the user's type for a column that the destination has.
func (b *builder) coerceTo(c *Column) error {
	want := b.coerce[key(c.Path)]
	if want == nil {
		return nil
	}
	want.used = true
	switch {
	case isNested(c.Target.Type):
		return fmt.Errorf("type coercion of %s: it is %s; name the columns in it", quote(c.Path), kind(c.Target.Type))
	case checkLeaf(want.typ) != nil:
		return fmt.Errorf("type coercion of %s: %w", quote(c.Path), checkLeaf(want.typ))
	case want.typ.Equals(c.Target.Type):
		return nil
	case b.inKey:
		return fmt.Errorf("type coercion of %s: the key of a map keeps its type", quote(c.Path))
	case !promotes(c.Target.Type, want.typ, b.version):
		return b.refusePromotion(c.Path, c.Target.Type, want.typ)
	}
	c.Was, c.Target.Type = c.Target.Type, want.typ
	return nil
}
