package filter

import (
	"strings"
	"testing"
)

// TestCanonical has spellings of one meaning, a line each, and their canonical form.
func TestCanonical(t *testing.T) {
	schema := everyType()
	for want, spellings := range map[string][]string{
		"l >= 6":                      {"l > 5", "l >= 6", "5 < l", "NOT l <= 5", "not (not (l>5))", "l > 5.9", "l >= 5.01", "l > 5 and l > 3", "l > '5'", "6<=l", "(l > 5)"},
		"l < 6":                       {"l <= 5", "l <= 5.5", "l < 5.5", "not(l >= 6)", "l < 6e0", "l < 60e-1", "l < 6.000"},
		"l IS NOT NULL":               {"l != 3.5", "NOT l = 3.5", "l < 99999999999999999999", "l >= -9223372036854775808", "l = 1 OR l IS NOT NULL OR l = 1 OR l is not null", "l is not null and l is not null"},
		"FALSE":                       {"l = 3.5", "l > 9223372036854775807", "l = NULL", "l != NULL", "NOT (l = NULL)", "l NOT IN (1, NULL)", "NULL", "NOT NULL", "FALSE", "b > TRUE", "l = 1 AND l = 2", "f < '-inf'", "un = 5", "NOT un = 'x'", "un IS NOT NULL", "s < ''", "fx = X'00'", "l = 1 AND FALSE", "l IS NULL AND l = 1", "l IS NULL AND l IS NOT NULL"},
		"TRUE":                        {"TRUE", "NOT FALSE", "un IS NULL", "TRUE OR l = 1", "l = 1 OR NOT FALSE", "l IS NULL OR l IS NOT NULL", "l IS NULL OR NOT l IS NULL OR l = 5"},
		"l IN (1, 2, 3)":              {"l IN (3, 2, 1, 2)", "l = 1 OR l = 2 OR 3 = l", "l in (1,2,3,NULL)", "l in (1, 2.5, 2, 3)", "not l not in (1,2,3)", "l in (0,1,2,3) and l in (1,2,3,4)"},
		"l NOT IN (1, 2)":             {"l not in (2,1)", "l <> 1 AND l != 2", "NOT (l = 1 OR l = 2)", "not l in (1,2)"},
		"l = 1":                       {"l == 1", "1 = l", "l in (1)", "l = 1.0", "l IN (1, 1, 1.5)", "l = 1 AND l = 1", "l IS NOT NULL AND l = 1", "l = 1 OR FALSE"},
		"b = TRUE":                    {"b = true", "b <> false", "b > FALSE", "b = 'true'", "not b = false", "b >= TRUE"},
		"b IS NOT NULL":               {"b IN (TRUE, FALSE)", "b <= true", "b = true or b = false"},
		"l >= 2 AND l < 9":            {"l BETWEEN 2 AND 8", "l < 9 AND l >= 2", "NOT (l NOT BETWEEN 2 AND 8)", "not (l < 2 or l > 8)", "l between 2 and 8 and l < 100"},
		"l >= 9 OR l < 2":             {"l NOT BETWEEN 2 AND 8", "l < 2 or l > 8"},
		"dec < 5.01":                  {"dec <= 5", "dec <= 5.00", "dec < 5.001", "not dec > 5", "dec <= '5'"},
		"d < 1.5":                     {"d < 1.5", "d < 15e-1", "not (d >= 1.50)"},
		"d IS NAN":                    {"d = 'NaN'", "d > 'Infinity'", "d IS NAN", "d >= 'nan'", "d IN ('NaN')"},
		"d IS NOT NAN":                {"d <= 'inf'", "d < 'NaN'", "not d is nan", "d != 'NaN'"},
		"d >= 'Infinity'":             {"d > 1e400", "d >= 1e999", "d >= 'inf'"},
		"d = 0":                       {"d = -0.0", "d = 0", "d in (0, -0.0)"},
		"f = 0.1":                     {"f = 0.1", "f = 0.100000001490116"},
		"day = '2024-02-29'":          {"day = '2024-02-29'", "day = DATE '2024-02-29'", "day in ('2024-02-29')"},
		"day >= '2024-03-01'":         {"day > '2024-02-29'", "day >= date'2024-03-01'"},
		"ts >= '2024-01-01T00:00:00'": {"ts >= '2024-01-01'", "ts >= '2024-01-01T00:00'", "ts >= '2024-01-01 00:00:00'", "ts >= timestamp '2024-01-01t00:00:00.000000'", "ts > '2023-12-31T23:59:59.999999'", "ts > '2023-12-31T23:59:59.9999999'"},
		"tz < '2024-01-01T00:00:00+00:00'": {
			"tz < '2024-01-01T00:00:00Z'", "tz < '2024-01-01 01:00:00+01:00'", "tz < '2023-12-31T16:30:00-0730'", "tz <= '2023-12-31T23:59:59.999999+00'",
		},
		"ns = '2024-01-01T00:00:00.000000001'": {"ns = '2024-01-01T00:00:00.000000001'", "ns in ('2024-01-01 00:00:00.0000000010')"},
		"tod = '10:20:30.500000'":              {"tod = '10:20:30.5'", "tod = TIME '10:20:30.500000'"},
		"s LIKE 'ab%'":                         {"s LIKE 'ab%'", "s STARTS WITH 'ab'", "not s not like 'ab%'", "s starts with 'ab'"},
		"s NOT LIKE 'ab%'":                     {"s NOT LIKE 'ab%'", "NOT s STARTS WITH 'ab'", "s not starts with 'ab'"},
		"s = 'a%b'":                            {`s LIKE 'a\%b'`, "s = 'a%b'"},
		`s LIKE 'a\_\\\%%'`:                    {`s LIKE 'a\_\\\%%'`, `s STARTS WITH 'a_\%'`},
		"s IS NOT NULL":                        {"s LIKE '%'", "s >= ''", "s STARTS WITH ''"},
		"s != ''":                              {"s > ''", "s <> ''"},
		"s = 'it''s'":                          {"s = 'it''s'", "s in ('it''s')"},
		"u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'": {"u = 'F79C3E09-677C-4BBD-A479-3F349CB785E7'", "u = uuid 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"},
		"bin = X'00ff'":                 {"bin = X'00FF'", "bin = x'00ff'"},
		`"a.b" = 3`:                     {`"a.b" = 3`, `3 = "a.b"`},
		`st.x = 3`:                      {`st.x = 3`, `"st"."x" = 3`, `st . x = 3`},
		`st."in".y = 'q'`:               {`st.in.y = 'q'`},
		"b = TRUE AND (i = 1 OR l = 2)": {"(l = 2 OR i = 1) AND b = true", "not (b = false or (l != 2 and i <> 1)) "},
		"b = TRUE OR (i = 1 AND l = 2)": {"b = true or i = 1 and l = 2"},
		"day = '+10000-01-01'":          {"day = '+10000-01-01'"},
		"day = '-0001-12-31'":           {"day = '-0001-12-31'"},
		"big < 1.0000000001":            {"big <= 1"},
		"big = 9999999999999999999999999999.9999999999": {"big >= 9999999999999999999999999999.9999999999"},
	} {
		for _, text := range spellings {
			if got := bindText(t, schema, text).String(); got != want {
				t.Errorf("%s\n got %s\nwant %s", text, got, want)
			}
		}
		if got := bindText(t, schema, want).String(); got != want {
			t.Errorf("canonical %s becomes %s", want, got)
		}
	}
}

