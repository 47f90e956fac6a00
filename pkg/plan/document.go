package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/iceberg-go"
)

const (
	// documentVersion is the version of the plan document.
	documentVersion = 1
	// What a document may ask of memory and stack, before it is decoded.
	maxDocument = 16 << 20 // bytes
	maxMembers  = 1 << 20  // members and elements
	maxNesting  = 512      // of arrays and objects
)

// document is a plan as JSON. Its members and lists have a fixed order.
type document struct {
	Plan          int         `json:"plan"`
	FormatVersion int         `json:"format_version"`
	SchemaID      int         `json:"schema_id"`
	Identifiers   []int       `json:"identifier_field_ids"`
	Settings      settings    `json:"settings"`
	Columns       []columnDoc `json:"columns"`
	LeftOut       []leftDoc   `json:"left_out"`
	Changes       []changeDoc `json:"changes"`
	Warnings      []string    `json:"warnings"`

	Destination json.RawMessage `json:"destination,omitempty"`
}

type columnDoc struct {
	Column         string          `json:"column"`
	Action         Action          `json:"action"`
	Source         string          `json:"source,omitempty"`
	SourceType     string          `json:"source_type,omitempty"`
	SourceRequired bool            `json:"source_required,omitempty"`
	Was            string          `json:"promoted_from,omitempty"`
	Loses          string          `json:"loses,omitempty"` // for people: it follows from the types
	Fails          string          `json:"fails,omitempty"`
	Target         json.RawMessage `json:"target,omitempty"` // Iceberg's JSON of a field; at the root only
	Fields         []columnDoc     `json:"fields,omitempty"`
}

type leftDoc struct {
	Column string          `json:"column"`
	Type   json.RawMessage `json:"type"`
}

type changeDoc struct {
	Kind   ChangeKind `json:"kind"`
	Column string     `json:"column"`
	Type   string     `json:"type"`
}

// MarshalJSON returns the plan's document. It is the same for equal plans, byte for byte.
func (p *Plan) MarshalJSON() ([]byte, error) {
	d := document{
		Plan: documentVersion, FormatVersion: p.FormatVersion, SchemaID: p.SchemaID,
		Identifiers: append([]int{}, p.Identifiers...), Settings: p.Settings.canonical(),
		Columns: []columnDoc{}, LeftOut: []leftDoc{}, Changes: changeDocs(p.Changes),
		Warnings: append([]string{}, p.Warnings...), Destination: p.Destination,
	}
	for i := range p.Columns {
		c := columnDocOf(&p.Columns[i])
		target, err := json.Marshal(p.Columns[i].Target)
		if err != nil {
			return nil, fmt.Errorf("plan document: column %s: %w", c.Column, err)
		}
		c.Target = target
		d.Columns = append(d.Columns, c)
	}
	for _, l := range p.LeftOut {
		t, err := typeJSON(l.Type)
		if err != nil {
			return nil, fmt.Errorf("plan document: column %s: %w", quote(l.Path), err)
		}
		d.LeftOut = append(d.LeftOut, leftDoc{Column: FormatPath(l.Path), Type: t})
	}
	return json.Marshal(d)
}

func columnDocOf(c *Column) columnDoc {
	d := columnDoc{Column: FormatPath(c.Path), Action: c.Action, SourceRequired: c.SourceRequired}
	if c.Source != nil {
		d.Source = FormatPath(c.Source)
	}
	if c.SourceType != nil {
		d.SourceType = c.SourceType.Type()
	}
	if c.Was != nil {
		d.Was = c.Was.Type()
	}
	d.Loses, d.Fails = c.Loses(), c.Fails()
	for i := range c.Fields {
		d.Fields = append(d.Fields, columnDocOf(&c.Fields[i]))
	}
	return d
}

func changeDocs(changes []Change) []changeDoc {
	docs := []changeDoc{}
	for _, c := range changes {
		docs = append(docs, changeDoc{Kind: c.Kind, Column: FormatPath(c.Path), Type: typeText(c.Type)})
	}
	return docs
}

func typeJSON(t iceberg.Type) (json.RawMessage, error) {
	if isNested(t) {
		return json.Marshal(t)
	}
	return json.Marshal(t.Type())
}

