package catalogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// setProperty commits a property to the table as it is now.
func setProperty(ctx context.Context, o *Opened, key, value string) error {
	tbl, err := o.Catalog.LoadTable(ctx, o.Ref.Identifier)
	if err != nil {
		return err
	}
	_, _, err = o.Catalog.CommitTable(ctx, o.Ref.Identifier,
		[]table.Requirement{table.AssertTableUUID(tbl.Metadata().TableUUID())},
		[]table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{key: value})})
	return err
}

// A commit to a database of the older layout leaves the layout and the journal mode (case 74).
func TestReadWriteCommits(t *testing.T) {
	for _, layout := range []string{layoutV0, layoutV1} {
		for _, journal := range []string{"delete", "truncate", "wal"} {
			t.Run(fmt.Sprintf("%s, V1 %v", journal, layout == layoutV1), func(t *testing.T) {
				cat, _ := temporary(t)
				location := "'" + makeTable(t, cat, "a", "t").MetadataLocation() + "'"
				path := handmade(t, `PRAGMA journal_mode = `+journal, layout, row("x", "a", "t", location))
				schema := func() (text string) {
					if err := rawDB(t, path).QueryRow(`SELECT group_concat(sql, ';') FROM sqlite_master`).Scan(&text); err != nil {
						t.Fatal(err)
					}
					return text
				}
				before := schema()
				ref := at(path, "", "a", "t")
				ref.Properties = map[string]string{"jdbc.schema-version": "V1"}
				o := mustOpen(t, ref, ReadWrite)
				if err := setProperty(t.Context(), o, "k", "v"); err != nil {
					t.Fatal(err)
				}
				if got := mustOpen(t, at(path, "x", "a", "t"), ReadOnly).Table.Properties()["k"]; got != "v" {
					t.Errorf("the property is %q", got)
				}
				if after := schema(); after != before {
					t.Errorf("the schema was changed to %s", after)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if wal := text[19] == 2; wal != (journal == "wal") {
					t.Errorf("the journal mode was switched, wal %v", wal)
				}
			})
		}
	}
}

// Eight writers of one database wait for each other (case 73).
func TestEightWriters(t *testing.T) {
	const writers, commits = 8, 4
	cat, path := temporary(t)
	for w := range writers {
		makeTable(t, cat, "a", fmt.Sprint("t", w))
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			o, err := Open(t.Context(), at(path, "", "a", fmt.Sprint("t", w)), ReadWrite)
			if err != nil {
				errs[w] = err
				return
			}
			defer o.Close()
			for c := range commits {
				if err := setProperty(t.Context(), o, fmt.Sprint("k", c), "v"); err != nil {
					errs[w] = fmt.Errorf("commit %d: %w", c, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		o := mustOpen(t, at(path, "", "a", fmt.Sprint("t", w)), ReadOnly)
		for c := range commits {
			if o.Table.Properties()[fmt.Sprint("k", c)] != "v" {
				t.Errorf("table %d lacks commit %d", w, c)
			}
		}
	}
}
