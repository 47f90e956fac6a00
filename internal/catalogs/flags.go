package catalogs

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"icepipe/pkg/plan"
	"icepipe/pkg/rows"
)

// TableFlags name one table. Kong embeds them with the prefix src-, dst- or none.
type TableFlags struct {
	Catalog     string   `placeholder:"KIND" help:"Kind of the catalog: sqlite or rest."`
	CatalogName string   `placeholder:"NAME" help:"Catalog in .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__*; with a path, the name under which the database lists the table."`
	DBPath      string   `name:"db-path" placeholder:"FILE" help:"Database of a sqlite catalog."`
	URI         string   `name:"uri" placeholder:"URL" help:"Address of a rest catalog."`
	Property    []string `sep:"none" placeholder:"KEY=VALUE" help:"Property of the catalog or its storage, as PyIceberg names them. Repeatable. Others can see a command line: a token or credential is better kept in the configuration."`
	Warehouse   string   `placeholder:"DIR|NAME" help:"Warehouse of the catalog. No table is created: a sqlite catalog only notes it, a rest catalog may want its name."`
	Namespace   string   `placeholder:"NAMESPACE" help:"Namespace of the table, its levels joined by dots."`
	Table       string   `placeholder:"TABLE" help:"Name of the table."`

	// Short is CATALOG.namespace.table, where the command has a place for it.
	Short string `kong:"-"`
}

// SingleFlags are the flags of a command that touches one table, and the short form as an argument.
type SingleFlags struct {
	TableFlags `embed:""`
	Path       string `arg:"" optional:"" name:"CATALOG.namespace.table" help:"The table, in place of --catalog-name, --namespace and --table. Parts that hold a dot stand in double quotes."`
}

// PairFlags are the flags of a command that touches a source and a destination.
type PairFlags struct {
	Src         string     `name:"src" placeholder:"CATALOG.namespace.table" help:"The source, in place of --src-catalog-name, --src-namespace and --src-table."`
	Source      TableFlags `embed:"" prefix:"src-"`
	Dst         string     `name:"dst" placeholder:"CATALOG.namespace.table" help:"The destination, in place of --dst-catalog-name, --dst-namespace and --dst-table."`
	Destination TableFlags `embed:"" prefix:"dst-"`
}

// Given tells whether any flag is set.
func (f TableFlags) Given() bool {
	return f.Catalog+f.CatalogName+f.DBPath+f.URI+f.Warehouse+f.Namespace+f.Table+f.Short != "" || len(f.Property) > 0
}

// Flags returns the flags with the argument as their short form.
func (f SingleFlags) Flags() TableFlags {
	t := f.TableFlags
	if f.Path != "" {
		t.Short = f.Path
	}
	return t
}

// Resolve names the table that the flags of a command without prefix stand for.
func (f SingleFlags) Resolve(env Env) (Ref, error) { return f.Flags().Resolve(env) }

// Resolve names both tables.
func (p PairFlags) Resolve(env Env) (src, dst Ref, err error) {
	s, d := p.Source, p.Destination
	s.Short, d.Short = p.Src, p.Dst
	return ResolvePair(s, d, env)
}

// Resolve names the table that flags without prefix stand for.
func (f TableFlags) Resolve(env Env) (Ref, error) { return resolve("", f, nil, env) }

// ResolveOver is Resolve with base in place of what the flags leave out, by the rules that take a
// destination from the source: so flags override a recorded place.
func (f TableFlags) ResolveOver(base Ref, env Env) (Ref, error) { return resolve("", f, &base, env) }

// ResolvePair names the tables that flags with the prefixes src- and dst- stand for. Without a
// catalog of its own the destination is in the source's catalog, and only then the source's
// db-path, uri, properties and warehouse are its own too; namespace and name are the source's unless given.
func ResolvePair(src, dst TableFlags, env Env) (Ref, Ref, error) {
	s, err := resolve("src-", src, nil, env)
	if err != nil {
		return Ref{}, Ref{}, err
	}
	d, err := resolve("dst-", dst, &s, env)
	if err != nil {
		return Ref{}, Ref{}, err
	}
	return s, d, nil
}

