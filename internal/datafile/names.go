package datafile

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/apache/iceberg-go"
)

// storedName is the name that a column has in the file: what Iceberg's Java library and PyIceberg
// write, which is the name with what Avro does not allow spelled out (case 55). Readers go by field ID.
func storedName(name string) string {
	if name == "" {
		return "_"
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == '_' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r):
			b.WriteRune(r)
		case unicode.IsDigit(r):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteString("_x")
			b.WriteString(strings.ToUpper(strconv.FormatInt(int64(r), 16)))
		}
	}
	return b.String()
}

// storedNames gives the names of sibling fields in the file, each once.
func storedNames(fields []iceberg.NestedField) []string {
	out := make([]string, len(fields))
	taken := make(map[string]bool, len(fields))
	for _, f := range fields {
		taken[f.Name] = true
	}
	for i, f := range fields {
		n := storedName(f.Name)
		if n != f.Name && taken[n] {
			n += "_" + strconv.Itoa(f.ID)
		}
		taken[n] = true
		out[i] = n
	}
	return out
}

// avroName reports whether a name may stand in a manifest's Avro schema as it is.
func avroName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
