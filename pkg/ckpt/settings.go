package ckpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Settings are all the choices that decide which rows and values a job writes, by name, each in
// canonical JSON: members of objects in order, no space, numbers as they were given. A setting
// that is null counts as absent, so that a later program can add one whose default is null.
type Settings map[string]json.RawMessage

// NewSettings returns the settings in canonical form. A value is anything that encoding/json can
// marshal, json.RawMessage included.
func NewSettings(values map[string]any) (Settings, error) {
	s := make(Settings, len(values))
	for name, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("setting %q: %w", name, err)
		}
		if err := s.set(name, text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// UnmarshalJSON reads settings in whatever layout and keeps their canonical form.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	*s = make(Settings, len(members))
	for name, v := range members {
		if err := s.set(name, v); err != nil {
			return err
		}
	}
	return nil
}

func (s Settings) set(name string, text []byte) error {
	v, err := canonical(text)
	if err != nil {
		return fmt.Errorf("setting %q: %w", name, err)
	}
	if string(v) != "null" {
		s[name] = v
	}
	return nil
}

// Canonical returns all settings as one JSON object in canonical form: what Digest is taken of.
func (s Settings) Canonical() json.RawMessage {
	out := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, err := encode(name)
		if err != nil {
			panic(err) // a string always encodes
		}
		out = append(append(append(out, key...), ':'), s[name]...)
	}
	return append(out, '}')
}

// Digest returns the SHA-256 of the canonical form in hexadecimal digits.
func (s Settings) Digest() string {
	sum := sha256.Sum256(s.Canonical())
	return hex.EncodeToString(sum[:])
}

// A Difference is a setting that is not what it was.
type Difference struct {
	Name      string // members of an object setting are named NAME.MEMBER
	Then, Now string // canonical JSON, or "absent"
}

// String returns "NAME: THEN then, NOW now".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s then, %s now", d.Name, d.Then, d.Now)
}

// Diff lists how now differs from s, the settings then, ordered by name. It is empty exactly when
// the digests are equal.
func (s Settings) Diff(now Settings) []Difference {
	return diff("", s, now)
}

func diff(prefix string, then, now map[string]json.RawMessage) []Difference {
	names := slices.Collect(maps.Keys(then))
	for name := range now {
		if _, ok := then[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	var out []Difference
	for _, name := range names {
		a, inThen := then[name]
		b, inNow := now[name]
		if inThen == inNow && bytes.Equal(a, b) {
			continue
		}
		if as, bs := members(a), members(b); as != nil && bs != nil {
			out = append(out, diff(prefix+name+".", as, bs)...)
			continue
		}
		d := Difference{Name: prefix + name, Then: "absent", Now: "absent"}
		if inThen {
			d.Then = string(a)
		}
		if inNow {
			d.Now = string(b)
		}
		out = append(out, d)
	}
	return out
}

// members returns those of an object in canonical form, nil for any other value.
func members(text json.RawMessage) map[string]json.RawMessage {
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	var out map[string]json.RawMessage
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// canonical brings one JSON value into canonical form.
func canonical(text []byte) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // 19-digit IDs keep their digits
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return encode(v)
}

// encode is json.Marshal without the escapes for HTML, which people would have to read.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}
