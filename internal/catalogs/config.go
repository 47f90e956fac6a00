package catalogs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const configFile = ".pyiceberg.yaml"

// Env is the part of the world that names catalogs.
type Env struct {
	Environ []string // NAME=value, as os.Environ has it
	Home    string
	Dir     string // the working directory, absolute
}

// FromOS returns the Env of this process.
func FromOS() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // no home: no configuration in it
	}
	return Env{Environ: os.Environ(), Home: home, Dir: dir}, nil
}

// configured is a catalog that a file or the environment describes.
type configured struct {
	properties map[string]string
	from       string // for messages: the file, or "the environment"
}

// catalog returns the configured catalog of that name, which is found in whatever case; nil if
// there is none. Variables win over the file, as with PyIceberg.
func (e Env) catalog(name string) (*configured, error) {
	name = strings.ToLower(name)
	path, root, err := e.file()
	if err != nil {
		return nil, err
	}
	c := configured{properties: map[string]string{}}
	if node := member(member(root, "catalog"), name); node != nil {
		if node.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s:%d: catalog %q is not a list of properties", path, node.Line, name)
		}
		if err := flatten(c.properties, "", node); err != nil {
			return nil, fmt.Errorf("%s: catalog %q: %w", path, name, err)
		}
		c.from = path
	}
	found := e.variables(func(catalog, key, value string) {
		if catalog == name {
			c.properties[key] = value
		}
	})
	switch {
	case c.from != "":
	case slices.Contains(found, name):
		c.from = "the environment"
	default:
		return nil, nil
	}
	return &c, nil
}

// notConfigured says where a catalog was looked for.
func (e Env) notConfigured(name, pathFlag string) error {
	path, root, err := e.file()
	if err != nil {
		return err
	}
	known := e.variables(func(string, string, string) {})
	if catalogs := member(root, "catalog"); catalogs != nil && catalogs.Kind == yaml.MappingNode {
		for i := 0; i < len(catalogs.Content); i += 2 {
			known = append(known, strings.ToLower(catalogs.Content[i].Value))
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)

	where := path
	if path == "" {
		where = "no " + configFile + " in " + strings.Join(e.directories(), ", ")
	}
	has := "no catalog is"
	if len(known) > 0 {
		has = "configured: " + strings.Join(known, ", ")
	}
	return usage("catalog %q is not configured (%s; %s): add it there, set PYICEBERG_CATALOG__%s__URI, or give %s",
		name, where, has, strings.ToUpper(strings.ReplaceAll(name, "-", "_")), pathFlag)
}

// directories are those that may hold the configuration, in PyIceberg's order.
func (e Env) directories() []string {
	var out []string
	for _, dir := range []string{e.variable("PYICEBERG_HOME"), e.Home, e.Dir} {
		if dir != "" {
			out = append(out, absolute(dir, e.Dir))
		}
	}
	return out
}

func (e Env) variable(name string) string {
	for _, v := range e.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// variables calls set for each PYICEBERG_CATALOG__NAME__KEY, and returns the names of the
// catalogs. In KEY "__" stands for a dot and "_" for a dash; in NAME "_" stands for a dash.
func (e Env) variables(set func(catalog, key, value string)) (names []string) {
	for _, v := range e.Environ {
		name, value, _ := strings.Cut(v, "=")
		rest, ok := strings.CutPrefix(strings.ToLower(name), "pyiceberg_catalog__")
		if !ok {
			continue
		}
		catalog, key, ok := strings.Cut(rest, "__")
		if !ok || catalog == "" || key == "" {
			continue
		}
		catalog = strings.ReplaceAll(catalog, "_", "-")
		key = strings.ReplaceAll(strings.ReplaceAll(key, "__", "."), "_", "-")
		set(catalog, key, value)
		names = append(names, catalog)
	}
	return names
}

// file returns the path and the root of the first configuration that is not empty.
func (e Env) file() (string, *yaml.Node, error) {
	for _, dir := range e.directories() {
		path := filepath.Join(dir, configFile)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("catalog configuration: %w", err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return "", nil, fmt.Errorf("catalog configuration %q: %w", path, err)
		}
		if len(doc.Content) == 0 || len(doc.Content[0].Content) == 0 {
			continue
		}
		return path, doc.Content[0], nil
	}
	return "", nil, nil
}

// member returns the value of a key, which is found in whatever case.
func member(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(node.Content); i += 2 {
		if strings.EqualFold(node.Content[i].Value, key) {
			return node.Content[i+1]
		}
	}
	return nil
}

// flatten sets the members of node as text: PyIceberg reads no types from the file either. Keys of
// nested mappings are joined by dots.
func flatten(out map[string]string, prefix string, node *yaml.Node) error {
	for i := 0; i < len(node.Content); i += 2 {
		key, value := prefix+strings.ToLower(node.Content[i].Value), node.Content[i+1]
		if _, twice := out[key]; twice {
			return fmt.Errorf("line %d: property %q is there twice", value.Line, key)
		}
		switch value.Kind {
		case yaml.ScalarNode:
			out[key] = value.Value
		case yaml.MappingNode:
			if err := flatten(out, key+".", value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("line %d: property %q is neither text nor a mapping", value.Line, key)
		}
	}
	return nil
}
