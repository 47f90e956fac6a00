//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
)

// words are all of n letters of an alphabet; by symmetry A, or its death, is first.
func words(alphabet string, n int) (list []string) {
	list = []string{""}
	for i := range n {
		var longer []string
		for _, w := range list {
			for _, l := range alphabet {
				if i > 0 || strings.ContainsRune("Aa", l) {
					longer = append(longer, w+string(l))
				}
			}
		}
		list = longer
	}
	return list
}

// A contest is two jobs that upsert the same new keys: whose commit goes on, as a word says, a letter each. A small
// letter is that the job dies there.
type contest struct {
	ground
	word  string
	clash bool // each changes a row that the other holds as it is
	late  bool // B begins when it is first asked for, not when A does
	jobs  [2]*heldJob
	err   error
}

func (c *contest) String() string {
	return fmt.Sprintf("%s_%s%s%s", c.ground, map[bool]string{true: "clash_", false: "apart_"}[c.clash], map[bool]string{true: "late_", false: ""}[c.late], c.word)
}

// table is the destination's name, in letters that every catalog has.
func (c *contest) table() string {
	return "d." + strings.NewReplacer("A", "x", "B", "y").Replace(c.String())
}

// contestants are the rows of the sources, in two batches of three: both add 100 and 200 and change 100 again.
func contestants(clash bool) map[string][]idText {
	rows := func(name string, own [2]int, same int) []idText {
		return []idText{{100, name}, {own[0], name}, {same, fmt.Sprintf("row %d", same)}, {200, name}, {own[1], name}, {100, name + " again"}}
	}
	if clash {
		return map[string][]idText{"s.clash_a": rows("A", [2]int{1, 3}, 2), "s.clash_b": rows("B", [2]int{2, 4}, 1)}
	}
	return map[string][]idText{"s.apart_a": rows("A", [2]int{1, 3}, 7), "s.apart_b": rows("B", [2]int{2, 4}, 8)}
}

func contests() (list []*contest) {
	whole := tortures()
	for i, g := range grounds() {
		if whole {
			for _, clash := range []bool{false, true} {
				for _, w := range words("AB", 5) { // a commit that loses is tried again
					list = append(list, &contest{ground: g, word: w, clash: clash})
				}
				for _, w := range words("AB", 4) {
					list = append(list, &contest{ground: g, word: w, clash: clash, late: true})
				}
			}
			for _, w := range words("ABab", 3) {
				if strings.ContainsAny(w, "ab") {
					list = append(list, &contest{ground: g, word: w, clash: true})
				}
			}
			continue
		}
		// A commits, B loses and puts its rows in the place of A's; A goes on, or dies, behind B.
		list = append(list, &contest{ground: g, word: []string{"ABBA", "AABB", "ABAB"}[i%3]}, &contest{ground: g, word: []string{"ABBA", "ABAB", "AbAB"}[i%3], clash: true})
	}
	return list
}

// TestUpsertTwins: of two jobs that upsert the same new keys, whose commits come in whatever order, neither adds a
// second row, loses one of the other's or overwrites what it has not looked at: each snapshot holds the rows of the one
// before it with those of its batch in place, and in version 3 with their IDs. Where one changed a row that the other
// holds as it is, or made one whose ID the other's has not got, this one ends with the conflict, and its next run goes
// on.
func TestUpsertTwins(t *testing.T) {
	a := newArena(t)
	list := contests()
	var tables, judged []map[string]any
	for _, clash := range []bool{false, true} {
		for name, rows := range contestants(clash) {
			tables = append(tables, map[string]any{"catalog": "sqlite", "identifier": name, "rows": rows})
		}
	}
	for _, c := range list {
		tables = append(tables, map[string]any{"catalog": c.catalog, "identifier": c.table(), "version": c.version, "rows": tenRows(), "files": 2})
		judged = append(judged, map[string]any{"catalog": c.catalog, "identifier": c.table()})
		name := map[bool]string{true: "s.clash_", false: "s.apart_"}[c.clash]
		c.jobs = [2]*heldJob{a.hold(t, c.ground, name+"a", c.table(), 3), a.hold(t, c.ground, name+"b", c.table(), 3)}
	}
	a.party.do("make", "", "tables", tables)
	inPairs(list, func(c *contest) { c.err = c.run() })
	answer := a.party.do("judge", "", "tables", judged)
	wrong := answer["wrong"].(map[string]any)
	conflicts, tries := 0, 0
	for _, c := range list {
		t.Run(c.String(), func(t *testing.T) {
			if c.err != nil {
				t.Error(c.err)
			}
			for _, h := range c.jobs {
				n, err := h.judge()
				if err != nil {
					t.Error(err)
				}
				if n > 0 && !c.clash && c.version < 3 { // in version 3 the rows that A added have IDs, which B's must get
					t.Errorf("a conflict of rows that the other did not touch\n%s", told(h.runs))
				}
				conflicts, tries = conflicts+n, tries+len(h.runs)
			}
			if text, ok := wrong[fmt.Sprintf("%s %s", c.catalog, c.table())]; ok {
				t.Errorf("%v\n%s%s", text, told(c.jobs[0].runs), told(c.jobs[1].runs))
			}
		})
	}
	say("upsert: two jobs upserted the same keys in %d ways, %d runs, %d of which ended with a conflict; %v snapshots were right", len(list), tries, conflicts, answer["snapshots"])
	if conflicts == 0 {
		t.Error("no run met a conflict")
	}
}

// run lets the two go on as the word says, and then to their ends.
func (c *contest) run() error {
	if !c.late {
		for _, h := range c.jobs {
			if _, err := h.comes(); err != nil {
				return err
			}
		}
	}
	for _, l := range c.word {
		h := c.jobs[strings.ToUpper(string(l))[0]-'A']
		if h.done() {
			continue
		}
		waits, err := h.comes()
		if err != nil {
			return err
		}
		switch {
		case !waits:
		case l == 'a' || l == 'b':
			h.die()
		default:
			if err := h.pass(); err != nil {
				return err
			}
		}
	}
	for _, h := range c.jobs {
		if err := h.finish(); err != nil {
			return fmt.Errorf("%w\n%s", err, told(h.runs))
		}
	}
	return nil
}
