package crash_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"icepipe/internal/crash"
)

// TestPoints holds the list against the calls in the sources: each point stands once.
func TestPoints(t *testing.T) {
	var placed []string
	for _, root := range []string{"../../internal", "../../pkg"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name, ok := pointOf(n); ok {
					placed = append(placed, name)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(placed)
	if want := slices.Sorted(slices.Values(crash.Points)); !slices.Equal(placed, want) {
		t.Errorf("the sources hold the points %q, the list %q", placed, want)
	}
}

// pointOf returns the name in a call crash.Here("name").
func pointOf(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Here" {
		return "", false
	}
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "crash" {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	name, err := strconv.Unquote(literal.Value)
	return name, err == nil
}

// TestUnarmed passes a point that the environment names: without the build tag nothing dies of it.
func TestUnarmed(t *testing.T) {
	t.Setenv("ICEPIPE_CRASH", crash.Points[0])
	crash.Here(crash.Points[0])
}
