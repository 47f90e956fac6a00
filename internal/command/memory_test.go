package command

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1024": 1024, "256MiB": 256 << 20, "256mib": 256 << 20, "1.5 GB": 1_500_000_000, "2KB": 2000, "3KiB": 3072, "1TiB": 1 << 40, "7B": 7,
	} {
		if n, ok := parseSize(text); !ok || n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1 furlong", "1iB", "NaN", "1e300GB", "0x10", "1,5GB", "12Mi"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}
