package catalogs

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// resolve settles one table's flags. base, if there is one, stands in for what they leave out.
func resolve(prefix string, f TableFlags, base *Ref, env Env) (Ref, error) {
	identifier, err := f.identifier(prefix, base)
	if err != nil {
		return Ref{}, err
	}
	name := f.CatalogName
	if f.Short != "" {
		if name, _, err = f.short(prefix); err != nil {
			return Ref{}, err
		}
	}
	if slices.Contains(identifier, "") {
		return Ref{}, usage("table %s: a part is empty", plan.FormatPath(identifier))
	}
	ref, err := resolveCatalog(prefix, name, f, base, env)
	if err != nil {
		return Ref{}, err
	}
	ref.Identifier = identifier
	if env.Warn != nil && (base == nil || ref.from != base.from || ref.Place.Name != base.Place.Name) {
		for _, text := range leftOut(ref.Properties) {
			env.Warn(ref.catalog() + ": " + text)
		}
	}
	return ref, nil
}

// short takes the short form apart: the catalog's name, and what follows it.
func (f TableFlags) short(prefix string) (catalog string, rest []string, err error) {
	parts, err := plan.ParsePath(f.Short)
	if err != nil {
		return "", nil, usage("%s: %v", shortName(prefix), err)
	}
	if parts[0] == "" {
		return "", nil, usage("%s %q: the catalog's name is empty", shortName(prefix), f.Short)
	}
	return parts[0], parts[1:], nil
}

// catalog names the catalog, for messages.
func (r Ref) catalog() string {
	if r.Place.Name != "" {
		return "catalog \"" + r.Place.Name + "\""
	}
	return r.flag("catalog") + " " + r.Place.Kind
}

// resolveCatalog settles one catalog's flags; name is the catalog's, if they give one.
func resolveCatalog(prefix, name string, f TableFlags, base *Ref, env Env) (Ref, error) {
	ref := Ref{prefix: prefix}
	said := f.kind()
	switch {
	case f.Catalog == "" && name == "" && f.URI == "" && base != nil:
		ref.takeCatalog(*base, f)
	case name != "":
		if err := ref.configure(name, f, env); err != nil {
			return Ref{}, err
		}
	case said != "":
		ref.Place.Kind = said
	default:
		c, err := env.configuration()
		if err != nil {
			return Ref{}, err
		}
		if name, _, err = c.defaultCatalog(); err != nil {
			return Ref{}, err
		}
		if name == "" {
			return Ref{}, usage("one of %s KIND and %s NAME is needed to find the table, or default-catalog in %s", ref.flag("catalog"), ref.flag("catalog-name"), pyicebergFile)
		}
		if err := ref.configure(name, f, env); err != nil {
			return Ref{}, err
		}
	}

	if err := ref.setProperties("property", f.Both); err != nil {
		return Ref{}, err
	}
	if err := ref.setProperties(prefix+"property", f.Property); err != nil {
		return Ref{}, err
	}
	if err := checkKind(ref.Place.Kind, ref.flag("catalog")); err != nil {
		return Ref{}, err
	}
	if err := kinds[ref.Place.Kind].settle(&ref, f, env); err != nil {
		return Ref{}, err
	}
	return ref, nil
}

// kind is what flags say of a catalog's kind, if they do.
func (f TableFlags) kind() string {
	switch {
	case f.Catalog == "sql" && f.DBPath != "", f.Catalog == "sql" && schemeOf(f.URI) == "sqlite":
		return "sqlite"
	case f.Catalog != "":
		return f.Catalog
	case f.URI != "":
		kind, err := kindOf(map[string]string{"uri": f.URI})
		if err != nil {
			return "rest" // which says what an address looks like
		}
		return kind
	case f.DBPath != "":
		return "sqlite"
	}
	return ""
}

// setProperties takes the properties of a flag, which win over configured ones.
func (r *Ref) setProperties(flag string, given []string) error {
	var own []string
	for _, text := range given {
		key, value, ok := strings.Cut(text, "=")
		key = strings.ToLower(strings.TrimSpace(key)) // as those of the configuration
		if !ok || key == "" {
			return usage("--%s: want KEY=VALUE, such as scope=catalog (what was given is not shown, since it may be a secret)", flag)
		}
		if instead, ok := map[string]string{"uri": "uri", "warehouse": "warehouse", "type": "catalog"}[key]; ok {
			return usage("--%s %s=…: give %s", flag, key, r.flag(instead))
		}
		if slices.Contains(own, key) {
			return usage("--%s %s is there twice: leave one out", flag, key)
		}
		own = append(own, key)
		r.setProperty(key, value, "--"+flag)
		r.flagged = append(r.flagged, key)
	}
	return nil
}

