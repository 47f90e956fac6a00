package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// The policies for columns that one side lacks, and for values that the destination cannot hold.
const (
	PolicyError   = "error"    // refuse, the default
	PolicyNull    = "null"     // missing in the source, or a value that does not fit: write null
	PolicySkip    = "skip"     // missing in the source: write the column's write-default, null if it has none
	PolicyAutoAdd = "auto_add" // missing in the destination: add it, optional
	PolicyIgnore  = "ignore"   // missing in the destination: leave it out
	PolicyReject  = "reject"   // a value that does not fit: leave its row out, and name it
)

// A Rename maps the source column at path From to the destination column at path To.
type Rename struct{ From, To string }

// A Coercion sets the type of a destination column: an added column gets it; an existing one is
// evolved to it, which must be a legal promotion of its type.
type Coercion struct{ Column, Type string }

// Options are what a user asks of the reconciler. The zero value matches by name and refuses
// what one side lacks.
type Options struct {
	Mapping         []Rename
	MissingInSource string // PolicyError (or empty), PolicyNull, PolicySkip
	MissingInDest   string // PolicyError (or empty), PolicyAutoAdd, PolicyIgnore
	Coercions       []Coercion
	Drop            []string // paths of source columns that are left out on purpose
	IgnoreCase      bool     // names that differ only by case are the same
	OnCastError     string   // PolicyError (or empty), PolicyNull, PolicyReject
	AssumeTimezone  string   // of timestamps without one, where they become instants or the other way round
}

// settings is the canonical form of Options.
type settings struct {
	Mapping         []mappingSetting  `json:"column_mapping"`
	MissingInSource string            `json:"on_missing_in_source"`
	MissingInDest   string            `json:"on_missing_in_dest"`
	Coercions       []coercionSetting `json:"type_coercions"`
	Drop            []string          `json:"drop,omitempty"`
	IgnoreCase      bool              `json:"ignore_case,omitempty"`
	OnCastError     string            `json:"on_cast_error,omitempty"` // not said: error
	AssumeTimezone  string            `json:"assume_timezone,omitempty"`
}

type mappingSetting struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type coercionSetting struct {
	Column string `json:"column"`
	Type   string `json:"type"`
}

// Canonical returns the options as JSON in which two spellings of the same settings are equal:
// defaults are written out, paths and types take their shortest form, lists are sorted, and a
// mapping of a name to itself, which changes nothing, is left out. What cannot be parsed stays as
// it is; Build refuses it. What becomes of values that do not fit is no setting in this sense: to say
// it is a cure for a job that one of them stopped.
func (o Options) Canonical() json.RawMessage {
	o.OnCastError = ""
	text, err := json.Marshal(o.canonical())
	if err != nil { // strings alone are always marshalled
		panic(err)
	}
	return text
}

func (o Options) canonical() settings {
	s := settings{
		Mapping:         []mappingSetting{},
		MissingInSource: cmp.Or(o.MissingInSource, PolicyError),
		MissingInDest:   cmp.Or(o.MissingInDest, PolicyError),
		Coercions:       []coercionSetting{},
		IgnoreCase:      o.IgnoreCase,
		AssumeTimezone:  o.AssumeTimezone,
	}
	if o.OnCastError != PolicyError {
		s.OnCastError = o.OnCastError
	}
	for _, d := range o.Drop {
		s.Drop = append(s.Drop, canonicalPath(d))
	}
	slices.Sort(s.Drop)
	s.Drop = slices.Compact(s.Drop)
	for _, m := range o.Mapping {
		if from, to := canonicalPath(m.From), canonicalPath(m.To); from != to {
			s.Mapping = append(s.Mapping, mappingSetting{From: from, To: to})
		}
	}
	for _, c := range o.Coercions {
		typ := c.Type
		if t, err := parseType(typ); err == nil {
			typ = t.Type()
		}
		s.Coercions = append(s.Coercions, coercionSetting{Column: canonicalPath(c.Column), Type: typ})
	}
	slices.SortFunc(s.Mapping, func(a, b mappingSetting) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	slices.SortFunc(s.Coercions, func(a, b coercionSetting) int {
		return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.Type, b.Type))
	})
	s.Mapping, s.Coercions = slices.Compact(s.Mapping), slices.Compact(s.Coercions)
	return s
}

func (s settings) options() Options {
	o := Options{MissingInSource: s.MissingInSource, MissingInDest: s.MissingInDest, Drop: s.Drop,
		IgnoreCase: s.IgnoreCase, OnCastError: s.OnCastError, AssumeTimezone: s.AssumeTimezone}
	for _, m := range s.Mapping {
		o.Mapping = append(o.Mapping, Rename(m))
	}
	for _, c := range s.Coercions {
		o.Coercions = append(o.Coercions, Coercion(c))
	}
	return o
}

func canonicalPath(text string) string {
	parts, err := ParsePath(text)
	if err != nil {
		return text
	}
	return FormatPath(parts)
}

// Check says what of the options is wrong whatever the schemas are.
func (o Options) Check() error {
	switch o.MissingInSource {
	case "", PolicyError, PolicyNull, PolicySkip:
	default:
		return fmt.Errorf("on-missing-in-source %q: want error, null or skip", o.MissingInSource)
	}
	switch o.MissingInDest {
	case "", PolicyError, PolicyAutoAdd, PolicyIgnore:
	default:
		return fmt.Errorf("on-missing-in-dest %q: want error, auto_add or ignore", o.MissingInDest)
	}
	switch o.OnCastError {
	case "", PolicyError, PolicyNull, PolicyReject:
	default:
		return fmt.Errorf("on-cast-error %q: want error, null or reject", o.OnCastError)
	}
	if o.AssumeTimezone != "" {
		if _, err := parseZone(o.AssumeTimezone); err != nil {
			return fmt.Errorf("assume-timezone: %w", err)
		}
	}
	from, to, column := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range o.Mapping {
		f, err := ParsePath(m.From)
		if err != nil {
			return fmt.Errorf("column mapping: %w", err)
		}
		t, err := ParsePath(m.To)
		if err != nil {
			return fmt.Errorf("column mapping: %w", err)
		}
		if from[key(f)] {
			return fmt.Errorf("column mapping: source column %s is mapped twice; map it once", quote(f))
		}
		if to[key(t)] {
			return fmt.Errorf("column mapping: two source columns are mapped to %s; map one of them elsewhere", quote(t))
		}
		from[key(f)], to[key(t)] = true, true
	}
	for _, d := range o.Drop {
		p, err := ParsePath(d)
		if err != nil {
			return fmt.Errorf("drop: %w", err)
		}
		if from[key(p)] {
			return fmt.Errorf("drop: source column %s is mapped too; do one or the other", quote(p))
		}
	}
	for _, c := range o.Coercions {
		p, err := ParsePath(c.Column)
		if err != nil {
			return fmt.Errorf("type coercion: %w", err)
		}
		if _, err := parseType(c.Type); err != nil {
			return fmt.Errorf("type coercion of %s: %w", quote(p), err)
		}
		if column[key(p)] {
			return fmt.Errorf("type coercion: column %s is named twice; give it one type", quote(p))
		}
		column[key(p)] = true
	}
	return nil
}

// key makes a path the key of a map.
func key(path []string) string { return FormatPath(path) }
