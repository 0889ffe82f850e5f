package trace

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxTime is the latest time: that of 2116, since 1970. Sums of two of them, and
// a layout of sessions behind one of them, are still durations.
const maxTime time.Duration = 1 << 62

// timeOf returns the time that a JSON number or a string with a number gives in
// a unit.
func timeOf(member string, value jsontext.Value, unit time.Duration) (time.Duration, error) {
	text, err := scalar(member, value)
	if err != nil {
		return 0, err
	}
	return parseTime(member, text, unit)
}

// scalar returns a JSON number or the content of a string.
func scalar(member string, value jsontext.Value) (string, error) {
	switch value.Kind() {
	case '0':
		return string(value), nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return "", fmt.Errorf("%s: a string that is not UTF-8", member)
		}
		return string(text), nil
	case 0:
		return "", missing(member)
	}
	return "", fmt.Errorf("%s: got %s, want a number", member, kindName(value.Kind()))
}

// parseTime reads a number of a unit: whole ones exactly, for those since 1970
// need more digits than a float has.
func parseTime(member, text string, unit time.Duration) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= int64(maxTime/unit) {
		return time.Duration(n) * unit, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	// The comparisons are false for what is no number.
	if d := f * float64(unit); err == nil && f >= 0 && d <= float64(maxTime) {
		return time.Duration(math.Round(d)), nil
	}
	return 0, fmt.Errorf("%s %s: want a number from 0 to %d in units of %v", member, shown(text), maxTime/unit, unit)
}

// unitOf returns the unit that a time is probably given in. See
// [Options.TimeUnit].
func unitOf(number float64) time.Duration {
	switch {
	case number < 1e11:
		return time.Second
	case number < 1e14:
		return time.Millisecond
	case number < 1e17:
		return time.Microsecond
	}
	return time.Nanosecond
}

// The forms in which dates are written.
const (
	rfc3339   = time.RFC3339
	azureDate = "2006-01-02 15:04:05" // in UTC; parsing takes a fraction too
)

// parseDate returns the time since 1970.
func parseDate(member, text, form string) (time.Duration, error) {
	t, err := time.Parse(form, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2100 {
		return 0, fmt.Errorf("%s %s: want a date like %s from 1970 to 2100", member, shown(text), form)
	}
	return time.Duration(t.UnixNano()), nil
}
