//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A party is PyIceberg and Spark, which do something to a destination while a job is stopped: see
// testdata/interop/between.py.
type party struct {
	t    *testing.T
	bin  string
	dir  string
	talk *conversation
}

func newParty(t *testing.T) *party { return newPartyOf(t, "between.py") }

// newPartyOf is a party that a script of testdata/interop makes; args come behind the folder.
func newPartyOf(t *testing.T, script string, args ...string) *party {
	t.Helper()
	root := checkout(t)
	p := &party{t: t, bin: build(t, root), dir: t.TempDir()}
	cmd := exec.Command(filepath.Join(dependencies(t, root), "venv", "bin", "python"), append([]string{filepath.Join(root, "testdata", "interop", script), p.dir}, args...)...)
	p.talk = converse(t, cmd, func(err error, said string) {
		if err != nil || t.Failed() {
			t.Errorf("the other party ended with %v and said\n%s", err, said)
		}
	})
	p.answer()
	return p
}

// do asks for one thing and returns the answer.
func (p *party) do(what, table string, more ...any) map[string]any {
	p.t.Helper()
	request := map[string]any{"do": what}
	if table != "" {
		request["table"] = table
	}
	for i := 0; i < len(more); i += 2 {
		request[more[i].(string)] = more[i+1]
	}
	line, err := json.Marshal(request)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.talk.in.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	return p.answer()
}

