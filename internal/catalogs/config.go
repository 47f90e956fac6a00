package catalogs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"
)

// Env is the part of the world that names catalogs.
type Env struct {
	Environ []string // NAME=value, as os.Environ has it
	Home    string
	Dir     string // the working directory, absolute

	// Warn, if there is one, is told what in the configuration of a table's catalog is left out.
	Warn func(text string)
}

// FromOS returns the Env of this process.
func FromOS() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil { // as Python does it; without a home there is no configuration in it
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	return Env{Environ: os.Environ(), Home: home, Dir: dir}, nil
}

// A configuration is what files and variables say of catalogs, by PyIceberg's rules
// (pyiceberg/utils/config.py): the first file that is found counts alone, and variables win over it.
// Of iceberg-go's own file the catalogs are taken whose names are in neither.
type configuration struct {
	files  []configFile
	root   *setting // of PyIceberg's file and variables
	native *setting // of iceberg-go's file
}

// configured is a catalog that a file or the environment describes.
type configured struct {
	properties map[string]string
	origins    map[string]string // of each property, for messages: a file, or a variable
	from       string            // of the whole, for messages: the file, or "the environment"
}

// configuration reads what there is.
func (e Env) configuration() (*configuration, error) {
	c := &configuration{}
	var err error
	if c.root, err = e.pyiceberg(&c.files); err != nil {
		return nil, err
	}
	if err := e.variables(c.root); err != nil {
		return nil, err
	}
	if c.native, err = e.icebergGo(&c.files); err != nil {
		return nil, err
	}
	return c, nil
}

// catalog returns the configured catalog of that name, which is found in whatever case; nil if
// there is none.
func (e Env) catalog(name string) (*configured, error) {
	c, err := e.configuration()
	if err != nil {
		return nil, err
	}
	return c.catalog(name)
}

// Configured returns the properties of the catalog of that name as files and variables have them, and
// where each is said; nil if there is no such catalog. They may hold secrets.
func (e Env) Configured(name string) (properties, origins map[string]string, err error) {
	c, err := e.catalog(name)
	if err != nil || c == nil {
		return nil, nil, err
	}
	return c.properties, c.origins, nil
}

// DefaultCatalog returns the name of the catalog that is meant where none is named, and where it is said;
// both are empty where there is none.
func (e Env) DefaultCatalog() (name, from string, err error) {
	c, err := e.configuration()
	if err != nil {
		return "", "", err
	}
	return c.defaultCatalog()
}

func (c *configuration) catalog(name string) (*configured, error) {
	for _, root := range []*setting{c.root, c.native} {
		catalogs, err := catalogsOf(root)
		if err != nil {
			return nil, err
		}
		if s := catalogs[strings.ToLower(name)]; s != nil {
			return s.catalog(name)
		}
	}
	return nil, nil
}

// catalogsOf are the catalogs of a file and variables.
func catalogsOf(root *setting) (map[string]*setting, error) {
	s := root.members["catalog"]
	switch {
	case s == nil:
		return nil, nil
	case s.members == nil:
		return nil, fmt.Errorf("%s: catalog is not a list of catalogs", s.place())
	}
	return s.members, nil
}

// catalog is a catalog's setting with its properties joined by dots. PyIceberg knows properties by such
// names alone, so that of a name that is there nested too the nested one is left out.
func (s *setting) catalog(name string) (*configured, error) {
	if s.members == nil {
		return nil, fmt.Errorf("%s: catalog %q is not a list of properties", s.place(), name)
	}
	c := &configured{properties: map[string]string{}, origins: map[string]string{}}
	c.from = "the environment"
	var add func(prefix string, members map[string]*setting) error
	add = func(prefix string, members map[string]*setting) error {
		for _, key := range slices.Sorted(maps.Keys(members)) {
			m, whole := members[key], prefix+key
			_, there := c.properties[whole]
			switch {
			case m.list:
				return fmt.Errorf("%s: property %q of catalog %q is neither text nor a mapping", m.place(), whole, name)
			case m.members != nil:
			case prefix != "" && there:
			default:
				c.properties[whole], c.origins[whole] = m.text, m.from
				if m.line > 0 {
					c.from = m.from
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(members)) { // deeper ones later, since they lose
			if m := members[key]; m.members != nil {
				if err := add(prefix+key+".", m.members); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := add("", s.members); err != nil {
		return nil, err
	}
	return c, nil
}

// defaultCatalog is the name of the catalog that is meant where none is named: default-catalog, and, as
// with PyIceberg, "default" without it. It is empty where no such catalog is configured.
func (c *configuration) defaultCatalog() (name, from string, err error) {
	for _, root := range []*setting{c.root, c.native} {
		s := root.members["default-catalog"]
		switch {
		case s == nil || s.members == nil && !s.list && s.text == "":
		case s.members != nil || s.list:
			return "", "", fmt.Errorf("%s: default-catalog is not a name", s.place())
		default:
			return s.text, s.from, nil
		}
	}
	if there, err := c.catalog("default"); err != nil || there != nil {
		return "default", "default", err
	}
	return "", "", nil
}

// names are those of all configured catalogs.
func (c *configuration) names() []string {
	all := map[string]*setting{}
	for _, root := range []*setting{c.root, c.native} {
		catalogs, _ := catalogsOf(root) // what is wrong with them was told before
		maps.Copy(all, catalogs)
	}
	return slices.Sorted(maps.Keys(all))
}

// notConfigured says where a catalog was looked for, and which there are.
func (e Env) notConfigured(name, pathFlag string) error {
	c, err := e.configuration()
	if err != nil {
		return err
	}
	var read, looked []string
	for _, f := range c.files {
		if looked = append(looked, f.dir); f.read {
			read = append(read, f.path)
		}
	}
	where := strings.Join(read, ", ")
	if len(read) == 0 {
		slices.Sort(looked)
		where = "no " + pyicebergFile + " in " + strings.Join(slices.Compact(looked), ", ")
	}
	has := "no catalog is"
	if known := c.names(); len(known) > 0 {
		has = "configured: " + strings.Join(known, ", ")
	}
	return usage("catalog %q is not configured (%s; %s): add it there, set %s, or give %s",
		name, where, has, variableOf(name, "uri"), pathFlag)
}

// errNoURI says what a catalog lacks.
var errNoURI = errors.New("it has no uri")

// kindOf tells the kind of a configured catalog as PyIceberg does: by its type, else by its uri.
func kindOf(properties map[string]string) (string, error) {
	scheme := schemeOf(properties["uri"])
	kind := strings.ToLower(properties["type"])
	switch {
	case kind == "sql" || kind == "" && (scheme == "sqlite" || isServer(scheme)):
		if properties["uri"] == "" {
			return "", errNoURI
		}
		if scheme == "sqlite" || properties["sql.dialect"] == "sqlite" && !isServer(scheme) {
			return "sqlite", nil
		}
		return "sql", nil
	case kind != "":
		return kind, nil
	case properties["uri"] == "":
		return "", errNoURI
	case strings.HasPrefix(scheme, "http"):
		return "rest", nil
	case scheme == "thrift":
		return "hive", nil
	}
	return "", fmt.Errorf("its uri of scheme %q does not tell its type", cmp.Or(scheme, "none"))
}

// schemeOf is the scheme of a uri without what follows a plus sign: sqlite of sqlite+pysqlite://.
func schemeOf(uri string) string {
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok {
		return ""
	}
	scheme, _, _ = strings.Cut(strings.ToLower(scheme), "+")
	return scheme
}