// Parse reads a plan's document. It trusts nothing in it: whatever Build would not make is an error
// that names the column, and size and depth are bounded.
func Parse(text []byte) (*Plan, error) {
	if err := checkSize(text); err != nil {
		return nil, fmt.Errorf("plan document: %w", err)
	}
	var version struct {
		Plan *int `json:"plan"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("plan document: %w", err)
	}
	switch {
	case version.Plan == nil:
		return nil, errors.New(`plan document: there is no member "plan" with its version; give a file that --plan-out wrote`)
	case *version.Plan != documentVersion:
		return nil, fmt.Errorf("plan document: it has version %d, and this program reads version %d; make the plan anew",
			*version.Plan, documentVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var d document
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("plan document: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("plan document: there is text after its end")
	}
	p, err := d.plan()
	if err != nil {
		return nil, fmt.Errorf("plan document: %w", err)
	}
	return p, nil
}

// plan checks the document and makes the plan of it.
func (d *document) plan() (*Plan, error) {
	if d.FormatVersion < 1 || d.FormatVersion > 3 {
		return nil, fmt.Errorf("format version %d is not supported: 1, 2 and 3 are", d.FormatVersion)
	}
	p := &Plan{FormatVersion: d.FormatVersion, SchemaID: d.SchemaID, Identifiers: d.Identifiers, Settings: d.Settings.options(),
		Warnings: d.Warnings, Destination: d.Destination}
	if len(d.Destination) > 0 && d.Destination[0] != '{' {
		return nil, errors.New("the destination is no object; give a file that --plan-out wrote")
	}
	if err := p.Settings.Check(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	r := reader{version: d.FormatVersion, zone: p.Settings.AssumeTimezone != "", ids: map[int]bool{}}
	targets := make([]iceberg.NestedField, len(d.Columns))
	for i, c := range d.Columns {
		if c.Target == nil {
			return nil, fmt.Errorf("column %s: it has no target", quoteText(c.Column))
		}
		if err := json.Unmarshal(c.Target, &targets[i]); err != nil {
			return nil, fmt.Errorf("column %s: target: %w", quoteText(c.Column), err)
		}
	}
	if err := checkFields("destination", targets, nil, nil); err != nil {
		return nil, err
	}
	var err error
	if p.Columns, err = r.fields(d.Columns, targets, place{}); err != nil {
		return nil, err
	}
	if err := checkAdded(p.Columns); err != nil {
		return nil, err
	}
	for _, id := range p.Identifiers {
		if !r.ids[id] {
			return nil, fmt.Errorf("identifier field %d: there is no such column", id)
		}
	}
	for _, l := range d.LeftOut {
		left, err := l.left()
		if err != nil {
			return nil, fmt.Errorf("left out: %w", err)
		}
		p.LeftOut = append(p.LeftOut, left)
	}
	p.Changes = changesOf(p.Columns)
	if !slices.Equal(changeDocs(p.Changes), append([]changeDoc{}, d.Changes...)) {
		return nil, errors.New("the changes are not those that the columns need; make the plan anew")
	}
	return p, nil
}

func (l leftDoc) left() (Left, error) {
	path, err := ParsePath(l.Column)
	if err != nil {
		return Left{}, err
	}
	t, err := typeFromJSON(l.Type)
	if err != nil {
		return Left{}, fmt.Errorf("column %s: %w", quote(path), err)
	}
	if deep(t, maxDepth) {
		return Left{}, fmt.Errorf("column %s: it is nested more than %d deep", quote(path), maxDepth)
	}
	return Left{path, t}, nil
}

// deep tells whether a type is nested more than most deep.
func deep(t iceberg.Type, most int) bool {
	for _, f := range children(t) {
		if most == 0 || deep(f.Type, most-1) {
			return true
		}
	}
	return false
}

// checkSize bounds what decoding may cost, by counting what opens, separates and nests.
func checkSize(text []byte) error {
	if len(text) > maxDocument {
		return fmt.Errorf("it has %d bytes, more than %d", len(text), maxDocument)
	}
	depth, members, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			members++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			members++
		}
		if depth > maxNesting {
			return fmt.Errorf("it is nested more than %d deep", maxNesting)
		}
		if members > maxMembers {
			return fmt.Errorf("it has more than %d members", maxMembers)
		}
	}
	return nil
}
