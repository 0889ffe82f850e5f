package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// quoted is a name from the configuration as it is shown: cut and printable.
func quoted(s string) string { return fmt.Sprintf("%.60q", s) }

func shown(d *durationpb.Duration, otherwise string) string {
	if d == nil {
		return otherwise
	}
	return d.AsDuration().String()
}

// streams tells whether the mode lets parts of a body pass before the last one is there.
func streams(m extprocv3.ProcessingMode_BodySendMode) bool {
	switch m {
	case extprocv3.ProcessingMode_STREAMED, extprocv3.ProcessingMode_BUFFERED_PARTIAL, extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED, extprocv3.ProcessingMode_GRPC:
		return true
	default:
		return false
	}
}

// matches tells whether one of the matchers takes a header's name.
func matches(list *matcherv3.ListStringMatcher, name string) bool {
	return slices.ContainsFunc(list.GetPatterns(), func(m *matcherv3.StringMatcher) bool { return takes(m, name) })
}

// takes tells whether a matcher takes a header's name, which is in lower case. An extension
// is taken to.
func takes(m *matcherv3.StringMatcher, name string) bool {
	as := func(pattern string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(pattern)
		}
		return pattern
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return as(p.Exact) == name
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(name, as(p.Prefix))
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(name, as(p.Suffix))
	case *matcherv3.StringMatcher_Contains:
		return strings.Contains(name, as(p.Contains))
	case *matcherv3.StringMatcher_SafeRegex:
		return fits(p.SafeRegex, name)
	default:
		return m.GetCustom() != nil
	}
}

// fits tells whether a regular expression is that of the whole name.
func fits(m *matcherv3.RegexMatcher, name string) bool {
	if m == nil {
		return false
	}
	expression, err := regexp.Compile("^(?:" + m.GetRegex() + ")$")
	return err == nil && expression.MatchString(name)
}
