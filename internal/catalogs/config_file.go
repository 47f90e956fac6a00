package catalogs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The files that describe catalogs.
const (
	pyicebergFile = ".pyiceberg.yaml"
	icebergGoFile = ".iceberg-go.yaml"
)

// A configFile is a place where a configuration may be.
type configFile struct {
	dir, path string
	there     bool
	read      bool // it is the one that counts
}

// A setting is text, a mapping of names in lower case, or a list, and knows where it is said.
type setting struct {
	text    string
	members map[string]*setting // of a mapping
	list    bool
	from    string // a file, or a variable
	line    int    // of the file; 0 for a variable
}

// place is where a setting is said.
func (s *setting) place() string {
	if s.line > 0 {
		return fmt.Sprintf("%s:%d", s.from, s.line)
	}
	return s.from
}

// pyiceberg reads PyIceberg's file: the first that is not empty, in the folder that PYICEBERG_HOME names,
// the home folder, and the working directory.
func (e Env) pyiceberg(files *[]configFile) (*setting, error) {
	return e.first(files, pyicebergFile, []string{e.variable("PYICEBERG_HOME"), e.Home, e.Dir}, strictly)
}

// icebergGo reads iceberg-go's file, in the folder that GOICEBERG_HOME names, else in the home folder, and
// gives its keys PyIceberg's names.
func (e Env) icebergGo(files *[]configFile) (*setting, error) {
	dir := e.variable("GOICEBERG_HOME")
	if dir == "" {
		dir = e.Home
	}
	root, err := e.first(files, icebergGoFile, []string{dir}, loosely)
	if err != nil {
		return nil, err
	}
	catalogs, err := catalogsOf(root)
	if err != nil {
		return nil, err
	}
	for _, c := range catalogs {
		for own, name := range map[string]string{"sql-driver": "sql.driver", "sql-dialect": "sql.dialect", "aws-profile": "client.profile-name"} {
			if s := c.members[own]; s != nil {
				c.members[name] = s
				delete(c.members, own)
			}
		}
	}
	return root, nil
}

// first reads the first file of that name that is there and not empty.
func (e Env) first(files *[]configFile, name string, dirs []string, accept func(*yaml.Node) error) (*setting, error) {
	root := &setting{members: map[string]*setting{}}
	found := false
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		dir = absolute(dir, e.Dir)
		f := configFile{dir: dir, path: filepath.Join(dir, name)}
		if slices.ContainsFunc(*files, func(other configFile) bool { return other.path == f.path }) {
			continue
		}
		st, err := os.Stat(f.path)
		if f.there = err == nil && st.Mode().IsRegular(); f.there && !found {
			text, err := os.ReadFile(f.path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("catalog configuration: %w", err)
			}
			read, err := parse(f.path, text, accept)
			if err != nil {
				return nil, err
			}
			if read != nil {
				root, f.read, found = read, true, true
			}
		}
		*files = append(*files, f)
	}
	return root, nil
}

// parse reads a file's text; nil if there is nothing in it.
func parse(path string, text []byte, accept func(*yaml.Node) error) (*setting, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("catalog configuration %q: %w", path, err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, fmt.Errorf("catalog configuration %q: line %d: there is more than one document: leave one", path, more.Line)
	} else if err != io.EOF {
		return nil, fmt.Errorf("catalog configuration %q: %w", path, err)
	}
	node := doc.Content[0]
	if node.Kind == yaml.ScalarNode && node.Value == "" {
		return nil, nil
	}
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("catalog configuration %q: line %d: it is not a mapping: it begins with \"catalog:\"", path, node.Line)
	}
	s, err := settingOf(path, node, accept)
	if err != nil {
		return nil, fmt.Errorf("catalog configuration %q: %w", path, err)
	}
	return s, nil
}

// settingOf is a node as text, since PyIceberg reads no types from the file. Of names that differ by case
// alone the later counts.
func settingOf(path string, node *yaml.Node, accept func(*yaml.Node) error) (*setting, error) {
	if err := accept(node); err != nil {
		return nil, err
	}
	s := &setting{from: path, line: node.Line}
	switch node.Kind {
	case yaml.AliasNode:
		return settingOf(path, node.Alias, accept)
	case yaml.MappingNode:
		s.members = map[string]*setting{}
		seen := map[string]bool{}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if err := accept(key); err != nil {
				return nil, err
			}
			if key.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("line %d: a name is not text", key.Line)
			}
			if seen[key.Value] {
				return nil, fmt.Errorf("line %d: %q is there twice: leave one out", key.Line, key.Value)
			}
			seen[key.Value] = true
			member, err := settingOf(path, node.Content[i+1], accept)
			if err != nil {
				return nil, err
			}
			s.members[strings.ToLower(key.Value)] = member
		}
	case yaml.SequenceNode:
		s.list = true
		for _, n := range node.Content {
			if _, err := settingOf(path, n, accept); err != nil {
				return nil, err
			}
		}
	default:
		s.text = node.Value
	}
	return s, nil
}

// strictly refuses what strictyaml, with which PyIceberg reads its file, refuses.
func strictly(node *yaml.Node) error {
	switch {
	case node.Style&yaml.FlowStyle != 0:
		return fmt.Errorf("line %d: PyIceberg takes no {…} and no […] here: write one a line", node.Line)
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return fmt.Errorf("line %d: PyIceberg takes no anchors and aliases: write it out", node.Line)
	case node.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("line %d: PyIceberg takes no tags: all is text without them", node.Line)
	case node.Kind == yaml.ScalarNode && node.Value == "<<" && node.Style == 0:
		return fmt.Errorf("line %d: PyIceberg takes no merge key <<", node.Line)
	}
	return nil
}

// loosely refuses what would not end.
func loosely(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		return fmt.Errorf("line %d: aliases are not read: write it out", node.Line)
	}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		node.Value = ""
	}
	return nil
}
