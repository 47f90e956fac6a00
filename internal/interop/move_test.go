//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A receipt is what the tests read of a program's receipt.
type receipt struct {
	RowsMoved     int   `json:"rows_moved"`
	RowsInserted  int   `json:"rows_inserted"`
	RowsUpdated   int   `json:"rows_updated"`
	RowsUnchanged int   `json:"rows_unchanged"`
	RowsSurplus   int   `json:"rows_surplus"`
	BytesRead     int   `json:"bytes_read"`
	BytesCopied   int   `json:"bytes_copied"`
	ByStore       int   `json:"bytes_copied_by_store"`
	Batches       int   `json:"batches"`
	Complete      bool  `json:"complete"`
	Resumed       bool  `json:"resumed"`
	NewSnapshots  []any `json:"new_snapshots"`
	Verification  *struct {
		Matches *bool `json:"matches"`
	} `json:"verification"`
}

// errorLines returns the lines that begin with "Error: ".
func (r run) errorLines() []string {
	var lines []string
	for line := range strings.Lines(r.stderr) {
		if strings.HasPrefix(line, "Error: ") {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// An outcome is what a move did.
type outcome struct {
	move          *move
	db            string // the destination's catalog
	runs          []run
	stdout        []byte
	before, after string   // metadata locations of the destination
	newFiles      []string // below the destination's location
	verified      []run    // ice-verify, where it was asked
	err           error    // of the harness
}

// refused reports whether the move was refused as it must be: one program said why and ended with
// code 1; those beside it saw a stream without end, or nobody who read theirs.
func (o *outcome) refused() (said string, err error) {
	var lines []string
	for _, r := range o.runs {
		own := r.errorLines()
		if len(own) > 1 {
			return "", fmt.Errorf("%d error lines of one program", len(own))
		}
		if r.code == 1 {
			lines = append(lines, own...)
			if len(own) == 0 {
				return "", errors.New("exit code 1 without an error line")
			}
		}
		if r.code != 0 && r.code != 1 && r.code != 3 && !r.piped {
			return "", fmt.Errorf("exit code %d", r.code)
		}
	}
	if len(lines) == 0 {
		return "", errors.New("no program ended with code 1")
	}
	if last := o.runs[len(o.runs)-1]; last.code == 0 {
		return "", errors.New("the last program ended with code 0")
	}
	switch {
	case o.move.begun && o.after != o.before:
	case o.after != o.before:
		return "", fmt.Errorf("the destination changed: %s", o.after)
	case len(o.newFiles) > 0 && !o.move.has("--commit", "once"): // staged ones are left for ice-migrate clean
		return "", fmt.Errorf("files were written before the refusal: %s", o.newFiles)
	}
	return strings.Join(lines, "\n"), nil
}

// succeeded reports whether every program ended with code 0.
func (o *outcome) succeeded() bool {
	return !slices.ContainsFunc(o.runs, func(r run) bool { return r.code != 0 })
}

// carry does a move into a copy of its own of the destination's catalog.
func (l *lab) carry(t *testing.T, m *move) *outcome {
	dir := filepath.Join(l.out, "cases", m.id())
	o := &outcome{move: m, db: filepath.Join(dir, "dst.db")}
	if o.err = os.MkdirAll(dir, 0o755); o.err != nil {
		return o
	}
	if o.err = copyFile(filepath.Join(l.out, "dst.db"), o.db); o.err != nil {
		return o
	}
	if o.before, o.err = metadataLocation(o.db, "dst", m.fixture.Identifier); o.err != nil {
		return o
	}
	location := filepath.Dir(filepath.Dir(localPath(o.before))) // metadata lies in LOCATION/metadata
	files, err := filesUnder(location)
	if err != nil {
		o.err = err
		return o
	}
	var stdout bytes.Buffer
	o.runs = pipe(t, l.programs(m, dir), &stdout)
	o.stdout = stdout.Bytes()
	if o.after, o.err = metadataLocation(o.db, "dst", m.fixture.Identifier); o.err != nil {
		return o
	}
	if m.way == byPipe && m.fixture.Mode == "" && o.succeeded() {
		args := []string{"--method", "row_count"}
		for _, flag := range m.scan {
			if flag[0] != "select" {
				args = append(args, "--source-"+flag[0], flag[1])
			}
		}
		verify := l.stage(m, dir, "ice-verify", l.source(m, "src-"), l.target(m, "dst-", dir), args)
		o.verified = pipe(t, []program{verify}, nil)
	}
	now, err := filesUnder(location)
	o.err = err
	for _, name := range now {
		if _, old := slices.BinarySearch(files, name); !old {
			o.newFiles = append(o.newFiles, name)
		}
	}
	return o
}

// programs says how the move is made.
func (l *lab) programs(m *move, dir string) []program {
	var scan, single []string
	for _, flag := range m.scan {
		single = append(single, "--"+flag[0], flag[1])
		if flag[0] == "snapshot" || flag[0] == "ref" {
			flag[0] = "source-" + flag[0]
		}
		scan = append(scan, "--"+flag[0], flag[1])
	}
	cut := []string{"--batch-rows", strconv.Itoa(m.batchRows)}
	if m.recordRows > 0 {
		cut = append(cut, "--record-batch-rows", strconv.Itoa(m.recordRows))
	}
	end := []string{"--output", "json"}
	if m.checkpoint {
		end = append(end, "--checkpoint", filepath.Join(dir, "checkpoint.json"))
	}
	stage := func(name string, args ...[]string) program { return l.stage(m, dir, name, args...) }
	if m.way == byMigrate {
		if m.fixture.Mode == "" {
			end = append(end, "--verify", "row_count") // an append to rows that are there differs by them
		}
		return []program{stage("ice-migrate", l.source(m, "src-"), l.target(m, "dst-", dir), cut, scan, m.plan, m.write, end)}
	}
	write := l.target(m, "", dir)
	if m.headerOnly {
		write = nil
	}
	return []program{
		stage("ice-scan", l.source(m, ""), cut, single),
		stage("ice-reconcile", l.target(m, "", dir), m.plan),
		stage("ice-write", write, m.write, end),
	}
}

// stage is a call of one program.
func (l *lab) stage(m *move, dir, name string, args ...[]string) program {
	p := program{args: slices.Concat(append([][]string{{filepath.Join(l.bin, name)}}, args...)...), dir: dir}
	if m.named {
		p.env = append(l.configured("SRC", m.db, "src_wh"), l.configured("DST", filepath.Join(dir, "dst.db"), "dst_wh")...)
	}
	return p
}

// configured are the variables that configure a catalog as PyIceberg wants it.
func (l *lab) configured(name, db, warehouse string) []string {
	prefix := "PYICEBERG_CATALOG__" + name + "__"
	return []string{prefix + "TYPE=sql", prefix + "URI=sqlite:///" + db, prefix + "WAREHOUSE=file://" + filepath.Join(l.out, warehouse)}
}

// source is how the move names its source: ice-scan takes the short form without a flag.
func (l *lab) source(m *move, prefix string) []string {
	if m.named {
		return short(prefix, "src."+m.fixture.Identifier)
	}
	args := l.place(prefix, m.db, "src_wh", m.fixture.Identifier)
	if !m.nameless {
		args = append(args, "--"+prefix+"catalog-name", m.catalog)
	}
	return args
}

// target is how the move names its destination.
func (l *lab) target(m *move, prefix, dir string) []string {
	if m.named {
		return short(prefix, "dst."+m.fixture.Identifier)
	}
	args := l.place(prefix, filepath.Join(dir, "dst.db"), "dst_wh", m.fixture.Identifier)
	return append(args, "--"+prefix+"catalog-name", "dst")
}

func short(prefix, name string) []string {
	if prefix == "" {
		return []string{name}
	}
	return []string{"--" + strings.TrimSuffix(prefix, "-"), name}
}

func (l *lab) place(prefix, db, warehouse, identifier string) []string {
	dot := strings.LastIndex(identifier, ".")
	return []string{
		"--" + prefix + "catalog", "sqlite", "--" + prefix + "db-path", db, "--" + prefix + "warehouse", filepath.Join(l.out, warehouse),
		"--" + prefix + "namespace", identifier[:dot], "--" + prefix + "table", identifier[dot+1:],
	}
}

// receipt reads what the last program printed.
func (o *outcome) receipt() (receipt, error) {
	var r receipt
	if err := json.Unmarshal(o.stdout, &r); err != nil {
		return r, fmt.Errorf("receipt: %w in %q", err, o.stdout)
	}
	return r, nil
}
