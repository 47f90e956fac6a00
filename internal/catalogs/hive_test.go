package catalogs

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"

	"icepipe/pkg/rows"
)

// A commit changes where the metadata is, leaves what others have noted, but for what is no longer true, and
// gives the lock back.
func TestHiveCommit(t *testing.T) {
	f := newFakeHive(t)
	o := mustOpen(t, f.ref("t", "ugi", "me:ours:theirs"), ReadWrite)
	before := o.Table.MetadataLocation()
	if err := errors.Join(set(t, o, "k", "1"), set(t, o, "k", "2")); err != nil {
		t.Fatal(err)
	}
	e := f.tables["t"]
	if is, taken := f.state(); is == before || taken || e.Parameters["noted"] != "by another" || e.Parameters["current-snapshot-id"] != "" || e.Parameters["previous_metadata_location"] == "" {
		t.Errorf("parameters %v, locked %v", e.Parameters, taken)
	}
	if e.Owner != "somebody" || e.Sd.SerdeInfo.Name != "kept" || len(e.Sd.Cols) != 1 || e.Sd.Cols[0].Type != "bigint" || strings.Join(f.ugi, " ") != "me ours theirs" {
		t.Errorf("entry %v, by %q", e, f.ugi)
	}
	if again := mustOpen(t, f.ref("t"), ReadOnly).Table; again.Properties()["k"] != "2" {
		t.Errorf("properties %v", again.Properties())
	}
}

// Writers that take the lock, and those that rely on the check of the parameter alone, are safe from us.
func TestHiveConflict(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := newFakeHive(t)
		f.old = old
		o := mustOpen(t, f.ref("t"), ReadWrite)
		c := o.Catalog.(*metastoreCatalog)
		stale, _, err := c.find(t.Context(), o.Ref.Identifier)
		if err != nil {
			t.Fatal(err)
		}
		if err := set(t, o, "k", "1"); err != nil {
			t.Fatal(err)
		}
		was, _ := f.state()
		if err := c.swap(t.Context(), stale, o.Table.Metadata(), "/stale.metadata.json"); !errors.Is(err, table.ErrCommitFailed) {
			t.Errorf("got %v, want a conflict", err)
		}
		if is, taken := f.state(); is != was || taken {
			t.Errorf("the loser took %q to %q, locked %v", was, is, taken)
		}
	}
	// Between our look under the lock and our change another one comes who takes no lock.
	f := newFakeHive(t)
	o := mustOpen(t, f.ref("t"), ReadWrite)
	c := o.Catalog.(*metastoreCatalog)
	stale, _, err := c.find(t.Context(), o.Ref.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	err = (&hiveStore{ref: o.Ref}).session(t.Context(), func(client *hms.ThriftHiveMetastoreClient) error {
		if err := set(t, o, "k", "1"); err != nil {
			return err
		}
		was := stale.(hiveEntry).Table
		return c.metastore.(*hiveStore).explain(client.AlterTableWithEnvironmentContext(t.Context(), "a", "t", was, &hms.EnvironmentContext{Properties: map[string]string{
			"expected_parameter_key": metadataLocationKey, "expected_parameter_value": was.Parameters[metadataLocationKey]}}))
	})
	if !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("the server's own check: got %v, want a conflict", err)
	}
}

// Eight writers, each of which tries again after a conflict: no commit is lost, by an old server too.
func TestHiveWriters(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := newFakeHive(t)
		f.old = old
		all := eightWriters(t, f.ref("t"), 3)
		if n := len(mustOpen(t, f.ref("t"), ReadOnly).Table.Properties()); n != all || f.changes != n {
			t.Errorf("%d of %d commits, %d changes", n, all, f.changes)
		}
	}
}

// What may have landed is neither a conflict nor a refusal, and its lock is left to lapse.
func TestHiveOutcome(t *testing.T) {
	for _, lands := range []bool{true, false} {
		f := newFakeHive(t)
		o := mustOpen(t, f.ref("t"), ReadWrite)
		was, _ := f.state()
		f.alter = func(land func()) error {
			if lands {
				land()
			}
			return thrift.ErrAbandonRequest // the connection ends
		}
		err := set(t, o, "k", "1")
		var lasting interface{ Lasting() bool }
		if err == nil || errors.Is(err, table.ErrCommitFailed) || errors.As(err, &lasting) {
			t.Errorf("got %v, want an outcome that is unknown", err)
		}
		if is, taken := f.state(); (is != was) != lands || !taken {
			t.Errorf("landed %v, locked %v", is != was, taken)
		}
	}
}

