package filter

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Dates and times as ISO 8601 writes them, years of four digits or with a sign, the proleptic
// Gregorian calendar.
var (
	datePattern = regexp.MustCompile(`^([+-]\d{4,7}|\d{4})-(\d\d)-(\d\d)$`)
	timePattern = regexp.MustCompile(`^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,12}))?)?$`)
	zonePattern = regexp.MustCompile(`(?:[Zz]|([+-])(\d\d):?(\d\d)?)$`)
)

const daySeconds = 86400

// parseDate returns the days since 1970.
func parseDate(s string) (int64, error) {
	m := datePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("want YYYY-MM-DD")
	}
	year, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[2])
	day, _ := strconv.Atoi(m[3])
	at := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if at.Year() != year || int(at.Month()) != month || at.Day() != day {
		return 0, fmt.Errorf("there is no such day")
	}
	return at.Unix() / daySeconds, nil
}

// parseTime returns the time of day in seconds.
func parseTime(s string) (number, error) {
	m := timePattern.FindStringSubmatch(s)
	if m == nil {
		return number{}, fmt.Errorf("want HH:MM:SS, with a fraction or without")
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2])
	second, _ := strconv.Atoi("0" + m[3])
	if hour > 23 || minute > 59 || second > 59 {
		return number{}, fmt.Errorf("there is no such time of day")
	}
	return seconds(int64(hour*3600+minute*60+second), m[4]), nil
}

// seconds are whole seconds and the digits of a fraction, which counts upwards.
func seconds(whole int64, fraction string) number {
	units := new(big.Int).Mul(big.NewInt(whole), power(len(fraction)))
	if fraction != "" {
		f, _ := new(big.Int).SetString(fraction, 10)
		units.Add(units, f)
	}
	return number{units, -len(fraction)}.short()
}

// parseTimestamp returns the seconds since 1970, in UTC where there is a zone. A date alone is its midnight.
func parseTimestamp(s string, zoned bool) (number, error) {
	const want = "want YYYY-MM-DDTHH:MM:SS, with a fraction or without"
	cut := strings.IndexAny(s, "Tt ")
	if cut < 0 {
		days, err := parseDate(s)
		switch {
		case err != nil:
			return number{}, fmt.Errorf("%s%s", want, zoneNeed(zoned))
		case zoned:
			return number{}, fmt.Errorf("the column's times have a zone; say which: '%sT00:00:00+00:00'", s)
		}
		return seconds(days*daySeconds, ""), nil
	}
	days, err := parseDate(s[:cut])
	if err != nil {
		return number{}, err
	}
	clock := s[cut+1:]
	offset := 0
	zone := zonePattern.FindStringSubmatchIndex(clock)
	switch {
	case zone == nil && zoned:
		return number{}, fmt.Errorf("the column's times have a zone; say which: '%s+00:00'", s)
	case zone != nil && !zoned:
		return number{}, fmt.Errorf("the column's times have no zone; leave it out: '%s'", s[:cut+1+zone[0]])
	case zone != nil:
		m := zonePattern.FindStringSubmatch(clock)
		clock = clock[:zone[0]]
		hours, _ := strconv.Atoi("0" + m[2])
		minutes, _ := strconv.Atoi("0" + m[3])
		if hours*60+minutes > 18*60 || minutes > 59 {
			return number{}, fmt.Errorf("there is no such zone")
		}
		if offset = hours*3600 + minutes*60; m[1] == "-" {
			offset = -offset
		}
	}
	n, err := parseTime(clock)
	if err != nil {
		return number{}, err
	}
	whole := big.NewInt(days*daySeconds - int64(offset))
	if n.exp >= 0 {
		whole.Add(whole, new(big.Int).Mul(n.units, power(n.exp)))
		return number{whole, 0}.short(), nil
	}
	whole.Mul(whole, power(-n.exp))
	return number{whole.Add(whole, n.units), n.exp}.short(), nil
}

func zoneNeed(zoned bool) string {
	if zoned {
		return " and a zone (+00:00)"
	}
	return ""
}

func formatDate(days int64) string {
	return formatDay(time.Unix(days*daySeconds, 0).UTC())
}

func formatDay(t time.Time) string {
	year := t.Year()
	text := fmt.Sprintf("%04d", year)
	switch {
	case year > 9999:
		text = fmt.Sprintf("+%d", year)
	case year < 0:
		text = fmt.Sprintf("-%04d", -year)
	}
	return fmt.Sprintf("%s-%02d-%02d", text, t.Month(), t.Day())
}

// formatClock is a time of day of units that a second has 10^digits of.
func formatClock(units int64, digits int) string {
	per := power(digits).Int64()
	second := units / per
	s := fmt.Sprintf("%02d:%02d:%02d", second/3600, second/60%60, second%60)
	if rest := units % per; rest != 0 {
		s += fmt.Sprintf(".%0*d", digits, rest)
	}
	return s
}

func formatTimestamp(units int64, digits int, zoned bool) string {
	day := daySeconds * power(digits).Int64()
	days, rest := units/day, units%day
	if rest < 0 {
		days, rest = days-1, rest+day
	}
	s := formatDate(days) + "T" + formatClock(rest, digits)
	if zoned {
		s += "+00:00"
	}
	return s
}
