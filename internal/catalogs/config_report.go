package catalogs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"icepipe/pkg/plan"
)

// An Overview is what is in force of the configuration, and where each part of it is said. It holds no
// secrets: their values are hidden.
type Overview struct {
	Files    []OverviewFile  `json:"files"`
	Default  *OverviewValue  `json:"default_catalog,omitempty"`
	Catalogs []OverviewEntry `json:"catalogs"`
	Sides    []OverviewSide  `json:"sides,omitempty"`
}

// An OverviewFile is a place where a configuration may be.
type OverviewFile struct {
	Path  string `json:"path"`
	State string `json:"state"` // read, not there, or not read since another one counts
}

// An OverviewEntry is a configured catalog.
type OverviewEntry struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"` // empty where it cannot be told
	From string `json:"from"`
}

// An OverviewSide is the catalog of a source or of a destination.
type OverviewSide struct {
	Side     string          `json:"side"`
	Settings []OverviewValue `json:"settings"`
	Warnings []string        `json:"warnings,omitempty"`
}

// An OverviewValue is one setting. From is a file, a variable, a flag, "default", or what it follows from.
type OverviewValue struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	From   string `json:"from"`
	Hidden bool   `json:"hidden,omitempty"`
}

// Overview settles both sides' catalogs, as far as flags, files and variables name them. No catalog is
// touched.
func (p PairFlags) Overview(env Env) (Overview, error) {
	o := Overview{Catalogs: []OverviewEntry{}}
	c, err := env.configuration()
	if err != nil {
		return o, err
	}
	for _, f := range c.files {
		state := "not there"
		switch {
		case f.read:
			state = "read"
		case f.there:
			state = "not read: it is empty, or another one counts"
		}
		o.Files = append(o.Files, OverviewFile{f.path, state})
	}
	name, from, err := c.defaultCatalog()
	if err != nil {
		return o, err
	}
	if name != "" {
		o.Default = &OverviewValue{Key: "default-catalog", Value: name, From: from}
	}
	for _, name := range c.names() {
		found, err := c.catalog(name)
		if err != nil {
			return o, err
		}
		kind, _ := kindOf(found.properties)
		o.Catalogs = append(o.Catalogs, OverviewEntry{name, kind, found.from})
	}

	src, dst := p.sides()
	var base *Ref
	for _, side := range []struct {
		name, prefix string
		flags        TableFlags
	}{{"source", "src-", src}, {"destination", "dst-", dst}} {
		if !side.flags.Given() {
			continue
		}
		ref, table, err := resolveLoosely(side.prefix, side.flags, base, env)
		if err != nil {
			return o, err
		}
		o.Sides = append(o.Sides, ref.overview(side.name, table, side.flags))
		base = &ref
	}
	return o, nil
}

// resolveLoosely settles a catalog of which the table need not be named.
func resolveLoosely(prefix string, f TableFlags, base *Ref, env Env) (Ref, string, error) {
	name, table := f.CatalogName, f.Table
	if f.Namespace != "" {
		table = strings.Trim(f.Namespace+"."+f.Table, ".")
	}
	if f.Short != "" {
		catalog, rest, err := f.short(prefix)
		if err != nil {
			return Ref{}, "", err
		}
		name, table = catalog, plan.FormatPath(rest)
	}
	ref, err := resolveCatalog(prefix, name, f, base, env)
	return ref, table, err
}

// overview lists the settings of a catalog: what names it first, then its properties by name.
func (r Ref) overview(side, table string, f TableFlags) OverviewSide {
	o := OverviewSide{Side: side}
	add := func(key, value, from string) {
		if value != "" {
			o.Settings = append(o.Settings, OverviewValue{Key: key, Value: value, From: from})
		}
	}
	flagged := func(value, flag, otherwise string) string {
		if value != "" {
			return r.flag(flag)
		}
		return otherwise
	}
	named := flagged(f.CatalogName, "catalog-name", "default-catalog")
	if f.Short != "" {
		named = shortName(r.prefix)
	}
	add("catalog", r.Place.Name, named)
	add("kind", r.Place.Kind, flagged(f.Catalog, "catalog", cmp.Or(r.origins["type"], "where it is")))
	where := cmp.Or(r.origins["uri"], r.origin)
	if f.DBPath+f.URI != "" {
		where = flagged(f.DBPath, "db-path", r.flag("uri"))
	}
	add("db-path", r.Place.DBPath, where)
	if uri := cmp.Or(r.Properties["uri"], r.Place.URI); r.Place.DBPath == "" && uri != "" {
		text, hidden := shown("uri", uri)
		o.Settings = append(o.Settings, OverviewValue{"uri", text, where, hidden})
	}
	add("warehouse", r.Place.Warehouse, flagged(f.Warehouse, "warehouse", r.origins["warehouse"]))
	add("table", table, flagged(f.Short, strings.TrimSuffix(r.prefix, "-"), r.flag("namespace")))
	if f.Short != "" && table != "" {
		o.Settings[len(o.Settings)-1].From = shortName(r.prefix)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Properties)) {
		if key == "type" || key == "uri" || key == "warehouse" {
			continue
		}
		text, hidden := shown(key, r.Properties[key])
		o.Settings = append(o.Settings, OverviewValue{key, text, r.origins[key], hidden})
	}
	if r.Place.Kind == "rest" && r.Properties[timeoutKey] == "" {
		add(timeoutKey, fmt.Sprint(defaultTimeout.Milliseconds()), "default")
	}
	o.Warnings = append(leftOut(r.Properties), unknown(r.Properties)...)
	return o
}

// WriteText writes the overview for people.
func (o Overview) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "files")
	for _, f := range o.Files {
		fmt.Fprintf(t, "  %s\t%s\n", f.Path, f.State)
	}
	fmt.Fprintln(t, "catalogs")
	for _, c := range o.Catalogs {
		fmt.Fprintf(t, "  %s\t%s\tfrom %s\n", c.Name, cmp.Or(c.Kind, "unknown"), c.From)
	}
	if len(o.Catalogs) == 0 {
		fmt.Fprintln(t, "  none is configured")
	}
	if o.Default != nil {
		fmt.Fprintf(t, "  %s is meant where none is named\t\tfrom %s\n", o.Default.Value, o.Default.From)
	}
	for _, s := range o.Sides {
		fmt.Fprintln(t, s.Side)
		for _, v := range s.Settings {
			fmt.Fprintf(t, "  %s\t%s\tfrom %s\n", v.Key, v.Value, v.From)
		}
		for _, text := range s.Warnings {
			fmt.Fprintf(t, "  warning: %s\n", text)
		}
	}
	return t.Flush()
}
