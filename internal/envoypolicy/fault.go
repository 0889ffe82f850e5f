package envoypolicy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/warmpath/warmpath/internal/route"
)

// Problem is what is wrong with a source.
type Problem uint8

// The problems.
const (
	// Malformed: the text is not of the form it should have, or hides a value.
	Malformed Problem = iota
	// TooLong: the text is longer than is read.
	TooLong
	// UnknownPolicy: no policy of the configuration has that name.
	UnknownPolicy
	// UnknownPool: no pool of the configuration has that name.
	UnknownPool
	// UnknownField: a policy has no such field.
	UnknownField
	// RepeatedField: a field stands there twice, in two spellings or places.
	RepeatedField
	// WrongType: the field's value is of another type.
	WrongType
	// OutOfRange: the field's value is not one of those that are allowed.
	OutOfRange
)

var problemNames = [...]string{
	Malformed:     "malformed",
	TooLong:       "too_long",
	UnknownPolicy: "unknown_policy",
	UnknownPool:   "unknown_pool",
	UnknownField:  "unknown_field",
	RepeatedField: "repeated_field",
	WrongType:     "wrong_type",
	OutOfRange:    "out_of_range",
}

// Problems returns all problems in order, for those who count them.
func Problems() []Problem {
	all := make([]Problem, len(problemNames))
	for i := range all {
		all[i] = Problem(i)
	}
	return all
}

// String returns the name that metrics use.
func (p Problem) String() string {
	if int(p) < len(problemNames) {
		return problemNames[p]
	}
	return fmt.Sprintf("problem(%d)", uint8(p))
}

// Fault is why a source was passed over.
type Fault struct {
	Origin  Origin
	Problem Problem
	// Field is the policy's field, by its name in snake case, or the unknown name;
	// empty when the fault is in the whole.
	Field string
	// Value is what stands there, quoted if it is text, 100 bytes at most.
	Value string
	// Want is what may stand there.
	Want string
}

// Error says where which value is wrong and what it may be.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("policy in " + f.Origin.String() + ": ")
	if f.Field != "" {
		b.WriteString(f.Field + " ")
	}
	b.WriteString(f.Value + ": " + strings.ReplaceAll(f.Problem.String(), "_", " "))
	if f.Want != "" {
		b.WriteString(", " + f.Want)
	}
	return b.String()
}

const (
	wantFields = "want strategy, prefix_length, concurrency_threshold, policy, pool"
	wantPolicy = "want the name of a policy of the configuration"
	wantPool   = "want the name of a pool of the configuration"
)

var (
	wantPrefixLength = fmt.Sprintf("want a whole number %d..%d or auto", route.MinPrefixLength, route.MaxPrefixLength)
	wantStrategy     = "want one of " + strings.Join(strategies(), ", ")
	wantThreshold    = fmt.Sprintf("want a whole number %d..%d or auto", route.MinConcurrencyThreshold, route.MaxConcurrencyThreshold)
)

// strategies returns the names of all strategies there are.
func strategies() (names []string) {
	for s := route.Strategy(0); isStrategy(s); s++ {
		names = append(names, s.String())
	}
	return names
}

func isStrategy(s route.Strategy) bool {
	_, err := route.ParseStrategy(s.String())
	return err == nil
}

func tooLong(origin Origin, length, limit int) *Fault {
	return &Fault{Origin: origin, Problem: TooLong, Value: fmt.Sprintf("%d bytes", length), Want: fmt.Sprintf("want at most %d", limit)}
}

// quote shows the beginning of a text. Control and other characters that could
// forge a log line are escaped.
func quote(s string) string {
	const most = 64
	q := fmt.Sprintf("%+q", clip(s))
	if len(q) > most+2 { // escapes are longer than what they stand for
		q = q[:most] + `…"`
	}
	return q
}

// clip cuts a text so that quoting it costs little, and the result stays short.
func clip(s string) string {
	const most = 48
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