// TestRefused has filters that are refused, with what is marked by the caret and a part of the reason.
func TestRefused(t *testing.T) {
	schema := everyType()
	for _, c := range []struct{ text, marked, reason string }{
		{"", "", "leave it out to take all rows"},
		{"  ", "", "the filter is empty"},
		{"l", "", "want a comparison after column \"l\""},
		{"l = ", "", "want a literal after =, not the end"},
		{"l = 1 l = 2", "l", "want AND, OR or the end"},
		{"(l = 1", "(", "without its )"},
		{"l = 1)", ")", "without its ("},
		{"NOT", "", "want a column, a literal, NOT or (, not the end"},
		{"l = s", "s", "columns are not compared with columns"},
		{`l = "s"`, `"s"`, "a text stands in single quotes"},
		{"1 = 2", "1 = 2", "two literals are compared"},
		{"'l' = 2", "'l' = 2", "a name stands in double quotes"},
		{"idd = 1", "idd", `there is no column "idd"; the table has 20 columns, such as `},
		{"L = 1", "L", "near are l"},
		{"decc = 1", "decc", "near are dec"},
		{"st.xx = 1", "st.xx", `there is no field "xx" in "st"; near are st.x`},
		{"a.b = 1", "a.b", `near are "a.b"`},
		{"x = 1", "x", "near are st.x"},
		{"l.x = 1", "l.x", "has type long, and a path goes through structs alone"},
		{"li.element = 1", "li.element", "has type list"},
		{"li = 1", "li", "only IS NULL and IS NOT NULL"},
		{"st = 1", "st", "compare one of its fields, such as st.x"},
		{"l = 'x'", "'x'", `column "l" has type long: 'x' is no number`},
		{"l = TRUE", "TRUE", `column "l" has type long`},
		{"l = X'00'", "X'00'", "is no number"},
		{"l IN ()", ")", "want a literal in the list of IN"},
		{"l IN (1, 'x')", "'x'", "is no number"},
		{"l IN 1", "1", "want ( after IN"},
		{"l BETWEEN 1", "", "want AND between"},
		{"s = 5", "5", "write '5' for a text"},
		{"day = 19000", "19000", "2022-01-08"},
		{"day = '2023-02-29'", "'2023-02-29'", "there is no such day"},
		{"day = TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-01'", "is not of that type"},
		{"tod = '25:00'", "'25:00'", "no such time of day"},
		{"ts = '2024-01-01T00:00:00Z'", "'2024-01-01T00:00:00Z'", "no zone; leave it out: '2024-01-01T00:00:00'"},
		{"tz = '2024-01-01T00:00:00'", "'2024-01-01T00:00:00'", "say which: '2024-01-01T00:00:00+00:00'"},
		{"ts > 1700000000", "1700000000", "1970-01-01T00:28:20"},
		{"u = 'x'", "'x'", "is no UUID"},
		{"bin = 'ab'", "'ab'", "X'6162'"},
		{"bin = X'0'", "X'0'", "pairs of hexadecimal digits"},
		{"l IS NAN", "l IS NAN", "only float and double have NaN"},
		{"l LIKE 'a%'", "l LIKE 'a%'", "only a string begins with a text"},
		{"s LIKE '%a'", "'%a'", "at the end of the pattern"},
		{"s LIKE 'a_%'", "'a_%'", "any one letter in SQL and itself in PyIceberg"},
		{`s LIKE 'a\b%'`, `'a\b%'`, `write \\ for itself`},
		{"s LIKE 5", "5", "want a text after LIKE"},
		{"s ILIKE 'a'", "ILIKE", "ILIKE is not known"},
		{"s = 'a", "'a", "a text is not closed"},
		{`"s = 'a'`, `"s = 'a'`, "a name is not closed"},
		{"lower(s) = 'a'", "(", "there are no functions in a filter"},
		{"b IS TRUE", "TRUE", "write = TRUE"},
		{"`l` = 1", "`", "names stand in double quotes"},
		{"l = 1;", ";", "a filter is one condition"},
		{"l = 12abc", "12a", `followed by "a"`},
		{"l = 1e99999", "1e99999", "an exponent beyond 1000"},
		{strings.Repeat("(", 300) + "l = 1", "(", "nested deeper than 200"},
		{"s = '\xff'", "'\xff", "not UTF-8"},
	} {
		e, err := Parse(c.text)
		if err == nil {
			_, err = e.Bind(schema)
		}
		if err == nil {
			t.Errorf("%s: it is taken", c.text)
			continue
		}
		wrong := err.(*Error)
		if !strings.Contains(wrong.Reason, c.reason) || strings.Contains(wrong.Reason, "\n") {
			t.Errorf("%s: reason %q, want %q in it", c.text, wrong.Reason, c.reason)
		}
		if got := wrong.Text[wrong.At:wrong.To]; got != c.marked {
			t.Errorf("%s: %q is marked, want %q", c.text, got, c.marked)
		}
	}
}

// TestCaret shows the place of an error in lines, long ones shortened.
func TestCaret(t *testing.T) {
	_, err := Parse("l = 1 AND\n\ts = ü 'ä' x'0'")
	if got, want := err.(*Error).Caret(), " s = ü 'ä' x'0'\n     ^"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := strings.Repeat("l = 1 OR ", 30) + "s = 5"
	e, err := Parse(long)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Bind(everyType())
	got := strings.Split(err.(*Error).Caret(), "\n")
	if len(got) != 2 || !strings.HasPrefix(got[0], "…") || []rune(got[0])[strings.Index(got[1], "^")] != '5' {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
