//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCasts holds the golden results of pkg/plan's casts against Spark's and DuckDB's: the same, or on
// the list of intended differences, which docs/CASTS.md shows. An entry that nothing needs is an error too.
func TestCasts(t *testing.T) {
	type intended struct {
		Engine, From, To, Ours, Value, Why string
		used                               bool
	}
	var list []*intended
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "interop", "casts_differences.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var found struct {
		Compared    int
		Differences []struct{ Engine, From, To, Value, Ours, Theirs string }
		Skipped     []struct{ Engine, From, To string }
	}
	golden, err := filepath.Abs(filepath.Join("..", "..", "pkg", "plan", "testdata", "casts.golden"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dependencies(t, checkout(t)), "venv", "bin", "python"), "-W", "ignore", "casts.py", golden)
	cmd.Dir = filepath.Join("..", "..", "testdata", "interop")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("casts.py: %v\n%s", err, said.String())
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	fits := func(pattern, text string) bool {
		return regexp.MustCompile(`^(?:` + pattern + `)(?:\(.*|\[.*)?$`).MatchString(text)
	}
	for _, d := range found.Differences {
		known := false
		for _, i := range list {
			sort := i.Ours == "" || i.Ours == "value" && !strings.HasPrefix(d.Ours, "! ") || i.Ours != "value" && strings.HasPrefix(d.Ours, i.Ours)
			if sort && (i.Engine == "both" || i.Engine == d.Engine) && fits(i.From, d.From) && fits(i.To, d.To) &&
				(i.Value == "" || regexp.MustCompile(`^(?:`+i.Value+`)$`).MatchString(d.Value)) {
				known, i.used = true, true
				break
			}
		}
		if !known {
			t.Errorf("%s: %s from %s to %s is %s, ours %s", d.Engine, d.Value, d.From, d.To, d.Theirs, d.Ours)
		}
	}
	for _, i := range list {
		if !i.used {
			t.Errorf("nothing differs as listed: %+v", *i)
		}
	}
	if found.Compared < 10_000 {
		t.Errorf("%d values are compared", found.Compared)
	}
	t.Logf("%d values compared, %d differ as intended, %d pairs have no types there", found.Compared, len(found.Differences), len(found.Skipped))
}