// resolve settles one table's flags. base, if there is one, stands in for what they leave out.
func resolve(prefix string, f TableFlags, base *Ref, env Env) (Ref, error) {
	ref := Ref{prefix: prefix}
	var err error
	if ref.Identifier, err = f.identifier(prefix, base); err != nil {
		return Ref{}, err
	}
	name := f.CatalogName
	if f.Short != "" {
		parts, err := plan.ParsePath(f.Short)
		if err != nil {
			return Ref{}, usage("%s: %v", shortName(prefix), err)
		}
		if name = parts[0]; name == "" {
			return Ref{}, usage("%s %q: the catalog's name is empty", shortName(prefix), f.Short)
		}
	}
	if slices.Contains(ref.Identifier, "") {
		return Ref{}, usage("table %s: a part is empty", plan.FormatPath(ref.Identifier))
	}

	switch {
	case f.Catalog == "" && name == "" && f.URI == "" && base != nil:
		ref.takeCatalog(*base, f)
	case name != "":
		if err := ref.configure(name, f, env); err != nil {
			return Ref{}, err
		}
	case f.Catalog != "":
		ref.Place.Kind = f.Catalog
	case f.URI != "":
		ref.Place.Kind = "rest"
	case f.DBPath != "":
		ref.Place.Kind = "sqlite"
	default:
		return Ref{}, usage("one of %s KIND and %s NAME is needed to find the table", ref.flag("catalog"), ref.flag("catalog-name"))
	}

	if err := ref.setProperties(f.Property); err != nil {
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

// setProperties takes the properties of flags, which win over configured ones.
func (r *Ref) setProperties(given []string) error {
	for _, text := range given {
		key, value, ok := strings.Cut(text, "=")
		key = strings.ToLower(strings.TrimSpace(key)) // as those of the configuration
		if !ok || key == "" {
			return usage("%s: want KEY=VALUE, such as scope=catalog (what was given is not shown, since it may be a secret)", r.flag("property"))
		}
		if flag, own := map[string]string{"uri": "uri", "warehouse": "warehouse", "type": "catalog"}[key]; own {
			return usage("%s %s=…: give %s", r.flag("property"), key, r.flag(flag))
		}
		if slices.Contains(r.flagged, key) {
			return usage("%s %s is there twice: leave one out", r.flag("property"), key)
		}
		r.Properties = maps.Clone(r.Properties)
		if r.Properties == nil {
			r.Properties = map[string]string{}
		}
		r.Properties[key] = value
		r.flagged = append(r.flagged, key)
	}
	return nil
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
	}
}

// configure takes the catalog of that name from the configuration; with a db-path or a uri the name
// need not be there.
func (r *Ref) configure(name string, f TableFlags, env Env) error {
	r.Place.Kind, r.Place.Name = f.Catalog, name
	c, err := env.catalog(name)
	if err != nil {
		return err
	}
	said := "" // the kind, by the flag that says where the catalog is
	switch {
	case f.URI != "":
		said = "rest"
	case f.DBPath != "":
		said = "sqlite"
	}
	if c == nil {
		if said == "" {
			return env.notConfigured(name, r.flag("db-path")+" or "+r.flag("uri"))
		}
		r.Place.Kind = cmp.Or(r.Place.Kind, said)
		return nil
	}
	kind, err := kindOf(c.properties)
	switch {
	case err != nil && said != "":
		kind = said // which is all that is needed
	case err != nil:
		return usage("catalog %q in %s: %v: give it one", name, c.from, err)
	}
	if f.Catalog != "" && f.Catalog != kind {
		return usage("%s %s: catalog %q is of kind %q in %s", r.flag("catalog"), f.Catalog, name, kind, c.from)
	}
	if _, ok := kinds[kind]; !ok {
		return checkKind(kind, "catalog \""+name+"\" in "+c.from)
	}
	r.Place.Kind, r.Properties = kind, c.properties
	r.from, r.Place.Warehouse = c.from, withoutUser(c.properties["warehouse"])
	r.origin = "the uri of catalog \"" + name + "\" in " + c.from
	return nil
}

// identifier returns the table's namespace and name by the long flags.
func (f TableFlags) identifier(prefix string, base *Ref) ([]string, error) {
	if f.Short != "" {
		for _, other := range []struct{ flag, value string }{
			{"catalog-name", f.CatalogName}, {"namespace", f.Namespace}, {"table", f.Table},
		} {
			if other.value != "" {
				return nil, usage("%s %q and --%s%s say the same thing twice: leave one out", shortName(prefix), f.Short, prefix, other.flag)
			}
		}
		parts, err := plan.ParsePath(f.Short)
		if err != nil {
			return nil, usage("%s: %v", shortName(prefix), err)
		}
		if len(parts) < 3 {
			return nil, usage("%s %q: want CATALOG.namespace.table, a part that holds a dot in double quotes", shortName(prefix), f.Short)
		}
		return parts[1:], nil
	}

	var namespace []string
	var name string
	if base != nil {
		namespace, name = base.Identifier[:len(base.Identifier)-1], base.Identifier[len(base.Identifier)-1]
	}
	if f.Namespace != "" {
		parts, err := plan.ParsePath(f.Namespace)
		if err != nil {
			return nil, usage("--%snamespace: %v", prefix, err)
		}
		namespace = parts
	}
	if f.Table != "" {
		parts, err := plan.ParsePath(f.Table)
		if err != nil {
			return nil, usage("--%stable: %v", prefix, err)
		}
		if len(parts) != 1 {
			return nil, usage("--%stable %q: the namespace goes to --%snamespace; a name that holds a dot stands in double quotes", prefix, f.Table, prefix)
		}
		name = parts[0]
	}
	if len(namespace) == 0 {
		return nil, usage("--%snamespace is missing", prefix)
	}
	if name == "" {
		return nil, usage("--%stable is missing", prefix)
	}
	return append(slices.Clone(namespace), name), nil
}

// shortName returns how the short form is given: --src, --dst, or an argument.
func shortName(prefix string) string {
	if prefix == "" {
		return "table"
	}
	return "--" + strings.TrimSuffix(prefix, "-")
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
