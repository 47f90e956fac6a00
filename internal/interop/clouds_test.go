//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// azuriteKey is the one that every Azurite has.
const azuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// TestClouds moves tables between Google Cloud Storage and Azure, as fake-gcs-server and Azurite have them, and back,
// made and read back by PyIceberg. Only where all is asked for: the servers are large.
func TestClouds(t *testing.T) {
	if !tortures() {
		t.Skip("ICEPIPE_TORTURE=1 has it")
	}
	root := checkout(t)
	deps := dependencies(t, root)
	scripts := filepath.Join(root, "testdata", "interop", "clouds")
	gcs := serve(t, filepath.Join(scripts, "gcs.sh"), filepath.Join(deps, "fakegcs"), "warehouse")
	azure := serve(t, filepath.Join(scripts, "azure.sh"), filepath.Join(deps, "azurite"), filepath.Join(deps, "venv"), t.TempDir())
	t.Setenv("PYTHONPATH", filepath.Join(deps, "azurite", "adlfs"))

	s := &shed{root: root, dir: t.TempDir()}
	connection := "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" + azuriteKey + ";BlobEndpoint=" + azure + "/devstoreaccount1;"
	s.props = map[string]map[string]string{
		"gcs":   {"warehouse": "gs://warehouse/w", "gcs.service.host": gcs, "gcs.oauth2.token": "x", "gcs.oauth2.token-expires-at": "4102444800000"},
		"azure": {"warehouse": "abfss://cont@devstoreaccount1.dfs.core.windows.net/w", "adls.connection-string": connection},
	}
	yaml := "catalog:\n"
	for name, p := range s.props {
		p["type"], p["uri"] = "sql", "sqlite:///"+filepath.Join(s.dir, name+".db")
		yaml += "  " + name + ":\n"
		for key, value := range p {
			yaml += "    " + key + ": " + value + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, ".pyiceberg.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"catalogs": s.props, "spark": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	s.party = newPartyOf(t, "storage_party.py", string(config))
	s.do("container", "", "connection", connection, "name", "cont")

	off := false
	var list []goods
	for _, from := range []string{"gcs", "azure"} {
		for _, to := range []string{"gcs", "azure"} {
			name := from + "_" + to
			// A partition's folder may have a name that Azure's client changes, and refuses: there it has none.
			var partitioned *bool
			if from == "azure" {
				partitioned = &off
			}
			list = append(list, goods{Catalog: from, Identifier: []string{"c", "s_" + name}, Rows: 16, Partitioned: partitioned},
				goods{Catalog: to, Identifier: []string{"c", "d_" + name}, First: 5, Rows: 10, Shift: 1, Partitioned: &off})
		}
	}
	for at, text := range s.make(list) {
		t.Fatalf("%s: %s", list[at], text)
	}
	var moved []goods
	for pair := range slices.Chunk(list, 2) {
		name := pair[1].Identifier[1]
		args := []string{"--src", pair[0].String(), "--dst", pair[1].String(), "--batch-rows", "9", "-q", "--checkpoint", name + ".json", "--write-mode", "upsert", "--upsert-keys", "id"}
		for _, stage := range [][]string{append([]string{"ice-migrate"}, args...), {"ice-migrate", "undo", "--checkpoint", name + ".json"}, {"ice-migrate", "redo", "--checkpoint", name + ".json"},
			{"ice-migrate", "clean", "--dst", pair[1].String(), "--older-than", "0s", "--yes"}} {
			if r, _ := s.run(nil, stage); r.code != 0 {
				t.Error(told([]run{r}))
			}
		}
		moved = append(moved, pair[1])
	}
	for i, f := range s.look(false, moved...) {
		if !slices.Equal(f.IDs, ids(0, 16)) || len(f.Wrong) > 0 {
			t.Errorf("%s: ids %v, %q", moved[i], f.IDs, f.Wrong)
		}
	}
	say("clouds: %d tables between GCS and Azure", len(moved))
}
