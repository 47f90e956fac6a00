package catalogs

import (
	"fmt"
	"strings"
)

// variableOf is the variable that sets a property of a catalog.
func variableOf(catalog, key string) string {
	upper := func(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
	return "PYICEBERG_CATALOG__" + upper(catalog) + "__" + strings.ReplaceAll(upper(key), ".", "__")
}

func (e Env) variable(name string) string {
	for _, v := range e.Environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// variables puts what PYICEBERG_CATALOG__NAME__KEY and PYICEBERG_DEFAULT_CATALOG say into root. In KEY
// "__" stands for a dot and "_" for a dash; in NAME "_" stands for a dash. Of two spellings of one name
// the later counts.
func (e Env) variables(root *setting) error {
	for _, v := range e.Environ {
		name, value, _ := strings.Cut(v, "=")
		rest, ok := strings.CutPrefix(strings.ToLower(name), "pyiceberg_")
		if !ok {
			continue
		}
		parts := strings.SplitN(rest, "__", 3)
		for i, part := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "__", "."), "_", "-")
		}
		if parts[0] != "catalog" && parts[0] != "default-catalog" {
			continue
		}
		if err := root.set(parts, &setting{text: value, from: name}); err != nil {
			return err
		}
	}
	return nil
}

// set puts a setting at the end of a path of names.
func (s *setting) set(path []string, to *setting) error {
	for _, name := range path[:len(path)-1] {
		next := s.members[name]
		if next == nil {
			next = &setting{members: map[string]*setting{}, from: to.from}
			s.members[name] = next
		}
		if next.members == nil {
			return fmt.Errorf("variable %s: %s says of %q that it is text, so that nothing can be set in it: remove one of them", to.from, next.place(), name)
		}
		s = next
	}
	s.members[path[len(path)-1]] = to
	return nil
}
