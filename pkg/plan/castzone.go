package plan

// perSecond returns the units of a second that the target type counts.
func (c caster) perSecond() int64 { return unitsOf(c.t) }

func unitsOf(k kindOf) int64 {
	if k.nanos() {
		return 1e9
	}
	return 1e6
}

// stamp makes the step between dates and timestamps.
func (c caster) stamp() step {
	if c.f == kDate {
		return c.midnight()
	}
	from, to := unitsOf(c.f), unitsOf(c.t)
	show := func(v int64) string {
		return string(appendMoment(nil, v, from, map[bool]string{true: "+00:00"}[c.f.zoned()]))
	}
	if c.t == kDate {
		return &fixedStep[int64, int32]{to: c.target, at: c.at, show: show, fresh: func() func(int64) (int32, string) {
			local := c.local()
			return func(v int64) (int32, string) { // always in range: a timestamp has fewer days than a date
				return int32(floorDiv(local(floorDiv(v, from)), secondsPerDay)), ""
			}
		}}
	}
	if c.f.zoned() != c.t.zoned() {
		return &fixedStep[int64, int64]{to: c.target, at: c.at, show: show, fresh: func() func(int64) (int64, string) {
			clock := zoneClock{loc: c.zone}
			return func(v int64) (int64, string) {
				seconds := floorDiv(v, from)
				if from == to { // moved by the zone's offset
					shift, rule := clock.shift(seconds, c.f.zoned())
					moved := v + shift*from
					if rule == "" && (moved > v) != (shift > 0) && shift != 0 {
						rule = beyond(to)
					}
					return moved, rule
				}
				nanos := (v - seconds*from) * (1e9 / from)
				if c.f.zoned() {
					return count(seconds+clock.at(seconds), nanos, to)
				}
				instant, rule := clock.instant(seconds)
				if rule != "" {
					return 0, rule
				}
				return count(instant, nanos, to)
			}
		}}
	}
	if from < to {
		s := multiplied(c.target, c.at, to/from, beyond(to)).(*fixedStep[int64, int64])
		s.show = show
		return s
	}
	s := divided[int64, int64](c.target, c.at, from/to, "is finer than microseconds").(*fixedStep[int64, int64])
	s.show = show
	return s
}

// local returns what turns the seconds of a timestamp into those that its clock shows.
func (c caster) local() func(int64) int64 {
	if !c.f.zoned() {
		return func(seconds int64) int64 { return seconds }
	}
	clock := &zoneClock{loc: c.zone}
	return func(seconds int64) int64 { return seconds + clock.at(seconds) }
}

// midnight makes the step from a date to the timestamp at which it begins.
func (c caster) midnight() step {
	show := func(d int32) string { return string(appendDate(nil, int64(d))) }
	per := c.perSecond()
	rule := "is beyond the range of a " + c.to.String()
	if !c.t.zoned() {
		return &fixedStep[int32, int64]{to: c.target, at: c.at, show: show, convert: func(d int32) (int64, string) {
			v, ok := multiply(int64(d), secondsPerDay*per)
			return v, unless(ok, rule)
		}}
	}
	return &fixedStep[int32, int64]{to: c.target, at: c.at, show: show, fresh: func() func(int32) (int64, string) {
		clock := zoneClock{loc: c.zone}
		return func(d int32) (int64, string) {
			seconds, why := clock.instant(int64(d) * secondsPerDay)
			if why != "" {
				return 0, why
			}
			v, why := count(seconds, 0, per)
			if why != "" {
				return 0, rule
			}
			return v, ""
		}
	}}
}
