package arrowipc

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"

	"icepipe/pkg/rows"
)

// Keys of the marks; the package comment says what they hold.
const (
	keyPrefix    = "icepipe."
	keyHeader    = keyPrefix + "header"
	keyHash      = keyPrefix + "hash"
	keyFrom      = keyPrefix + "from"
	keyTo        = keyPrefix + "to"
	keyRows      = keyPrefix + "rows"
	keyKept      = keyPrefix + "kept"
	keyEndsBatch = keyPrefix + "ends-batch"
	keySeal      = keyPrefix + "seal"
	keySealHash  = keyPrefix + "seal-hash"
)

// noHash stands in the place of a hash while the bytes around it are hashed.
const noHash = "00000000000000000000000000000000"

func hashText(h xxh3.Uint128) string {
	b := h.Bytes()
	return hex.EncodeToString(b[:])
}

// spanMarks is the metadata of a span's record batch.
func spanMarks(s rows.Span, hash string) arrow.Metadata {
	keys := []string{keyFrom, keyTo, keyRows, keyHash}
	values := []string{s.From.String(), s.To.String(), strconv.FormatInt(s.Rows, 10), hash}
	if s.Kept != nil {
		keys, values = append(keys, keyKept), append(values, base64.StdEncoding.EncodeToString(s.Kept))
	}
	if s.EndsBatch {
		keys, values = append(keys, keyEndsBatch), append(values, "true")
	}
	return arrow.NewMetadata(keys, values)
}

// parseSpanMarks is the inverse of spanMarks; the record batch is the caller's to add.
func parseSpanMarks(pairs []pair) (rows.Span, error) {
	var s rows.Span
	text := func(key string) (string, error) {
		p, ok := find(pairs, key)
		if !ok {
			return "", fmt.Errorf("record batch without %s", key)
		}
		return p.value, nil
	}
	for _, c := range []struct {
		key string
		to  *rows.Cursor
	}{{keyFrom, &s.From}, {keyTo, &s.To}} {
		v, err := text(c.key)
		if err != nil {
			return s, err
		}
		if *c.to, err = rows.ParseCursor(v); err != nil {
			return s, err
		}
	}
	v, err := text(keyRows)
	if err != nil {
		return s, err
	}
	if s.Rows, err = strconv.ParseInt(v, 10, 64); err != nil {
		return s, fmt.Errorf("%s %q is not a count", keyRows, v)
	}
	if p, ok := find(pairs, keyKept); ok {
		if s.Kept, err = base64.StdEncoding.DecodeString(p.value); err != nil {
			return s, fmt.Errorf("%s: %w", keyKept, err)
		}
	}
	if p, ok := find(pairs, keyEndsBatch); ok {
		if p.value != "true" {
			return s, fmt.Errorf("%s is %q", keyEndsBatch, p.value)
		}
		s.EndsBatch = true
	}
	return s, nil
}

// sealMarks is the metadata of the seal's record batch.
func sealMarks(seal rows.Seal, hash string) (arrow.Metadata, error) {
	text, err := jsonText(seal)
	if err != nil {
		return arrow.Metadata{}, fmt.Errorf("seal: %w", err)
	}
	return arrow.NewMetadata(
		[]string{keySeal, keySealHash, keyHash},
		[]string{text, hashText(xxh3.HashString128(text)), hash}), nil
}

// parseSeal is the inverse of sealMarks.
func parseSeal(text string, pairs []pair) (rows.Seal, error) {
	var seal rows.Seal
	if p, _ := find(pairs, keySealHash); p.value != hashText(xxh3.HashString128(text)) {
		return seal, fmt.Errorf("seal does not match its hash")
	}
	if err := json.Unmarshal([]byte(text), &seal); err != nil {
		return seal, fmt.Errorf("seal: %w", err)
	}
	return seal, nil
}

// features are those that this version knows of Header.Requires.
var features = map[string]bool{}

// parseHeader reads a header, and refuses one that was written for another reader.
func parseHeader(text string) (rows.Header, error) {
	var first struct {
		Protocol int      `json:"protocol"`
		Requires []string `json:"requires"`
	}
	if err := json.Unmarshal([]byte(text), &first); err != nil {
		return rows.Header{}, fmt.Errorf("stream header: %w", err)
	}
	if first.Protocol != rows.Protocol {
		return rows.Header{}, fmt.Errorf(
			"stream has protocol %d, this program reads %d: use the same version of icepipe at both ends",
			first.Protocol, rows.Protocol)
	}
	for _, name := range first.Requires {
		if !features[name] {
			return rows.Header{}, fmt.Errorf(
				"stream requires %q, which this program does not know: use the newer version of icepipe here", name)
		}
	}
	var h rows.Header
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return rows.Header{}, fmt.Errorf("stream header: %w", err)
	}
	return h, nil
}

// jsonText is JSON that leaves <, > and & as they are, so that raw members come back unchanged.
func jsonText(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// withMarks adds keys to a schema's metadata; withoutMarks takes them out again.
func withMarks(s *arrow.Schema, keys, values []string) *arrow.Schema {
	s = withoutMarks(s)
	md := s.Metadata()
	all := arrow.NewMetadata(slices.Concat(md.Keys(), keys), slices.Concat(md.Values(), values))
	return arrow.NewSchema(s.Fields(), &all)
}

func withoutMarks(s *arrow.Schema) *arrow.Schema {
	md := s.Metadata()
	var keys, values []string
	for i, k := range md.Keys() {
		if !strings.HasPrefix(k, keyPrefix) {
			keys, values = append(keys, k), append(values, md.Values()[i])
		}
	}
	if keys == nil {
		return arrow.NewSchema(s.Fields(), nil)
	}
	kept := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(s.Fields(), &kept)
}
