package ckpt

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func settings(t *testing.T, values map[string]any) Settings {
	t.Helper()
	s, err := NewSettings(values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSettingsCanonical(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values map[string]any
		want   string
	}{
		{"none", nil, `{}`},
		{"order and space", map[string]any{"b": json.RawMessage(` { "y" : 1,  "x": [ 1, 2 ] } `), "a": "t"}, `{"a":"t","b":{"x":[1,2],"y":1}}`},
		{"no escapes", map[string]any{"f": "a < b && c > 'é'"}, `{"f":"a < b && c > 'é'"}`},
		{"19 digits", map[string]any{"id": int64(9223372036854775807)}, `{"id":9223372036854775807}`},
		{"null is absent", map[string]any{"n": nil, "p": (*string)(nil), "m": 1}, `{"m":1}`},
		{"null within stays", map[string]any{"n": map[string]any{"a": nil}}, `{"n":{"a":null}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := settings(t, tt.values)
			if got := string(s.Canonical()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			indented, err := json.MarshalIndent(s, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			var back Settings
			if err := json.Unmarshal(indented, &back); err != nil {
				t.Fatal(err)
			}
			if back.Digest() != s.Digest() || len(s.Diff(back)) != 0 {
				t.Errorf("after a round trip: %s", back.Canonical())
			}
		})
	}
	// The digest is in snapshots that users keep: it must not change between versions.
	if got := settings(t, map[string]any{"batch_rows": 50000}).Digest(); got != "35941160bfc8bbb07677284ad3888520c4f2cc4be034efd4e5e4c25b09ab4a90" {
		t.Errorf("digest is %s", got)
	}
}

func TestSettingsRefuse(t *testing.T) {
	for name, v := range map[string]any{
		"not a number": math.NaN(), "function": func() {}, "bad JSON": json.RawMessage(`{`), "two values": json.RawMessage(`1 2`),
	} {
		if s, err := NewSettings(map[string]any{"x": v}); err == nil {
			t.Errorf("%s: %s", name, s.Canonical())
		}
	}
}

func TestSettingsDiff(t *testing.T) {
	then := settings(t, map[string]any{
		"batch_rows": 50000, "row_filter": "a < 3", "mode": "append",
		"reconciler": map[string]any{"mapping": []string{"a:b"}, "missing": "error"},
	})
	for _, tt := range []struct {
		name   string
		change map[string]any
		want   []string
	}{
		{"nothing", nil, nil},
		{"a number", map[string]any{"batch_rows": 7}, []string{"batch_rows: 50000 then, 7 now"}},
		{"gone", map[string]any{"row_filter": nil}, []string{`row_filter: "a < 3" then, absent now`}},
		{"new", map[string]any{"branch": "dev"}, []string{`branch: absent then, "dev" now`}},
		{"within", map[string]any{"reconciler": map[string]any{"mapping": []string{"a:b"}, "missing": "null"}},
			[]string{`reconciler.missing: "error" then, "null" now`}},
		{"another kind", map[string]any{"reconciler": 1, "batch_rows": "50000"},
			[]string{`batch_rows: 50000 then, "50000" now`, `reconciler: {"mapping":["a:b"],"missing":"error"} then, 1 now`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := map[string]any{}
			for k, v := range then {
				values[k] = v
			}
			for k, v := range tt.change {
				values[k] = v
			}
			now := settings(t, values)
			var got []string
			for _, d := range then.Diff(now) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if (len(got) == 0) != (then.Digest() == now.Digest()) {
				t.Error("digest and differences disagree")
			}
		})
	}
}