// A lock that another holds is waited for no longer than the call may take.
func TestHiveLocked(t *testing.T) {
	f := newFakeHive(t)
	o := mustOpen(t, f.ref("t"), ReadWrite)
	f.holder, f.last = 99, 100
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- (&hiveStore{ref: o.Ref}).session(ctx, func(c *hms.ThriftHiveMetastoreClient) error {
			_, err := (&hiveStore{ref: o.Ref}).lock(ctx, c, "a", "t")
			return err
		})
	}()
	for waiting := false; !waiting; {
		time.Sleep(time.Millisecond) // and look again
		f.mu.Lock()
		waiting = f.last > 100
		f.mu.Unlock()
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the lock was taken")
	}
	if f.state(); f.holder != 99 {
		t.Errorf("the lock is %d's", f.holder)
	}
	if err := set(t, o, "k", "v"); !errors.Is(err, table.ErrCommitFailed) {
		t.Errorf("a lock that is held: %v, want a conflict", err)
	}
}

// What is wrong is said in one line, with the cure.
func TestHiveErrors(t *testing.T) {
	f := newFakeHive(t)
	away := func(address string) Ref {
		r := f.ref("t")
		r.Place.URI = address
		return r
	}
	for _, tt := range []struct {
		name   string
		ref    Ref
		refuse error
		says   string
	}{
		{"no table", f.ref("ordres"), nil, `^table a\.ordres is not in catalog "thrift://.*": near are a\.orders \(a destination is never created`},
		{"another kind of table", f.ref("plain"), nil, `a\.plain is not a table of Iceberg: its table_type is ""`},
		{"rights", f.ref("t"), &hms.MetaException{Message: "org.apache.x.AuthorizationException: Permission denied: user=me\n\tat org.x"}, `forbids it \(.*Permission denied: user=me\): see to the rights of the user$`},
		{"port", away("thrift://127.0.0.1:1"), nil, `cannot connect to catalog "thrift://127\.0\.0\.1:1": .*connection refused; see to --dst-uri$`},
		{"host", away("thrift://no-such-host.invalid:9083"), nil, `cannot connect to catalog "thrift://no-such-host\.invalid:9083": .*lookup no-such-host`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.mu.Lock()
			f.refuse = tt.refuse
			f.mu.Unlock()
			_, err := Open(t.Context(), tt.ref, ReadWrite)
			if err == nil || !regexp.MustCompile(tt.says).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") || errors.Is(err, catalog.ErrNoSuchTable) != (tt.name == "no table") {
				t.Errorf("got %v\nwant %s", err, tt.says)
			}
		})
	}
	f.refuse = nil
	// The second address answers.
	mustOpen(t, away("thrift://127.0.0.1:1,"+f.address), ReadOnly)
}

// A Hive catalog is named by its addresses.
func TestHiveResolve(t *testing.T) {
	env := Env{Home: t.TempDir(), Dir: "/w", Environ: []string{"PYICEBERG_CATALOG__H__URI=thrift://h1,thrift://h2:1"}}
	ref, err := TableFlags{Short: "h.a.t"}.Resolve(env)
	if want := (rows.Place{Kind: "hive", Name: "h", URI: "thrift://h1:9083,thrift://h2:1"}); err != nil || ref.Place != want {
		t.Errorf("%+v, %v", ref.Place, err)
	}
	if back, err := FromPlace(ref.Place, ref.Identifier, env); err != nil || back.Properties["uri"] == "" {
		t.Errorf("it is not found again: %v, %v", back, err)
	}
	for _, tt := range []struct {
		flags TableFlags
		says  string
	}{
		{TableFlags{Catalog: "hive", Namespace: "a", Table: "t"}, "--uri is missing"},
		{TableFlags{Catalog: "hive", URI: "http://h", Namespace: "a", Table: "t"}, "--uri: want a uri thrift://HOST:9083"},
		{TableFlags{URI: "thrift://h", Namespace: "a", Table: "t", Property: []string{"hive.kerberos-authentication=true"}}, "hive.kerberos-authentication=…: Kerberos is not supported"},
	} {
		if _, err := tt.flags.Resolve(env); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v", tt.flags, err)
		}
	}
}
