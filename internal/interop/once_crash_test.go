//go:build interop

package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icepipe/internal/crash"
	"icepipe/internal/demo"
)

// TestOnceCrash lets a run that lands as one snapshot, of rows that are added and of rows that replace others, die
// at each crash point, each time that it is passed, and the other form go on. In between readers see all of the
// rows of before, or all of those of the job.
func TestOnceCrash(t *testing.T) {
	root := checkout(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	call(t, exec.Command("go", "build", "-C", root, "-ldflags", "-s -w", "-tags", "crash", "-o", bin+"/", "./cmd/ice-scan", "./cmd/ice-reconcile", "./cmd/ice-write", "./cmd/ice-migrate", "./cmd/ice-cat"))
	if err := demo.Make(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	c := &crashing{t: t, dir: dir, bin: bin}
	if code, said := c.migrate("", "order_id > 100000 and order_id <= 100010", ""); code != 0 {
		t.Fatal(said)
	}
	c.before = c.rows()
	call(t, exec.Command("cp", "-a", filepath.Join(dir, "dst.db"), filepath.Join(dir, "dst_wh"), c.folder("kept")))

	died := 0
	for _, mode := range []string{"--commit once", "--write-mode overwrite_partition --yes"} {
		for _, point := range crash.Points {
			if slices.Contains([]string{"lake.schema-changed"}, point) {
				continue // the run before made the schema's changes
			}
			if slices.Contains([]string{"lake.deletes-written", "migrate.thinned"}, point) {
				continue // no rows are taken out
			}
			for n := 1; ; n++ {
				fired := c.trial(mode, fmt.Sprintf("%s:%d", point, n), n%2 == 0)
				if !fired {
					if n == 1 {
						t.Errorf("%s: %s is never passed", mode, point)
					}
					break
				}
				died++
			}
		}
	}
	say("once: %d runs died", died)
	if died < 40 {
		t.Errorf("%d runs died", died)
	}
}

// A crashing is a folder with the tables of the demonstration, and programs that die.
type crashing struct {
	t        *testing.T
	dir, bin string
	before   []string
}

func (c *crashing) folder(name string) string {
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// the rows that the job moves: four batches of ten.
const crashRows = "order_id <= 40"

func (c *crashing) trial(mode, point string, piped bool) (fired bool) {
	c.t.Helper()
	call := func(args ...string) {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			c.t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	call("rm", "-rf", c.dir+"/dst_wh", c.dir+"/dst.db", c.dir+"/job.json", c.dir+"/job.json.staged")
	call("cp", "-a", c.dir+"/kept/dst.db", c.dir+"/kept/dst_wh", c.dir)
	mode += " --checkpoint job.json"
	resumes := strings.HasPrefix(point, "migrate.marks-found") || strings.HasPrefix(point, "migrate.redone")
	if resumes {
		if code, said := c.run(piped, "migrate.pending-noted:1", mode); code != -1 {
			c.t.Fatalf("%s: exit %d\n%s", point, code, said)
		}
	}
	code, said := c.run(piped, point, mode)
	if code == 0 && !strings.HasSuffix(point, ":1") || code == 0 && resumes {
		return false
	}
	if code != -1 {
		c.t.Errorf("%s, %s: exit %d\n%s", mode, point, code, said)
		return false
	}
	got, after := c.rows(), c.after(mode)
	if !slices.Equal(got, c.before) && !slices.Equal(got, after) {
		c.t.Errorf("%s, %s: between the runs the table holds %d rows", mode, point, len(got))
	}
	code, said = c.run(!piped, "", mode)
	if code != 0 && !strings.Contains(said, "completed migration") {
		c.t.Errorf("%s, %s: the other form exits %d\n%s", mode, point, code, said)
	}
	if got := c.rows(); !slices.Equal(got, after) {
		c.t.Errorf("%s, %s: %d rows, want %d", mode, point, len(got), len(after))
	}
	return true
}

// after are the rows that are to be there when a job in that mode is done.
func (c *crashing) after(mode string) []string {
	var out []string
	if !strings.Contains(mode, "overwrite") {
		out = slices.Clone(c.before)
	}
	for i := range 40 {
		out = append(out, fmt.Sprint(i+1))
	}
	slices.Sort(out)
	return out
}

func (c *crashing) run(piped bool, point, mode string) (int, string) {
	if !piped {
		return c.migrate(point, crashRows, mode)
	}
	table := func(side, name string) string {
		return "--catalog sqlite --db-path " + side + ".db " + name
	}
	return c.shell(point, fmt.Sprintf("set -o pipefail; env -u ICEPIPE_CRASH %[1]s/ice-scan %[2]s --row-filter '%[3]s' --batch-rows 10 | env -u ICEPIPE_CRASH %[1]s/ice-reconcile %[4]s %[5]s | %[1]s/ice-write %[6]s >/dev/null",
		c.bin, table("src", "--namespace sales --table orders"), crashRows, table("dst", "--namespace warehouse --table orders"), crashPlan, mode))
}

const crashPlan = "--column-mapping order_total:total_amount --on-missing-in-source null --on-missing-in-dest auto_add"

func (c *crashing) migrate(point, filter, mode string) (int, string) {
	return c.shell(point, fmt.Sprintf("exec %s/ice-migrate --src-catalog sqlite --src-db-path src.db --src-namespace sales --src-table orders --dst-catalog sqlite --dst-db-path dst.db --dst-namespace warehouse --dst-table orders %s --row-filter '%s' --batch-rows 10 %s",
		c.bin, crashPlan, filter, mode))
}

// shell runs a line; -1 is that a program was killed.
func (c *crashing) shell(point, line string) (int, string) {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir, cmd.Env = c.dir, append(environment(program{dir: c.dir}), "ICEPIPE_CRASH="+point)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if code == 128+9 {
		code = -1
	}
	return code, said.String()
}

// rows are the destination's order IDs, in order of their text.
func (c *crashing) rows() []string {
	c.t.Helper()
	cmd := exec.Command("bash", "-c", fmt.Sprintf("set -o pipefail; %[1]s/ice-scan --catalog sqlite --db-path dst.db --namespace warehouse --table orders --select order_id | %[1]s/ice-cat --format csv", c.bin))
	cmd.Dir, cmd.Env = c.dir, environment(program{dir: c.dir})
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	slices.Sort(lines[1:])
	return lines[1:]
}
