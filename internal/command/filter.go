package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"icepipe/internal/catalogs"
	"icepipe/pkg/filter"
)

// filterFlags say which rows of the source are meant.
type filterFlags struct {
	RowFilter     *string `placeholder:"TEXT" help:"Rows of the source for which this is true, in PyIceberg's grammar and with SQL's meaning: id > 5 AND NOT (name LIKE 'ab%' OR note IS NULL)."`
	RowFilterJSON *string `name:"row-filter-json" placeholder:"JSON" help:"The same as an expression of Iceberg's REST API."`
	RowFilterFile *string `name:"row-filter-file" placeholder:"FILE" help:"The same out of a file, as text or JSON."`
}

// filter reads the row filter, nil when none was given.
func (f filterFlags) filter() (*filter.Expr, error) {
	given := 0
	for _, flag := range []struct {
		name string
		text *string
	}{{"--row-filter", f.RowFilter}, {"--row-filter-json", f.RowFilterJSON}, {"--row-filter-file", f.RowFilterFile}} {
		if flag.text == nil {
			continue
		}
		given++
		if *flag.text == "" { // an unset variable of a shell must not move the whole table
			return nil, usagef("%s is empty; leave it out for all rows", flag.name)
		}
	}
	switch {
	case given > 1:
		return nil, usagef("--row-filter, --row-filter-json and --row-filter-file exclude each other")
	case f.RowFilter != nil:
		e, err := filter.Parse(*f.RowFilter)
		return e, wrongFilter("--row-filter", err)
	case f.RowFilterJSON != nil:
		e, err := filter.ParseJSON([]byte(*f.RowFilterJSON))
		return e, wrongFilter("--row-filter-json", err)
	case f.RowFilterFile == nil:
		return nil, nil
	}
	text, err := os.ReadFile(*f.RowFilterFile)
	if err != nil {
		return nil, fmt.Errorf("--row-filter-file: %w", err)
	}
	flag := fmt.Sprintf("--row-filter-file %q", *f.RowFilterFile)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		e, err := filter.ParseJSON(text)
		return e, wrongFilter(flag, err)
	}
	e, err := filter.Parse(strings.TrimSpace(string(text)))
	return e, wrongFilter(flag, err)
}

// wrongFilter is a mistake on the command line, with its place in the filter.
func wrongFilter(flag string, err error) error {
	if err == nil {
		return nil
	}
	return filterError{&catalogs.UsageError{Text: flag + ": " + err.Error()}, err}
}

type filterError struct {
	usage *catalogs.UsageError
	err   error
}

func (e filterError) Error() string   { return e.usage.Error() }
func (e filterError) Unwrap() []error { return []error{e.usage, e.err} }

// caretOf are the lines that show where in a text the mistake is, nil where there are none.
func caretOf(err error) []string {
	var at interface{ Caret() string }
	if !errors.As(err, &at) {
		return nil
	}
	text := at.Caret()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
