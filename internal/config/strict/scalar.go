package strict

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Text decodes a string. YAML reads an unquoted 12 or true as something else;
// such a value is refused rather than turned into text.
func Text(dst *string) func(Value) {
	return func(v Value) {
		if s, ok := v.Scalar("!!str", "a string (quote it)"); ok {
			*dst = s
		}
	}
}

// maxPath is the longest path that Linux opens, in bytes.
const maxPath = 4096

// Path decodes the path of a file or folder. What the file should hold, a key for
// example, is refused: as a path it would stand in full in the message that there
// is no such file.
func Path(dst *string) func(Value) {
	return func(v Value) {
		s, ok := v.Scalar("!!str", "a string (quote it)")
		switch {
		case !ok:
		case strings.ContainsFunc(s, unicode.IsControl), strings.Contains(s, pemLine):
			v.Reject("is not a path (want the path of a file, not what it holds)")
		case len(s) > maxPath:
			v.Reject("is a path of %d bytes (want at most %d)", len(s), maxPath)
		default:
			*dst = s
		}
	}
}

// Enum decodes one of the given words.
func Enum[T ~string](dst *T, words ...T) func(Value) {
	return func(v Value) {
		s, ok := v.Scalar("!!str", "one of "+join(words))
		if !ok {
			return
		}
		if !slices.Contains(words, T(s)) {
			v.Reject("is not one of %s", join(words))
			return
		}
		*dst = T(s)
	}
}

// Bool decodes true or false.
func Bool(dst *bool) func(Value) {
	return func(v Value) {
		s, ok := v.Scalar("!!bool", "true or false")
		if !ok {
			return
		}
		*dst = strings.EqualFold(s, "true")
	}
}

// Mode decodes one of the given permissions of a file, four octal digits, quoted
// or not: YAML versions differ on what number 0660 is, so the digits count.
func Mode[T ~uint32](dst *T, modes ...T) func(Value) {
	return func(v Value) {
		if v.node == nil || v.refusedAlias() {
			return
		}
		words := make([]string, len(modes))
		for i, m := range modes {
			words[i] = fmt.Sprintf("%04o", uint32(m))
		}
		i := slices.Index(words, v.node.Value)
		if v.node.Kind != yaml.ScalarNode || i < 0 {
			v.Reject("is not one of %s", join(words))
			return
		}
		*dst = modes[i]
	}
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// Int decodes a whole number from low to high, both included, in plain decimal
// digits: 1e3, 0x400 and 1_024 read differently in different YAML versions.
func Int[T ~int | ~int64 | ~uint32 | ~uint8](dst *T, low, high int64) func(Value) {
	return func(v Value) {
		if v.node == nil || v.refusedAlias() {
			return
		}
		if tag := v.node.ShortTag(); v.node.Kind != yaml.ScalarNode || tag == "!!str" || !decimal.MatchString(v.node.Value) {
			v.Reject("is not a whole number (want %d..%d)", low, high)
			return
		}
		// Out of range of int64 comes back as the nearest int64, which is as
		// far out of low..high.
		n, _ := strconv.ParseInt(v.node.Value, 10, 64)
		switch {
		case n < low:
			v.Reject("is below the minimum %d (want %d..%d)", low, low, high)
		case n > high:
			v.Reject("is above the maximum %d (want %d..%d)", high, low, high)
		default:
			*dst = T(n)
		}
	}
}

// Float decodes a finite number from low to high, both included.
func Float(dst *float64, low, high float64) func(Value) {
	return func(v Value) {
		if v.node == nil || v.refusedAlias() {
			return
		}
		f, err := strconv.ParseFloat(v.node.Value, 64)
		tag := v.node.ShortTag()
		switch {
		case tag != "!!float" && tag != "!!int", err != nil && !math.IsInf(f, 0), math.IsNaN(f):
			v.Reject("is not a number (want %g..%g)", low, high)
		case f < low || f > high:
			v.Reject("is out of range (want %g..%g)", low, high)
		default:
			*dst = f
		}
	}
}

// Duration decodes a time with its unit, such as 250ms or 5m, from low to high,
// both included.
func Duration(dst *time.Duration, low, high time.Duration) func(Value) {
	return func(v Value) {
		if v.node == nil || v.refusedAlias() {
			return
		}
		d, err := time.ParseDuration(v.node.Value)
		switch {
		case v.node.Kind != yaml.ScalarNode || err != nil:
			v.Reject("is not a time with its unit, such as 500ms, 30s or 5m (want %v..%v)", low, high)
		case d < low:
			v.Reject("is below the minimum %v (want %v..%v)", low, low, high)
		case d > high:
			v.Reject("is above the maximum %v (want %v..%v)", high, low, high)
		default:
			*dst = d
		}
	}
}

// Word returns the text of a string, or false for anything else; it records no
// problem. It serves fields that are a word or something else.
func (v Value) Word() (string, bool) {
	if v.node == nil || v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!str" {
		return "", false
	}
	return v.node.Value, true
}

// Scalar returns the text of a scalar with the wanted YAML tag. Anything else is
// a problem, worded with what is wanted.
func (v Value) Scalar(tag, want string) (string, bool) {
	switch {
	case v.node == nil || v.refusedAlias():
		return "", false
	case v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != tag:
		v.Reject("is not %s", want)
		return "", false
	}
	return v.node.Value, true
}

func join[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}
