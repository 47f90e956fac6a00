package catalogs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"
)

// A hiveStore is a Hive Metastore. Each use of it has a connection of its own, as with PyIceberg.
//
// The library's own Hive catalog is not used: its calls have no deadline, its lock is not enough against
// writers that take none (engine.hive.lock-enabled=false), and it gives the lock back when it does not know
// whether the change is still under way.
type hiveStore struct{ ref Ref }

// A hiveEntry is what Hive keeps of a table.
type hiveEntry struct{ *hms.Table }

func (e hiveEntry) parameters() map[string]string { return e.Table.Parameters }

const (
	hiveConnect = 20 * time.Second
	hiveCall    = time.Minute // so that the calls under a lock end before Hive's lock does (hive.txn.timeout, 5 minutes)
)

// session connects, calls f, and disconnects. A context that ends takes the connection away.
func (h *hiveStore) session(ctx context.Context, f func(*hms.ThriftHiveMetastoreClient) error) error {
	var failed error
	for _, host := range h.ref.hosts() {
		conf := &thrift.TConfiguration{ConnectTimeout: hiveConnect, SocketTimeout: hiveCall}
		socket := thrift.NewTSocketConf(host, conf)
		if err := socket.Open(); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		defer socket.Close()
		defer context.AfterFunc(ctx, func() { socket.Close() })()
		protocol := thrift.NewTBinaryProtocolConf(thrift.NewTBufferedTransport(socket, 4096), conf)
		client := hms.NewThriftHiveMetastoreClient(thrift.NewTStandardClient(protocol, protocol))
		if ugi := h.ref.Properties["ugi"]; ugi != "" {
			name, groups, _ := strings.Cut(ugi, ":")
			if _, err := client.SetUgi(ctx, name, strings.Split(groups, ":")); err != nil {
				return h.explain(err)
			}
		}
		err := f(client)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return err
	}
	return h.ref.unreachable(failed)
}

func (h *hiveStore) entry(ctx context.Context, database, name string) (found entry, err error) {
	err = h.session(ctx, func(c *hms.ThriftHiveMetastoreClient) error {
		t, err := c.GetTable(ctx, database, name)
		found = hiveEntry{t}
		return h.explain(err)
	})
	return found, err
}

func (h *hiveStore) databases(ctx context.Context) (names []string, err error) {
	err = h.session(ctx, func(c *hms.ThriftHiveMetastoreClient) (err error) {
		names, err = c.GetAllDatabases(ctx)
		return h.explain(err)
	})
	return names, err
}

func (h *hiveStore) tables(ctx context.Context, database string) (names []string, err error) {
	err = h.session(ctx, func(c *hms.ThriftHiveMetastoreClient) error {
		all, err := c.GetAllTables(ctx, database)
		if err != nil {
			return h.explain(err)
		}
		tables, err := c.GetTableObjectsByName(ctx, database, all)
		for _, t := range tables {
			if strings.EqualFold(t.Parameters[tableTypeKey], "iceberg") {
				names = append(names, t.TableName)
			}
		}
		return h.explain(err)
	})
	return names, err
}

func (h *hiveStore) close() error { return nil } // each use gives its connection back

// swap changes the entry under Hive's lock, if its metadata is still that of old; and has the server itself
// check that once more where it can (HIVE-26882: since 2.3.10, 3.1.4 and 4.0), so that writers that take no lock
// are safe from us too. Java does both (HiveTableOperations.doCommit), one or the other.
func (h *hiveStore) swap(ctx context.Context, old entry, next table.Metadata, location string) error {
	was := old.(hiveEntry).Table
	return h.session(ctx, func(c *hms.ThriftHiveMetastoreClient) error {
		held, err := h.lock(ctx, c, was.DbName, was.TableName)
		if err != nil {
			return err
		}
		since := time.Now()
		unknown := false
		defer func() {
			if !unknown { // an old server may be at the change still: then the lock lapses by itself
				h.unlock(ctx, c, held)
			}
		}()
		now, err := c.GetTable(ctx, was.DbName, was.TableName)
		if err != nil {
			return h.explain(err)
		}
		base := was.Parameters[metadataLocationKey]
		if is := now.Parameters[metadataLocationKey]; is != base {
			return conflict("another writer has committed to table %s meanwhile", h.ref)
		}
		if time.Since(since) > 2*hiveCall {
			return conflict("the lock of table %s may have lapsed", h.ref)
		}
		err = c.AlterTableWithEnvironmentContext(ctx, was.DbName, was.TableName, h.changed(now, next, location), &hms.EnvironmentContext{Properties: map[string]string{
			"DO_NOT_UPDATE_STATS": "true", "expected_parameter_key": metadataLocationKey, "expected_parameter_value": base,
		}})
		var answered thrift.TException
		unknown = err != nil && !(errors.As(err, &answered) && answered.TExceptionType() == thrift.TExceptionTypeCompiled)
		return h.explain(err)
	})
}

