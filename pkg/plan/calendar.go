package plan

import (
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // zones mean the same on every machine that has none of its own
)

const (
	secondsPerDay = 86_400
	microsPerDay  = secondsPerDay * 1_000_000
	nanosPerDay   = microsPerDay * 1000
)

// civil returns the date of a count of days from 1970-01-01 in the proleptic Gregorian calendar. Year 0
// is the year before year 1.
func civil(days int64) (year int64, month, day int) {
	z := days + 719_468 // from 0000-03-01
	era := floorDiv(z, 146_097)
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// daysOf is the inverse of civil.
func daysOf(year int64, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := int64((month + 9) % 12)
	doy := (153*mp+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146_097 + doe - 719_468
}

func daysIn(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// floorDiv rounds towards the past, where / rounds towards 1970.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// parseZone reads a time zone: a name of the IANA database, UTC, or an offset such as +02:00.
func parseZone(text string) (*time.Location, error) {
	switch {
	case text == "UTC" || text == "Z":
		return time.UTC, nil
	case strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-"):
		if seconds, rest, ok := scanOffset([]byte(text)); ok && len(rest) == 0 {
			return time.FixedZone(text, int(seconds)), nil
		}
	case text != "" && text != "Local":
		if loc, err := time.LoadLocation(text); err == nil {
			return loc, nil
		}
	}
	return nil, fmt.Errorf("time zone %s is not known: give UTC, an offset such as +02:00, or a name such as Europe/Berlin", quoteText(text))
}

// A zoneClock tells local times and instants of a zone apart, in seconds. It remembers the last offset,
// so that it is of one goroutine.
type zoneClock struct {
	loc      *time.Location
	from, to int64 // where offset holds
	offset   int64
	known    bool
}

// at returns the offset from UTC at an instant.
func (c *zoneClock) at(instant int64) int64 {
	if c.known && instant >= c.from && instant < c.to {
		return c.offset
	}
	t := time.Unix(instant, 0).In(c.loc)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	c.known, c.offset, c.from, c.to = true, int64(offset), math.MinInt64, math.MaxInt64
	if !start.IsZero() {
		c.from = start.Unix()
	}
	if !end.IsZero() {
		c.to = end.Unix()
	}
	return c.offset
}

// instant returns the one instant at which the zone's clocks show a local time, or says why there is not
// one.
func (c *zoneClock) instant(local int64) (int64, string) {
	if c.known && local-c.offset >= c.from+secondsPerDay && local-c.offset < c.to-secondsPerDay {
		return local - c.offset, ""
	}
	before, after := c.at(local-secondsPerDay), c.at(local+secondsPerDay)
	first, second := local-before, local-after
	shows := func(t int64) bool { return t+c.at(t) == local }
	switch one, two := shows(first), shows(second); {
	case one && two && first != second:
		return 0, "is a local time that the clocks of " + c.loc.String() + " show twice"
	case one:
		return first, ""
	case two:
		return second, ""
	}
	return 0, "is a local time that the clocks of " + c.loc.String() + " skip"
}

// shift returns what turns the seconds of an instant into those that the clocks show, or, of a local time, the
// other way round.
func (c *zoneClock) shift(seconds int64, instant bool) (int64, string) {
	if instant {
		return c.at(seconds), ""
	}
	at, rule := c.instant(seconds)
	return at - seconds, rule
}
