package catalogs

import (
	"slices"
	"strings"

	"icepipe/pkg/plan"
)

// TableFlags name one table. Kong embeds them with the prefix src-, dst- or none.
type TableFlags struct {
	Catalog     string   `placeholder:"KIND" help:"Kind of the catalog: sqlite, sql, rest, glue, hive or hadoop."`
	CatalogName string   `placeholder:"NAME" help:"Catalog in .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__*; with a path, the name under which the database lists the table."`
	DBPath      string   `name:"db-path" placeholder:"FILE" help:"Database of a sqlite catalog."`
	URI         string   `name:"uri" placeholder:"URL" help:"Address of a rest or hive catalog, or of the database of a sql catalog (postgresql://…, mysql://…); endpoint of a glue catalog. Others can see a command line: a password is better kept in the configuration."`
	Property    []string `sep:"none" placeholder:"KEY=VALUE" help:"Property of the catalog or its storage, as PyIceberg names them. Repeatable. Others can see a command line: a token or credential is better kept in the configuration."`
	Warehouse   string   `placeholder:"DIR|NAME" help:"Warehouse of the catalog. No table is created: a rest catalog may want its name, a hadoop catalog is this folder, others only note it."`
	Namespace   string   `placeholder:"NAMESPACE" help:"Namespace of the table, its levels joined by dots."`
	Table       string   `placeholder:"TABLE" help:"Name of the table."`

	// Short is CATALOG.namespace.table, where the command has a place for it.
	Short string `kong:"-"`
	// Both are the properties that a command with two tables gives to both.
	Both []string `kong:"-"`
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
	Property    []string   `sep:"none" placeholder:"KEY=VALUE" help:"Property of both catalogs or their storage; those of one side alone win over it. Repeatable."`
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
	s, d := p.sides()
	return ResolvePair(s, d, env)
}

// sides are the flags of each table.
func (p PairFlags) sides() (src, dst TableFlags) {
	src, dst = p.Source, p.Destination
	src.Short, dst.Short = p.Src, p.Dst
	src.Both, dst.Both = p.Property, p.Property
	return src, dst
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
