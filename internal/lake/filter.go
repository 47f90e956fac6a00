package lake

import (
	"errors"
	"slices"

	"github.com/apache/iceberg-go"

	"icepipe/pkg/filter"
)

// bindFilter ties the row filter to the snapshot's schema, and finds the columns that it asks about. A filter that
// selects every row is none.
func (s *Scan) bindFilter(full *iceberg.Schema) error {
	s.whole, s.tests.schema = s.schema, iceberg.NewSchema(s.schema.ID)
	if s.options.Filter == nil {
		return nil
	}
	bound, err := s.options.Filter.Bind(full)
	if err != nil {
		return &FilterError{Err: err}
	}
	if bound.All() {
		return nil
	}
	s.filter = bound
	fields := slices.Clone(s.schema.Fields())
	var asked []iceberg.NestedField
	for _, id := range bound.Columns() {
		has := func(f iceberg.NestedField) bool { return f.ID == id }
		at := slices.IndexFunc(full.Fields(), has)
		if at < 0 {
			continue
		}
		asked = append(asked, full.Fields()[at])
		if !slices.ContainsFunc(fields, has) {
			fields = append(fields, full.Fields()[at])
		}
	}
	s.whole, s.tests.schema = iceberg.NewSchema(s.schema.ID, fields...), iceberg.NewSchema(s.schema.ID, asked...)
	return nil
}

// A FilterError says that a row filter does not fit the table. Caret shows where, where that is known.
type FilterError struct{ Err error }

func (e *FilterError) Error() string { return "row filter: " + e.Err.Error() }
func (e *FilterError) Unwrap() error { return e.Err }

// Caret is the place in the filter's text, "" where there is none.
func (e *FilterError) Caret() string {
	var at *filter.Error
	if errors.As(e.Err, &at) {
		return at.Caret()
	}
	return ""
}
