//go:build interop

package interop

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"icepipe/internal/catalogs"
)

// writers: eight programs at once append to one table. Each commit is a compare-and-swap: nothing is lost, nothing
// is there twice. (Glue is not among them: moto checks no versions.)
func (e *everywhere) writers(t *testing.T) {
	const programs, each = 8, 4
	for _, kind := range []string{"postgres", "mariadb", "hive", "hadoop"} {
		dst := place{Catalog: kind, Identifier: []string{"w", "dst"}}
		list := []place{dst}
		for i := range programs {
			list = append(list, place{Catalog: "sqlite", Identifier: []string{"w", fmt.Sprint(kind, i)}, First: i * each, Rows: each})
		}
		e.script("make", list)
		var wait sync.WaitGroup
		runs := make([]run, programs)
		for i := range programs {
			wait.Go(func() {
				args := []string{filepath.Join(e.bin, "ice-migrate"), "--src", list[i+1].String(), "--dst", dst.String(), "--batch-rows", "2", "-q"}
				runs[i] = pipe(t, []program{{args: args, dir: e.dir}}, nil)[0]
			})
		}
		wait.Wait()
		e.runs = append(e.runs, runs...)
		for _, r := range runs {
			if r.code != 0 {
				t.Error(told([]run{r}))
			}
		}
		if wrong := e.states([]place{dst})[0].once(programs*each, programs*each/2); wrong != "" {
			t.Errorf("%s: %s", kind, wrong)
		}
	}
}

// raw connects to a database server beside the catalog.
func (e *everywhere) raw(t *testing.T, kind string) *sql.DB {
	driver, name := "pgx", e.admins[kind]
	if kind == "mariadb" {
		driver = "mysql"
		user, rest, _ := strings.Cut(strings.TrimPrefix(name, "mysql+pymysql://"), "@")
		host, database, _ := strings.Cut(rest, "/")
		name = user + "@tcp(" + host + ")/" + database
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// races: a writer that changes the row after our commit has looked at it, and before it changes it: its
// transaction is open until ours waits for it. Ours is a conflict, and the other's change stays.
func (e *everywhere) races(t *testing.T) {
	waiting := map[string]string{
		"postgres": `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
		"mariadb":  `SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
	}
	for kind, blocked := range waiting {
		t.Run(kind, func(t *testing.T) {
			at := place{Catalog: kind, Identifier: []string{"r", "a.b", "dst"}}
			e.script("make", []place{at})
			ref, err := catalogs.TableFlags{Short: at.String()}.Resolve(catalogs.Env{Home: e.dir, Dir: e.dir})
			if err != nil {
				t.Fatal(err)
			}
			o, err := catalogs.Open(t.Context(), ref, catalogs.ReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			set := func(value string) error {
				_, _, err := o.Catalog.CommitTable(t.Context(), o.Table.Identifier(), nil, []table.Update{table.NewSetPropertiesUpdate(iceberg.Properties{"k": value})})
				return err
			}
			for _, value := range []string{"1", "2"} { // by the library, and by ours
				if err := set(value); err != nil {
					t.Fatal(err)
				}
			}
			db := e.raw(t, kind)
			other, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Rollback()
			const row = ` WHERE table_namespace = 'r.a.b' AND table_name = 'dst'`
			if _, err := other.Exec(`UPDATE iceberg_tables SET metadata_location = '/other'` + row); err != nil {
				t.Fatal(err)
			}
			ours := make(chan error, 1)
			go func() { ours <- set("3") }()
			for n := 0; n == 0; {
				select {
				case err := <-ours:
					t.Fatalf("the commit does not wait for the other: %v", err)
				case <-time.After(10 * time.Millisecond): // and look again
				}
				if err := db.QueryRow(blocked).Scan(&n); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-ours; !errors.Is(err, table.ErrCommitFailed) {
				t.Errorf("got %v, want a conflict", err)
			}
			var now string
			if err := db.QueryRow(`SELECT metadata_location FROM iceberg_tables` + row).Scan(&now); err != nil || now != "/other" {
				t.Errorf("the row names %q, %v", now, err)
			}
		})
	}
}
