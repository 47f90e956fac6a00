package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go"
)

// fill decides about a destination column that has no source column.
func (b *builder) fill(dst iceberg.NestedField, path []string) (Column, error) {
	c := Column{Path: path, Target: dst}
	if err := b.coerceTo(&c); err != nil {
		return c, err
	}
	switch b.nulls {
	case PolicyNull:
		c.Action = NullFill
		if !dst.Required {
			return c, nil
		}
		also := ""
		if dst.WriteDefault != nil {
			also = ", or --on-missing-in-source skip for its write-default"
		}
		return c, fmt.Errorf("column %s: no source column for it, and it is required, so null cannot be written: "+
			"give --column-mapping SRC:%s%s, or make it optional in the destination", quote(path), FormatPath(path), also)
	case PolicySkip:
		return b.skip(c)
	}
	c.Action = NullFill // until missing reports it
	b.noSource = append(b.noSource, path)
	return c, nil
}

// skip writes the write-default of a column, for it is what the spec says of a column that a writer
// does not know; leaving the column out of the file would read as its initial-default (case 52).
func (b *builder) skip(c Column) (Column, error) {
	if c.Target.WriteDefault == nil {
		c.Action = Skip
		if c.Target.Required {
			return c, fmt.Errorf("column %s: no source column for it, and it is required and has no write-default: "+
				"give --column-mapping SRC:%s, or make it optional in the destination", quote(c.Path), FormatPath(c.Path))
		}
		return c, nil
	}
	c.Action = Default
	if _, err := literalOf(c.Target.WriteDefault, c.Target.Type); err != nil {
		return c, fmt.Errorf("column %s: its write-default cannot be written: %w; give --on-missing-in-source null "+
			"if the column is optional, or --column-mapping SRC:%s", quote(c.Path), err, FormatPath(c.Path))
	}
	return c, nil
}

// extra decides about a source column that no destination column took.
func (b *builder) extra(src iceberg.NestedField, sp, dp []string, names siblings) (Column, bool, error) {
	name := src.Name
	if d := b.drop[key(sp)]; d != nil {
		d.used = true
		b.left = append(b.left, Left{Path: sp, Type: src.Type})
		return Column{}, false, nil
	}
	m := b.from[key(sp)]
	if m != nil {
		if err := m.inside(sp[:len(sp)-1], dp); err != nil {
			return Column{}, false, err
		}
		m.used = true
		name = m.to[len(m.to)-1]
	}
	path := join(dp, name)
	near := names.fold[strings.ToLower(name)]
	switch {
	case b.extras == PolicyIgnore && m == nil:
		b.left = append(b.left, Left{Path: sp, Type: src.Type})
		return Column{}, false, nil
	case names.has[name]:
		return Column{}, false, fmt.Errorf("source column %s: the destination's %s comes from another source column: "+
			"give --column-mapping %s:DST to a name that is free", quote(sp), quote(path), FormatPath(sp))
	case b.extras != PolicyAutoAdd:
		s := stray{path: sp}
		if m != nil {
			s.to = path
		}
		if near != "" {
			s.near = join(dp, near)
		}
		b.noDest = append(b.noDest, s)
		return Column{}, false, nil
	case near != "":
		return Column{}, false, fmt.Errorf("source column %s: adding %s would make two destination columns that differ only by case: "+
			"give --column-mapping %s:%s, or another name", quote(sp), quote(path), FormatPath(sp), FormatPath(join(dp, near)))
	case b.inKey:
		return Column{}, false, fmt.Errorf("source column %s: the destination's map key has no field %s, and fields cannot be added "+
			"to the key of a map", quote(sp), quote(path))
	}
	c, err := b.add(src, sp, path)
	return c, true, err
}

// add makes the column that the destination gets. All of it is optional, but for keys of maps.
func (b *builder) add(src iceberg.NestedField, sp, dp []string) (Column, error) {
	c := Column{
		Path: dp, Action: Add, Source: sp, SourceRequired: src.Required,
		Target: iceberg.NestedField{Name: dp[len(dp)-1], Type: src.Type, Doc: src.Doc},
	}
	want := b.coerce[key(dp)]
	if want != nil {
		want.used = true
		if isNested(src.Type) {
			return c, fmt.Errorf("type coercion of %s: it is %s; name the columns in it", quote(dp), kind(src.Type))
		}
		if err := checkLeaf(want.typ); err != nil {
			return c, fmt.Errorf("type coercion of %s: %w", quote(dp), err)
		}
		c.Target.Type = want.typ
	}
	if n, ok := src.Type.(iceberg.NestedType); ok {
		return b.addNested(c, n)
	}
	c.SourceType = src.Type
	if n := since(c.Target.Type); n > b.version {
		return c, fmt.Errorf("column %s: it cannot be added with the type %s, which needs format version %d, and the destination has "+
			"version %d: upgrade the destination%s", quote(dp), c.Target.Type, n, b.version, b.olderType(c.Target.Type, dp))
	}
	if err := b.castable(&c); err != nil {
		return c, err
	}
	b.copyDefaults(&c, src)
	return c, nil
}

