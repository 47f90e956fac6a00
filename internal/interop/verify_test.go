//go:build interop

package interop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A verification is what the tests read of what ice-verify prints.
type verification struct {
	Matches              bool     `json:"matches"`
	MismatchedPartitions []string `json:"mismatched_partitions"`
	Partitions           []struct {
		Partition    string `json:"partition"`
		SourceRows   int64  `json:"source_rows"`
		DestRows     int64  `json:"dest_rows"`
		SourceDigest string `json:"source_digest"`
		DestDigest   string `json:"dest_digest"`
	} `json:"partitions"`
	Differences *struct {
		Missing, Extra, Changed int64
		Rows                    []struct {
			Kind    string
			Columns []string
			Source  map[string]any
			Dest    map[string]any
		}
	} `json:"differences"`
	Details []string `json:"details"`
}

// A digest is that of one partition, whose name the script may spell otherwise.
type digest struct {
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"`
}

// verify runs ice-verify with JSON for its output.
func (l *lab) verify(t *testing.T, m *move, dir string, args ...[]string) (verification, run) {
	t.Helper()
	var out bytes.Buffer
	r := pipe(t, []program{l.stage(m, dir, "ice-verify", append(args, []string{"--output", "json"})...)}, &out)[0]
	var v verification
	if r.code == 0 || r.code == 2 {
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Errorf("%v in %q", err, out.String())
		}
	}
	return v, r
}

// leastVerified is the number of fixtures that were verified when they were last counted.
const leastVerified = 70

// TestVerifyFixtures moves every fixture and verifies what arrived: by partition_hash and by diff, as the job's
// rows and as the whole table, and from the destination to the source. The digests are those that the script of
// docs/DIGEST.md makes of the rows that PyIceberg reads. ICEPIPE_TORTURE=1 takes all fixtures, else every second
// one is taken.
func TestVerifyFixtures(t *testing.T) {
	l := openLab(t)
	type result struct {
		o *outcome
		v verification
	}
	var done []result
	back := 0
	var mu sync.Mutex
	verify := func(m *move) {
		f := m.fixture
		o := l.carry(t, m)
		if o.err != nil || !o.succeeded() {
			if !m.mayRefuse {
				t.Errorf("%s: %v\n%s", f.Name, o.err, told(o.runs))
			}
			return
		}
		t.Run(f.Name, func(t *testing.T) {
			dir := filepath.Dir(o.db)
			pair := [][]string{l.source(m, "src-"), l.target(m, "dst-", dir)}
			by := []string{"--checkpoint", filepath.Join(dir, "checkpoint.json")}
			check := func(args ...string) verification {
				t.Helper()
				v, r := l.verify(t, m, dir, slices.Concat(pair, [][]string{by, args})...)
				if r.code != 0 || !v.Matches {
					t.Errorf("%v: %+v\n%s", args, v, told([]run{r}))
				}
				return v
			}
			check("--method", "partition_hash")
			check("--method", "diff")
			if f.Mode == "append" {
				return // the destination has other rows too
			}
			v := check("--method", "partition_hash", "--scope", "table")
			check("--method", "diff", "--scope", "table")
			n := l.verifyBack(t, m, dir)
			mu.Lock()
			defer mu.Unlock()
			done = append(done, result{o, v})
			back += n
		})
	}
	var moves []*move
	for i := range l.tables {
		if f := &l.tables[i]; f.appends() && f.ExpectError == "" && (tortures() || i%3 == 0 || len(l.only) > 0) {
			m := l.plain(t, f, byMigrate)
			m.checkpoint = true
			moves = append(moves, m)
		}
	}
	inPairs(moves, verify)
	slices.SortFunc(done, func(a, b result) int { return cmp.Compare(a.o.move.id(), b.o.move.id()) })
	least := leastVerified
	if !tortures() {
		least /= 3
	}
	if len(l.only) == 0 && (len(done) < least || back < least*2/3) {
		t.Errorf("%d fixtures are verified, %d of them back", len(done), back)
	}

	var moved []*outcome
	for _, d := range done {
		moved = append(moved, d.o)
	}
	db := l.gather(t, moved)
	out := filepath.Join(l.out, "cases", "digests")
	call(t, l.script("verify_digests.py", filepath.Join(l.root, "docs", "DIGEST.md"), l.list(t, "digests.tsv", db, moved), out))
	same := 0
	for _, d := range done {
		t.Run("script "+d.o.move.fixture.Name, func(t *testing.T) {
			want, err := readDigests(filepath.Join(out, d.o.move.id()))
			if d.o.move.fixture.notice("pyiceberg") != "" {
				return // it cannot read the table, or reads it wrongly
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []digest
			for _, p := range d.v.Partitions {
				if p.SourceDigest != p.DestDigest || p.SourceRows != p.DestRows {
					t.Errorf("partition %+v", p)
				}
				got = append(got, digest{p.DestRows, p.DestDigest})
			}
			order := func(a, b digest) int { return cmp.Compare(a.Digest, b.Digest) }
			slices.SortFunc(got, order)
			slices.SortFunc(want, order)
			if !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
				return
			}
			same++
		})
	}
	say("interop: %d fixtures verified, %d of them back, %d with the digests of the script", len(done), back, same)
}

// verifyBack compares the destination, as a source, with the source; 0 where the columns do not go back, as a
// promoted one does not.
func (l *lab) verifyBack(t *testing.T, m *move, dir string) int {
	t.Helper()
	swap := func(args []string, from, to string) []string {
		out := slices.Clone(args)
		for i, a := range out {
			if rest, ok := strings.CutPrefix(a, "--"+from); ok && i%2 == 0 {
				out[i] = "--" + to + rest
			}
		}
		return out
	}
	var plan []string
	for i := 1; i < len(m.plan); i += 2 {
		from, to, _ := strings.Cut(m.plan[i], ":")
		if m.plan[i-1] != "--column-mapping" {
			return 0
		}
		plan = append(plan, "--column-mapping", to+":"+from)
	}
	for _, method := range []string{"partition_hash", "diff"} {
		_, r := l.verify(t, m, dir, swap(l.target(m, "dst-", dir), "dst", "src"), swap(l.source(m, "src-"), "src", "dst"), plan, []string{"--method", method})
		switch {
		case r.code == 1 && strings.Contains(r.stderr, "Verify error: ") && method == "partition_hash":
			return 0
		case r.code != 0:
			t.Errorf("back:\n%s", told([]run{r}))
			return 0
		}
	}
	return 1
}

func readDigests(path string) ([]digest, error) {
	if said, err := os.ReadFile(path + ".error"); err == nil {
		return nil, errors.New(string(said))
	}
	text, err := os.ReadFile(path + ".json")
	if err != nil {
		return nil, err
	}
	var out []digest
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