func (p *party) answer() map[string]any {
	p.t.Helper()
	line, err := p.talk.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	var out map[string]any
	if err := json.Unmarshal(line, &out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// run runs a command line of the programs in the party's folder.
func (p *party) run(line string) (code int, stdout, stderr string) {
	p.t.Helper()
	cmd := exec.Command("bash", "-o", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = p.dir, []string{"PATH=" + p.bin + ":" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8"}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// flags are those of a job into a table, with batches of 100 rows.
func flags(table, more string) string {
	return fmt.Sprintf("--src-catalog sqlite --src-db-path src.db --src-namespace lab --src-table src --dst-catalog sqlite --dst-db-path dst.db --dst-namespace lab --dst-table %[1]s --batch-rows 100 --checkpoint %[1]s.json %[2]s", table, more)
}

// begin makes a table, with whatever else is to be there before, and begins a job that stops after five
// batches of twelve, since its stream breaks off.
func (p *party) begin(table, branch string) {
	p.t.Helper()
	b := ""
	if branch != "" {
		b = "--branch " + branch
	}
	code, _, said := p.run(fmt.Sprintf(`ice-scan --catalog sqlite --db-path src.db --namespace lab --table src --batch-rows 100 --record-batch-rows 20 -o %[1]s.arrows --compression none &&
		ice-reconcile --catalog sqlite --db-path dst.db --namespace lab --table %[1]s < %[1]s.arrows -o %[1]s.r.arrows --compression none &&
		head -c $(($(stat -c %%s %[1]s.r.arrows) * 46 / 100)) %[1]s.r.arrows | ice-write %[2]s --checkpoint %[1]s.json`, table, b))
	if code != 3 {
		p.t.Fatalf("the first run exited %d: %s", code, said)
	}
	if _, out, _ := p.run("ice-migrate status --checkpoint " + table + ".json"); !strings.Contains(out, "500 in 5 batches; 5 snapshots of the job are in the destination") {
		p.t.Fatalf("status %s", out)
	}
}

// A between is what happens to the destination between the crash of a job and its resume.
type between struct {
	name    string
	version string // of the format, 2 unless said
	branch  string
	before  func(p *party, table string) // before the job; may be nil
	happens func(p *party, table string)
	refusal []string // what the resume says, nil where it goes on
	accept  bool     // --accept-expired-history then lets it go on
	gone    int      // of our rows, which the other party deleted
	theirs  int      // rows of the other party
}

func betweens() []between {
	const rolledBack = "the destination was rolled back: the history of its branch"
	do := func(steps ...string) func(*party, string) {
		return func(p *party, table string) {
			for _, s := range steps {
				p.do(s, table)
			}
		}
	}
	return []between{
		{name: "append", happens: do("append"), theirs: 10},
		{name: "append_v1", version: "1", happens: do("append"), theirs: 10},
		{name: "append_v3", version: "3", happens: do("append", "compact"), theirs: 10},
		{name: "compaction", happens: do("compact")},
		{name: "manifests_rewritten", happens: do("rewrite_manifests")},
		{name: "expiry", happens: do("expire")},
		{name: "expiry_with_files", happens: do("append", "append", "expire_and_remove"), theirs: 20},
		{name: "expiry_after_manifests", happens: do("append", "rewrite_manifests", "expire_and_remove"), theirs: 10},
		{name: "compaction_and_expiry", happens: do("compact", "append", "expire_and_remove"), theirs: 10, accept: true,
			refusal: []string{"have expired", "if nothing was rolled back go on with --accept-expired-history"}},
		{name: "orphans_removed", happens: do("append", "remove_orphans"), theirs: 10},
		{name: "rows_deleted", happens: func(p *party, table string) { p.do("delete", table, "where", "id < 50") }, gone: 50},
		{name: "column_added", happens: func(p *party, table string) { p.do("add_column", table, "column", "later") }},
		{name: "rollback", before: do("append"), happens: func(p *party, table string) { p.do("rollback", table, "back", 2) }, refusal: []string{rolledBack}},
		{name: "rollback_and_append", happens: func(p *party, table string) {
			p.do("rollback", table, "back", 1)
			p.do("append", table)
		}, refusal: []string{rolledBack}},
		{name: "recreated", happens: do("recreate"), refusal: []string{"the destination was dropped and made anew (UUID ", "the job's rows are not in it"}},
		{name: "recreated_v1", version: "1", happens: do("recreate"), refusal: []string{"the destination was dropped and made anew (UUID "}},
		{name: "branch_kept", branch: "dev", before: branched, happens: do("append", "append", "expire"), theirs: 10},
		{name: "branch_replaced", branch: "dev", before: branched, happens: func(p *party, table string) {
			p.do("append", table)
			p.do("replace_branch", table, "branch", "dev", "snapshot", p.do("look", table)["snapshot"])
		}, refusal: []string{rolledBack + ` "dev"`}},
		{name: "branch_dropped", branch: "dev", before: branched, happens: func(p *party, table string) { p.do("drop_branch", table, "branch", "dev") },
			refusal: []string{`has no branch "dev"`}},
	}
}

// branched puts ten rows of the other party on main, and branches off there.
func branched(p *party, table string) {
	p.do("append", table)
	p.do("branch", table, "branch", "dev")
}

// TestBetween: PyIceberg and Spark append, compact, expire, roll back, make anew and switch branches between
// the crash of a job and its resume. The resume is refused, in one line with the remedy, or goes on, and
// then each row is there once.
func TestBetween(t *testing.T) {
	p := newParty(t)
	for i, b := range betweens() {
		if only := strings.Fields(os.Getenv("ONLY")); len(only) > 0 && !slices.Contains(only, b.name) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			p.t = t
			b.test(p, i%2 == 0)
		})
	}
}

func (b between) test(p *party, whole bool) {
	t, table := p.t, b.name
	version, branch := b.version, "main"
	if version == "" {
		version = "2"
	}
	if b.branch != "" {
		branch = b.branch
	}
	p.do("create", table, "version", version)
	if b.before != nil {
		b.before(p, table)
	}
	p.begin(table, b.branch)
	b.happens(p, table)
	resume := "ice-migrate " + flags(table, "")
	if b.branch != "" {
		resume += " --dst-branch " + b.branch
	}
	if !whole {
		resume = fmt.Sprintf("ice-write --checkpoint %[1]s.json < %[1]s.r.arrows", table)
		if b.branch != "" {
			resume = strings.Replace(resume, "ice-write", "ice-write --branch "+b.branch, 1)
		}
	}
	if b.refusal != nil {
		b.refused(p, resume)
		if !b.accept {
			return
		}
		resume = strings.Replace(resume, " --checkpoint", " --accept-expired-history --checkpoint", 1)
	}
	code, out, said := p.run(resume)
	if code != 0 || !strings.Contains(out, "(complete, resumed)") || !strings.Contains(out, "700 in 7 batches") {
		t.Fatalf("%s: exit %d, %s%s", resume, code, out, said)
	}
	got := p.do("look", table, "branch", branch)
	want := map[string]any{"ours": float64(1200 - b.gone), "ours_distinct": float64(1200 - b.gone), "theirs": float64(b.theirs)}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %v, want %v", name, got[name], n)
		}
	}
	if branch == "main" {
		if got := p.do("look_by_spark", table); got["ours"] != want["ours"] || got["ours_distinct"] != want["ours"] {
			t.Errorf("Spark reads %v, want %v", got, want)
		}
	}
}

// refused holds the resume to be refused, to change nothing, and to name the way back; and status to say
// so too.
func (b between) refused(p *party, resume string) {
	t := p.t
	t.Helper()
	state := func() string {
		_, out, _ := p.run("cat " + b.name + ".json; sqlite3 dst.db .dump 2>/dev/null || sha256sum dst.db; find dst_wh -type f | sort")
		return out
	}
	before := state()
	code, out, said := p.run(resume)
	if code != 1 || out != "" || !strings.HasPrefix(said, "Error: ") || strings.Count(said, "\n") > 2 {
		t.Errorf("%s: exit %d, stdout %q, stderr %q", resume, code, out, said)
	}
	for _, text := range b.refusal {
		if !strings.Contains(said, text) {
			t.Errorf("the refusal %q does not say %q", said, text)
		}
	}
	if !strings.HasPrefix(b.name, "recreated") && b.name != "branch_dropped" && !strings.Contains(said, "dest_snapshot_before") && !strings.Contains(said, "0 batches of the job") {
		t.Errorf("the refusal %q names no way back", said)
	}
	if after := state(); after != before {
		t.Errorf("the refused resume changed something:\n%s", firstChange(before, after))
	}
	_, status, _ := p.run("ice-migrate status --output json --checkpoint " + b.name + ".json")
	if !strings.Contains(status, `"next": "refuse: `) {
		t.Errorf("status %s", status)
	}
}