// olderType suggests a coercion that does without a newer format version.
func (b *builder) olderType(t iceberg.Type, path []string) string {
	if is[iceberg.UnknownType](t) {
		return fmt.Sprintf(", or give --type-coercion %s:TYPE", FormatPath(path))
	}
	return ""
}

func (b *builder) addNested(c Column, t iceberg.NestedType) (Column, error) {
	_, isStruct := t.(*iceberg.StructType)
	for _, f := range t.Fields() {
		sp, name := join(c.Source, f.Name), f.Name
		if d := b.drop[key(sp)]; d != nil && isStruct {
			d.used = true
			b.left = append(b.left, Left{Path: sp, Type: f.Type})
			continue
		}
		if m := b.from[key(sp)]; m != nil && isStruct {
			if err := m.inside(c.Source, c.Path); err != nil {
				return c, err
			}
			m.used = true
			name = m.to[len(m.to)-1]
		}
		outer := b.inKey
		b.inKey = outer || f.Name == "key" && !isStruct
		child, err := b.add(f, sp, join(c.Path, name))
		b.inKey = outer
		if err != nil {
			return c, err
		}
		if f.Name == "key" && !isStruct {
			child.Target.Required = true
		}
		c.Fields = append(c.Fields, child)
	}
	if len(c.Fields) == 0 && len(t.Fields()) > 0 {
		return c, fmt.Errorf("source column %s: all of its fields are dropped; drop it whole", quote(c.Source))
	}
	c.Target.Type = withFields(t, c.Fields)
	return c, nil
}

// copyDefaults gives an added column the defaults of its source column where the format has them.
func (b *builder) copyDefaults(c *Column, src iceberg.NestedField) {
	if src.InitialDefault == nil && src.WriteDefault == nil {
		return
	}
	why := ""
	switch {
	case b.version < 3:
		why = fmt.Sprintf("format version %d has none", b.version)
	case !src.Type.Equals(c.Target.Type) && (is[iceberg.DateType](src.Type) || !promotes(src.Type, c.Target.Type, b.version)):
		why = "its type changes"
	}
	for _, v := range []any{src.InitialDefault, src.WriteDefault} {
		if v != nil && why == "" {
			if _, err := literalOf(v, c.Target.Type); err != nil {
				why = err.Error()
			}
		}
	}
	if why != "" {
		b.warnings = append(b.warnings, fmt.Sprintf("column %s: added without the defaults of the source column: %s", quote(c.Path), why))
		return
	}
	c.Target.InitialDefault, c.Target.WriteDefault = src.InitialDefault, src.WriteDefault
}

// missing reports the columns that one side lacks, all of them at once.
func (b *builder) missing() error {
	var errs []error
	if len(b.noSource) > 0 {
		one := b.noSource[0]
		errs = append(errs, fmt.Errorf("no source column for the destination's %s: give --column-mapping SRC:%s, "+
			"or --on-missing-in-source null or skip", quoteList(b.noSource), FormatPath(one)))
	}
	if len(b.noDest) > 0 {
		var paths [][]string
		for _, s := range b.noDest {
			paths = append(paths, s.path)
		}
		one := b.noDest[0]
		to, mapped := "DST", ""
		switch {
		case one.near != nil:
			to = FormatPath(one.near)
		case one.to != nil:
			mapped = fmt.Sprintf(" (%s is mapped to %s)", quote(one.path), quote(one.to))
		}
		errs = append(errs, fmt.Errorf("no destination column for the source's %s%s: give --column-mapping %s:%s, "+
			"--on-missing-in-dest auto_add or ignore, or --drop", quoteList(paths), mapped, FormatPath(one.path), to))
	}
	if len(errs) == 2 {
		return fmt.Errorf("%w; %w", errs[0], errs[1])
	}
	return errors.Join(errs...)
}