// setProperty sets a property in maps that are the Ref's own, and notes where it comes from.
func (r *Ref) setProperty(key, value, from string) {
	r.Properties, r.origins = maps.Clone(r.Properties), maps.Clone(r.origins)
	if r.Properties == nil {
		r.Properties = map[string]string{}
	}
	if r.origins == nil {
		r.origins = map[string]string{}
	}
	r.Properties[key], r.origins[key] = value, from
}

// takeCatalog takes the catalog of base. A db-path of its own means another database, in which the
// catalog may have another name.
func (r *Ref) takeCatalog(base Ref, f TableFlags) {
	switch {
	case f.DBPath == "":
		r.Place, r.Properties, r.origin, r.from = base.Place, maps.Clone(base.Properties), base.origin, base.from
	case base.Place.Kind == "sqlite":
		r.Place, r.Properties = rows.Place{Kind: "sqlite"}, maps.Clone(base.Properties)
	default:
		r.Place = rows.Place{Kind: "sqlite"} // what is known of a server is no concern of a file
		return
	}
	r.origins = maps.Clone(base.origins)
}

// configure takes the catalog of that name from the configuration; with a db-path or a uri the name
// need not be there.
func (r *Ref) configure(name string, f TableFlags, env Env) error {
	r.Place.Name = name
	c, err := env.catalog(name)
	if err != nil {
		return err
	}
	said := f.kind()
	r.Place.Kind = said
	if c == nil {
		if f.URI == "" && f.DBPath == "" {
			return env.notConfigured(name, r.flag("db-path")+" or "+r.flag("uri"))
		}
		return nil
	}
	properties := c.properties
	if f.URI != "" { // which wins, as with another database's dialect
		properties = maps.Clone(properties)
		properties["uri"] = f.URI
	}
	kind, err := kindOf(properties)
	switch {
	case err != nil && (f.URI != "" || f.DBPath != ""):
		kind = said // which is all that is needed
	case errors.Is(err, errNoURI) && c.origins["uri"] != "":
		return usage("catalog %q: its uri in %s is empty: give it one, or a type", name, c.origins["uri"])
	case err != nil:
		return usage("catalog %q in %s: %v: give it one, or a type", name, c.from, err)
	}
	if f.Catalog != "" && f.Catalog != kind && !(f.Catalog == "sql" && kind == "sqlite") {
		return usage("%s %s: catalog %q is of kind %q in %s", r.flag("catalog"), f.Catalog, name, kind, c.from)
	}
	if _, ok := kinds[kind]; !ok {
		return checkKind(kind, "catalog \""+name+"\" in "+c.from)
	}
	r.Place.Kind, r.Properties, r.origins = kind, c.properties, c.origins
	r.from, r.Place.Warehouse = c.from, withoutUser(c.properties["warehouse"])
	r.origin = "the uri of catalog \"" + name + "\" in " + cmp.Or(c.origins["uri"], c.from)
	return nil
}

// address is where a server is reached, which may hold secrets, and where that is said: by the flag, as base has
// it, or by the configured uri; empty where nothing says it. same tells whether a uri is that of the place, which
// holds none.
func (r *Ref) address(f TableFlags, same func(full, address string) bool) (full, from string) {
	full, from = r.Properties["uri"], r.origins["uri"]
	switch {
	case f.URI != "":
		full, from = f.URI, r.flag("uri")
		r.origin = from
	case r.Place.URI != "" && !same(full, r.Place.URI):
		full = r.Place.URI
	}
	return full, from
}

// absolute returns the path of a local file or folder from the root; URIs stay.
func absolute(path, dir string) string {
	if path == "" || filepath.IsAbs(path) || strings.Contains(path, "://") || strings.HasPrefix(path, "file:") {
		return path
	}
	return filepath.Join(dir, path)
}

// withoutUser returns a URI without a user's name and password in it: a place holds no secrets.
// What stands before the @ of an Azure URI is a container.
func withoutUser(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	authority, path, slash := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 || !strings.Contains(authority[:at], ":") {
		return uri
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority[at+1:] + path
}
