package catalogs

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"

	"icepipe/pkg/rows"
)

// A fakeHive answers as a Hive Metastore does, as far as it is asked here.
type fakeHive struct {
	hms.ThriftHiveMetastore // what is not asked for panics
	address                 string

	mu      sync.Mutex
	tables  map[string]*hms.Table // of the database a
	holder  int64                 // of the lock; 0: nobody
	last    int64
	old     bool                    // it does not check expected parameters
	alter   func(land func()) error // instead of an alter that answers
	refuse  error                   // of GetTable
	changes int
	ugi     []string
}

func newFakeHive(t *testing.T) *fakeHive {
	t.Helper()
	cat, _ := temporary(t)
	made := makeTable(t, cat, "a", "t")
	f := &fakeHive{tables: map[string]*hms.Table{}}
	for _, name := range []string{"t", "orders", "plain"} {
		f.tables[name] = &hms.Table{DbName: "a", TableName: name, Owner: "somebody", TableType: "EXTERNAL_TABLE",
			Sd:         &hms.StorageDescriptor{Location: made.Location(), SerdeInfo: &hms.SerDeInfo{Name: "kept"}},
			Parameters: map[string]string{"table_type": "ICEBERG", "metadata_location": made.MetadataLocation(), "noted": "by another", "current-snapshot-id": "1"}}
	}
	delete(f.tables["plain"].Parameters, "table_type")
	socket, err := thrift.NewTServerSocket("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Listen(); err != nil {
		t.Fatal(err)
	}
	f.address = "thrift://" + socket.Addr().String()
	server := thrift.NewTSimpleServer4(hms.NewThriftHiveMetastoreProcessor(f), socket, thrift.NewTBufferedTransportFactory(4096), thrift.NewTBinaryProtocolFactoryConf(nil))
	served := make(chan struct{})
	go func() { defer close(served); server.Serve() }()
	t.Cleanup(func() { server.Stop(); <-served })
	return f
}

func (f *fakeHive) ref(name string, properties ...string) Ref {
	r := Ref{Place: rows.Place{Kind: "hive", URI: f.address}, Identifier: []string{"a", name}, prefix: "dst-", Properties: map[string]string{"uri": f.address}}
	for i := 0; i < len(properties); i += 2 {
		r.Properties[properties[i]] = properties[i+1]
	}
	return r
}

func (f *fakeHive) SetUgi(_ context.Context, name string, groups []string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ugi = append([]string{name}, groups...)
	return groups, nil
}

func (f *fakeHive) GetAllDatabases(context.Context) ([]string, error) {
	return []string{"a", "default"}, nil
}

func (f *fakeHive) GetAllTables(_ context.Context, database string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if database != "a" {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(f.tables)), nil
}

func (f *fakeHive) GetTableObjectsByName(_ context.Context, _ string, names []string) (out []*hms.Table, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		out = append(out, f.tables[name])
	}
	return out, nil
}

func (f *fakeHive) GetTable(_ context.Context, database, name string) (*hms.Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	t := f.tables[name]
	if t == nil || database != "a" {
		return nil, &hms.NoSuchObjectException{Message: "a." + name + " table not found"}
	}
	return t, nil
}

func (f *fakeHive) Lock(context.Context, *hms.LockRequest) (*hms.LockResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	return f.take(f.last), nil
}

func (f *fakeHive) CheckLock(_ context.Context, ask *hms.CheckLockRequest) (*hms.LockResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.take(ask.Lockid), nil
}

func (f *fakeHive) take(id int64) *hms.LockResponse {
	if f.holder == 0 {
		f.holder = id
	}
	state := hms.LockState_WAITING
	if f.holder == id {
		state = hms.LockState_ACQUIRED
	}
	return &hms.LockResponse{Lockid: id, State: state}
}

func (f *fakeHive) Unlock(_ context.Context, ask *hms.UnlockRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holder == ask.Lockid {
		f.holder = 0
	}
	return nil
}

func (f *fakeHive) AlterTableWithEnvironmentContext(_ context.Context, _, name string, t *hms.Table, env *hms.EnvironmentContext) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := env.Properties["expected_parameter_key"]
	if is := f.tables[name].Parameters[key]; !f.old && key != "" && is != env.Properties["expected_parameter_value"] {
		return &hms.MetaException{Message: "The table has been modified. The parameter value for key 'metadata_location' is '" + is + "'."}
	}
	land := func() { f.tables[name] = t; f.changes++ }
	if f.alter != nil {
		return f.alter(land)
	}
	land()
	return nil
}

// metadata is where the table's is, and taken whether its lock is held.
func (f *fakeHive) state() (metadata string, taken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tables["t"].Parameters["metadata_location"], f.holder != 0
}
