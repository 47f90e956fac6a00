//go:build !noclouds

package catalogs

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"icepipe/pkg/rows"
)

// A fakeGlue answers as AWS Glue does, as far as it is asked here: a table's version grows with each change,
// and a change that names another one is refused.
type fakeGlue struct {
	*httptest.Server

	mu      sync.Mutex
	tables  map[string]map[string]any // by database.name; Glue's own JSON
	version map[string]int
	calls   []string      // operations
	headers []http.Header // of each
	faults  map[string][]fault
}

// A fault spoils an answer, once.
type fault struct {
	land       bool // the call is done first
	status     int
	code, text string
}

// newFakeGlue has two databases, and in the first the Iceberg tables a.t and a.orders and the table a.plain.
func newFakeGlue(t *testing.T) *fakeGlue {
	t.Helper()
	cat, _ := temporary(t)
	made := makeTable(t, cat, "a", "t")
	f := &fakeGlue{tables: map[string]map[string]any{}, version: map[string]int{}, faults: map[string][]fault{}}
	for _, name := range []string{"t", "orders", "plain"} {
		kind := "ICEBERG"
		if name == "plain" {
			kind = "hudi"
		}
		f.tables["a."+name] = map[string]any{
			"Name": name, "DatabaseName": "a", "TableType": "EXTERNAL_TABLE", "Owner": "somebody", "Retention": 7, "Description": "told",
			"Parameters":        map[string]any{"table_type": kind, "metadata_location": made.MetadataLocation(), "noted": "by another"},
			"StorageDescriptor": map[string]any{"Location": made.Location(), "SerdeInfo": map[string]any{"Name": "kept"}, "Columns": []any{}},
		}
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeGlue) serve(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	text, _ := io.ReadAll(r.Body)
	json.Unmarshal(text, &in)
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.headers = append(f.calls, op), append(f.headers, r.Header.Clone())
	if list := f.faults[op]; len(list) > 0 {
		f.faults[op] = list[1:]
		if list[0].land {
			f.do(op, in)
		}
		if list[0].status == 0 {
			panic(http.ErrAbortHandler) // the connection is closed without an answer
		}
		refuse(w, list[0].status, list[0].code, list[0].text)
		return
	}
	out, code, said := f.do(op, in)
	if code != "" {
		refuse(w, 400, code, said)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	json.NewEncoder(w).Encode(out)
}

func refuse(w http.ResponseWriter, status int, code, said string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"__type": code, "Message": said})
}

func (f *fakeGlue) do(op string, in map[string]any) (out map[string]any, code, said string) {
	switch op {
	case "GetDatabases":
		return map[string]any{"DatabaseList": []any{map[string]any{"Name": "a"}, map[string]any{"Name": "b"}}}, "", ""
	case "GetTables":
		var list []any
		for _, key := range slices.Sorted(maps.Keys(f.tables)) {
			if strings.HasPrefix(key, fmt.Sprint(in["DatabaseName"], ".")) {
				list = append(list, f.tables[key])
			}
		}
		return map[string]any{"TableList": list}, "", ""
	case "GetTable":
		key := fmt.Sprint(in["DatabaseName"], ".", in["Name"])
		t := maps.Clone(f.tables[key])
		if t == nil {
			return nil, "EntityNotFoundException", "Entity Not Found"
		}
		t["VersionId"] = strconv.Itoa(f.version[key])
		return map[string]any{"Table": t}, "", ""
	case "UpdateTable":
		put := in["TableInput"].(map[string]any)
		key := fmt.Sprint(in["DatabaseName"], ".", put["Name"])
		switch {
		case f.tables[key] == nil:
			return nil, "EntityNotFoundException", "Entity Not Found"
		case in["VersionId"] != nil && in["VersionId"] != strconv.Itoa(f.version[key]): // without one AWS overwrites
			return nil, "ConcurrentModificationException", "Update table failed due to concurrent modifications."
		}
		put["DatabaseName"] = in["DatabaseName"]
		f.tables[key] = put
		f.version[key]++
		return map[string]any{}, "", ""
	}
	return nil, "UnknownOperationException", op
}

// spoil adds faults to the next calls of an operation.
func (f *fakeGlue) spoil(op string, faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[op] = append(f.faults[op], faults...)
}

// count is how often an operation was asked for.
func (f *fakeGlue) count(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == op {
			n++
		}
	}
	return n
}

// parameters are those of a table.
func (f *fakeGlue) parameters(key string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tables[key]["Parameters"].(map[string]any)
}

// ref is the Ref of a table with these properties beside the usual ones.
func (f *fakeGlue) ref(name string, properties ...string) Ref {
	r := Ref{Place: rows.Place{Kind: "glue", URI: f.URL}, Identifier: []string{"a", name}, prefix: "dst-", Properties: map[string]string{
		"type": "glue", "glue.endpoint": f.URL, "glue.region": "eu-north-1", "glue.access-key-id": "AKID", "glue.secret-access-key": "hunter2",
	}}
	for _, p := range properties {
		key, value, _ := strings.Cut(p, "=")
		r.Properties[key] = value
	}
	return r
}
