package doctor

import (
	"fmt"
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

// matches tells whether one of the matchers takes a header's name. Regular expressions
// are given the benefit of the doubt.
func matches(list *matcherv3.ListStringMatcher, name string) bool {
	return slices.ContainsFunc(list.GetPatterns(), func(m *matcherv3.StringMatcher) bool {
		switch p := m.GetMatchPattern().(type) {
		case *matcherv3.StringMatcher_Exact:
			return strings.EqualFold(p.Exact, name)
		case *matcherv3.StringMatcher_Prefix:
			return strings.HasPrefix(name, p.Prefix)
		case *matcherv3.StringMatcher_Suffix:
			return strings.HasSuffix(name, p.Suffix)
		case *matcherv3.StringMatcher_Contains:
			return strings.Contains(name, p.Contains)
		default:
			return m != nil
		}
	})
}
