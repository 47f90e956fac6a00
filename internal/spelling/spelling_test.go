package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"orders", "orders", 0}, {"orders", "order", 1},
		{"orders", "ordres", 2}, {"kitten", "sitting", 3}, {"größe", "grosse", 3}, {"a", "ä", 1},
	} {
		if got := Distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