// lockWait bounds the wait for a lock, and lockLook the time between two looks at it, which grows. The wait is short:
// who holds a lock commits, mostly, so that what waits for it is stale when its turn comes, and meanwhile
// keeps the others in the queue waiting. The commit protocol begins anew instead.
const (
	lockWait     = 2 * time.Second
	lockLook     = 50 * time.Millisecond
	lockLookMost = 200 * time.Millisecond
)

// lock takes Hive's lock of a table.
func (h *hiveStore) lock(ctx context.Context, c *hms.ThriftHiveMetastoreClient, database, name string) (id int64, err error) {
	part := hms.NewLockComponent()
	part.Type, part.Level, part.Dbname, part.Tablename = hms.LockType_EXCLUSIVE, hms.LockLevel_TABLE, database, &name
	ask := hms.NewLockRequest()
	ask.Component, ask.AgentInfo = []*hms.LockComponent{part}, "icepipe"
	ask.User, ask.Hostname = "icepipe", "localhost"
	if u, err := user.Current(); err == nil {
		ask.User = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		ask.Hostname = host
	}
	held, err := c.Lock(ctx, ask)
	if err != nil {
		return 0, h.explain(err)
	}
	until, wait := time.Now().Add(lockWait), lockLook
	for held.State == hms.LockState_WAITING && time.Now().Before(until) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(lockLookMost, wait*3/2)
		again, err := c.CheckLock(ctx, &hms.CheckLockRequest{Lockid: held.Lockid})
		if err != nil {
			h.unlock(ctx, c, held.Lockid)
			return 0, h.explain(err)
		}
		held.State = again.State
	}
	if held.State != hms.LockState_ACQUIRED {
		h.unlock(ctx, c, held.Lockid)
		return 0, conflict("another writer holds the lock of table %s (%s)", h.ref, held.State)
	}
	return held.Lockid, nil
}

// unlock gives a lock back. Where that fails it lapses by itself.
func (h *hiveStore) unlock(ctx context.Context, c *hms.ThriftHiveMetastoreClient, id int64) {
	_ = c.Unlock(context.WithoutCancel(ctx), &hms.UnlockRequest{Lockid: id})
}

// derived are parameters that Java notes of the snapshot; others' commits make them wrong.
var derived = []string{
	"current-snapshot-id", "current-snapshot-summary", "current-snapshot-timestamp-ms", "snapshot-count", "numFiles", "numRows", "totalSize",
	"current-schema", "default-partition-spec", "default-sort-order",
}

// changed is the entry with next as its metadata.
func (h *hiveStore) changed(was *hms.Table, next table.Metadata, location string) *hms.Table {
	t := *was
	t.Parameters = maps.Clone(was.Parameters)
	for _, key := range derived {
		delete(t.Parameters, key)
	}
	t.Parameters[previousLocationKey] = was.Parameters[metadataLocationKey]
	t.Parameters[metadataLocationKey] = location
	if was.Sd == nil {
		return &t
	}
	storage := *was.Sd
	storage.Location = next.Location()
	zoned := "timestamp with local time zone"
	if strings.EqualFold(h.ref.Properties["hive.hive2-compatible"], "true") {
		zoned = "timestamp"
	}
	var columns []*hms.FieldSchema
	for _, c := range columnsOf(next, false, zoned) {
		columns = append(columns, &hms.FieldSchema{Name: c.name, Type: c.kind, Comment: c.comment})
	}
	if !slices.EqualFunc(columns, storage.Cols, func(a, b *hms.FieldSchema) bool { return strings.EqualFold(a.Name, b.Name) }) {
		storage.Cols = columns
	}
	t.Sd = &storage
	return &t
}

// explain says what the user can do about an error of the metastore's.
func (h *hiveStore) explain(err error) error {
	var gone *hms.NoSuchObjectException
	var meta *hms.MetaException
	var invalid *hms.InvalidOperationException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return &notThereError{fmt.Sprintf("catalog %q has no table %s (%s)", h.ref.Place.URI, h.ref, gone.Message)}
	case errors.As(err, &meta) && strings.Contains(meta.Message, "The table has been modified"):
		return conflict("another writer has committed to table %s meanwhile", h.ref)
	case errors.As(err, &meta) && strings.Contains(strings.ToLower(meta.Message), "permission denied"),
		errors.As(err, &meta) && strings.Contains(meta.Message, "AuthorizationException"):
		return &refusedError{fmt.Sprintf("catalog %q forbids it (%s): see to the rights of the user", h.ref.Place.URI, firstLine(meta.Message)), err}
	case errors.As(err, &meta):
		return fmt.Errorf("catalog %q: %s", h.ref.Place.URI, firstLine(meta.Message))
	case errors.As(err, &invalid):
		return &refusedError{fmt.Sprintf("catalog %q refuses the change (%s)", h.ref.Place.URI, firstLine(invalid.Message)), err}
	}
	return fmt.Errorf("catalog %q: %w", h.ref.Place.URI, err)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
