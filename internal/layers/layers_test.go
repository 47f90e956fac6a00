package layers

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write imports.txt anew")

// imports lists the packages of this module with what each imports, the standard library left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "icepipe/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		words := strings.Fields(line)
		all[words[0]] = slices.DeleteFunc(words[1:], func(p string) bool {
			first, _, _ := strings.Cut(p, "/")
			return first != "icepipe" && !strings.Contains(first, ".")
		})
	}
	return all
}

// TestImports holds every package's imports against imports.txt, so that a new arrow is seen in review.
func TestImports(t *testing.T) {
	all := imports(t)
	var text bytes.Buffer
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&text, "%s\n", name)
		for _, p := range all[name] {
			fmt.Fprintf(&text, "\t%s\n", p)
		}
	}
	if *update {
		if err := os.WriteFile("imports.txt", text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, text.Bytes()) {
		t.Errorf("imports are not those of imports.txt; if the new arrow is right, run: go test ./internal/layers -update\n%s", text.Bytes())
	}
}

// TestLadder holds the rules that no golden file can: imports go one way, down this list.
func TestLadder(t *testing.T) {
	ladder := []string{"icepipe/cmd/", "icepipe/internal/command", "icepipe/pkg/migrate", "icepipe/internal/lake", "icepipe/internal/datafile"}
	step := func(p string) int {
		return slices.IndexFunc(ladder, func(prefix string) bool {
			return p == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(p, prefix)
		})
	}
	forbidden := map[string][]string{
		"icepipe/pkg/rows":      {"icepipe/", "github.com/apache/iceberg-go", "github.com/alecthomas/kong"},
		"icepipe/pkg/arrowipc":  {"icepipe/internal", "icepipe/pkg/migrate", "icepipe/pkg/plan", "github.com/apache/iceberg-go"},
		"icepipe/pkg/ckpt":      {"icepipe/", "github.com/"},
		"icepipe/pkg/plan":      {"icepipe/internal", "icepipe/pkg/migrate", "github.com/apache/iceberg-go/catalog", "github.com/apache/iceberg-go/table"},
		"icepipe/pkg/migrate":   {"icepipe/pkg/arrowipc", "icepipe/internal/command", "icepipe/internal/catalogs", "github.com/alecthomas/kong"},
		"icepipe/internal/lake": {"icepipe/pkg/arrowipc", "icepipe/pkg/migrate", "icepipe/pkg/ckpt", "icepipe/internal/catalogs"},
	}
	for name, list := range imports(t) {
		for _, p := range list {
			if from, to := step(name), step(p); from >= 0 && to >= 0 && to < from {
				t.Errorf("%s imports %s, up the ladder", name, p)
			}
			for _, prefix := range forbidden[name] {
				if strings.HasPrefix(p, prefix) {
					t.Errorf("%s imports %s", name, p)
				}
			}
		}
	}
}

// TestExitCodes holds the table of exit codes in README.md and in every program's manual against the
// design's.
func TestExitCodes(t *testing.T) {
	meanings := map[string]string{
		"0": "done; the tables agree", "1": "failed, a refused resume included", "2": "the tables differ",
		"3": "the input stream ended before its seal", "64": "the command line is wrong", "130": "interrupted; what was committed is recorded",
	}
	documents := map[string]string{"../../README.md": "| %s | ", "../../docs/DESIGN.md": "| %s | "}
	for _, name := range []string{"scan", "reconcile", "write", "migrate", "verify", "cat"} {
		documents["../../cmd/ice-"+name+"/main.go"] = "//\t%-3s  "
	}
	for path, form := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for code, meaning := range meanings {
			start := fmt.Sprintf(form, code)
			found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
				return strings.HasPrefix(line, start) && strings.Contains(line, meaning)
			})
			if !found {
				t.Errorf("%s does not say of exit code %s: %s", path, code, meaning)
			}
		}
	}
}
