package envoypolicy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/route"
)

// checkValid fails unless the policy can be routed by.
func checkValid(t interface{ Fatalf(string, ...any) }, r Resolution) {
	if _, err := complete(r.Policy); err != nil || r.Policy.PrefixLength == 0 {
		t.Fatalf("invalid policy %+v: %v", r.Policy, err)
	}
	for _, f := range r.Faults {
		if m := f.Error(); len(m) > 400 || strings.ContainsFunc(m, func(c rune) bool { return c < ' ' }) {
			t.Fatalf("fault of %d bytes or with control characters: %q", len(m), m)
		}
	}
}

func FuzzInitialMetadata(f *testing.F) {
	for _, s := range []string{"", "long", "{}", `{"strategy":"PREFIX_AWARE","prefix_length":4096,"concurrency_threshold":10}`, `{"RoutingConfig":{"PrefixAwareRoutingConfig":{"PrefixLength":1e999}}}`, "{\"policy\":\"\\u0000\xff\"}"} {
		f.Add(s)
	}
	// A resolver for each, or what it remembers would look like new coverage.
	f.Fuzz(func(t *testing.T, s string) { checkValid(t, testResolver(t).Resolve(Input{InitialMetadata: s})) })
}

func FuzzText(f *testing.F) {
	for name := range routes {
		f.Add(readSample(f, name).RouteText)
	}
	f.Add("goo.gle/debugproto " + metadataText(`fields: [REDACTED]`))
	f.Add(`filter_metadata < key: 'warm' "path" value: { fields { key: "\303\274\xfF\u00fc\U0001f525" value { number_value: -1e5 } } } ># c`)
	r := testResolver(f)
	f.Fuzz(func(t *testing.T, s string) {
		checkValid(t, r.readTextForTest(s))
		// What the strict twin can read, the tolerant one reads to the same.
		var twin corev3.Metadata
		if !strings.Contains(s, Namespace) || (prototext.UnmarshalOptions{RecursionLimit: 30}).Unmarshal([]byte(s), &twin) != nil {
			return
		}
		got, err := structOfText(s)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := twin.GetFilterMetadata()[Namespace]; !sameButLists(got, want) {
			t.Fatalf("%q: %v, want %v", s, got, want)
		}
	})
}

func FuzzStruct(f *testing.F) {
	f.Add([]byte(`{"strategy":"PREFIX_AWARE","prefix_length":4096}`))
	f.Add([]byte(`{"policy":"long","concurrency_threshold":"auto","x":{"y":[]}}`))
	r := testResolver(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var s structpb.Struct
		if protojson.Unmarshal(data, &s) != nil && proto.Unmarshal(data, &s) != nil {
			return
		}
		checkValid(t, r.Resolve(Input{ClusterMetadata: &s}))
	})
}

// readTextForTest resolves the text without the caches, which would only grow.
func (r *Resolver) readTextForTest(s string) Resolution {
	res := Resolution{Policy: r.fallback}
	res.take(FromRouteMetadata, r.readText(FromRouteMetadata, s))
	return res
}

// sameButLists compares but for the elements of lists, which are not read.
func sameButLists(a, b *structpb.Struct) bool {
	if len(a.GetFields()) != len(b.GetFields()) {
		return false
	}
	for name, v := range b.GetFields() {
		other, ok := a.GetFields()[name]
		if !ok {
			return false
		}
		switch {
		case v.GetStructValue() != nil:
			if !sameButLists(other.GetStructValue(), v.GetStructValue()) {
				return false
			}
		case v.GetListValue() != nil:
			if other.GetListValue() == nil {
				return false
			}
		case v.GetKind() == nil:
			if show(other) != "null" {
				return false
			}
		case show(other) != show(v):
			return false
		}
	}
	return true
}

// values draws any value, nested a few levels at most.
func values(depth int) *rapid.Generator[*structpb.Value] {
	scalars := []*rapid.Generator[*structpb.Value]{
		rapid.Map(rapid.Float64(), structpb.NewNumberValue),
		rapid.Map(rapid.IntRange(-10, 70000), func(n int) *structpb.Value { return structpb.NewNumberValue(float64(n)) }),
		rapid.Map(rapid.String(), structpb.NewStringValue),
		rapid.Map(rapid.SampledFrom([]string{"PREFIX_AWARE", "RANDOM", "long", "auto"}), structpb.NewStringValue),
		rapid.Map(rapid.Bool(), structpb.NewBoolValue),
		rapid.Just(structpb.NewNullValue()),
	}
	if depth > 0 {
		scalars = append(scalars,
			rapid.Map(structs(depth-1), structpb.NewStructValue),
			rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(v []*structpb.Value) *structpb.Value {
				return structpb.NewListValue(&structpb.ListValue{Values: v})
			}))
	}
	return rapid.OneOf(scalars...)
}

func structs(depth int) *rapid.Generator[*structpb.Struct] {
	names := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"strategy", "prefix_length", "PrefixLength", "concurrency_threshold", "policy", "routing_config"}))
	return rapid.Map(rapid.MapOfN(names, values(depth), 0, 4), func(m map[string]*structpb.Value) *structpb.Struct {
		return &structpb.Struct{Fields: m}
	})
}

// Any metadata, printed in any of protobuf's ways, is read as it is.
func TestTextMatchesMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := structs(2).Draw(t, "ours")
		m := &corev3.Metadata{
			FilterMetadata: map[string]*structpb.Struct{Namespace: want, "a": structs(2).Draw(t, "before"), "z": structs(1).Draw(t, "after")},
			TypedFilterMetadata: map[string]*anypb.Any{
				Namespace: {TypeUrl: "type.googleapis.com/x.Unknown", Value: rapid.SliceOf(rapid.Byte()).Draw(t, "any")},
			},
		}
		if known, err := anypb.New(want); err == nil && rapid.Bool().Draw(t, "known type") {
			m.TypedFilterMetadata["known"] = known
		}
		text := prototext.MarshalOptions{Multiline: rapid.Bool().Draw(t, "multiline"), EmitASCII: rapid.Bool().Draw(t, "ascii")}.Format(m)
		marker := rapid.SampledFrom([]string{"", "goo.gle/debugproto ", "goo.gle/debugstr   "}).Draw(t, "marker")
		got, err := structOfText(marker + text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !sameButLists(got, want) {
			t.Fatalf("%s: %v, want %v", text, got, want)
		}
		r := testResolver2(t)
		fromText, typed := r.Resolve(Input{ClusterText: text}), r.Resolve(Input{ClusterMetadata: want})
		if a, b := describe(fromText), describe(typed); a != b {
			t.Fatalf("%s: as text %s, typed %s", text, a, b)
		}
	})
}

func testResolver2(t *rapid.T) *Resolver {
	r, err := NewResolver(map[string]route.Policy{"long": {Strategy: route.PrefixAware}}, nil, route.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said is what a source says in the precedence test, and its dumb reading.
type said struct {
	json   string
	faulty bool
	silent bool
	apply  func(*route.Policy)
}

var sayings = []said{
	{json: `{}`, silent: true},
	{json: `{"strategy":"PREFIX_AWARE"}`, apply: func(p *route.Policy) { p.Strategy = route.PrefixAware }},
	{json: `{"strategy":"RANDOM","prefixLength":2048}`, apply: func(p *route.Policy) { p.Strategy, p.PrefixLength = route.Random, 2048 }},
	{json: `{"concurrency_threshold":3}`, apply: func(p *route.Policy) { p.ConcurrencyThreshold = 3 }},
	{json: `{"policy":"long"}`, apply: func(p *route.Policy) {
		*p = route.Policy{Strategy: route.PrefixAware, PrefixLength: route.DefaultPrefixLength}
	}},
	{json: `{"policy":"none"}`, faulty: true},
	{json: `{"prefix_length":5}`, faulty: true},
	{json: `{"strategy":"PREFIX_AWARE","x":5}`, faulty: true},
}

// The first source that is neither silent nor faulty decides, and each faulty
// one before it is reported, however often it is asked.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fallback := route.Policy{Strategy: route.LeastOutstandingRequests, PrefixLength: 8192, ConcurrencyThreshold: 99}
		r, err := NewResolver(map[string]route.Policy{"long": {Strategy: route.PrefixAware}}, nil, fallback)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "requests") {
			sources := rapid.SliceOfN(rapid.SampledFrom(sayings), 3, 3).Draw(t, "sources")
			policy, origin, faults := fallback, FromDefault, []Origin(nil)
			for i, s := range sources {
				if s.faulty {
					faults = append(faults, FromInitialMetadata+Origin(i))
				} else if !s.silent {
					origin = FromInitialMetadata + Origin(i)
					s.apply(&policy)
					break
				}
			}
			res := r.Resolve(inputOf(t, sources))
			var got []Origin
			for _, f := range res.Faults {
				got = append(got, f.Origin)
			}
			if res.Policy != policy || res.Origin != origin || !slices.Equal(got, faults) {
				t.Fatalf("%s, want %s %+v, faults of %v", describe(res), origin, policy, faults)
			}
		}
	})
}

// inputOf writes what is said in the three sources' own forms.
func inputOf(t *rapid.T, sources []said) Input {
	parse := func(s said) *structpb.Struct {
		var parsed structpb.Struct
		if err := protojson.Unmarshal([]byte(s.json), &parsed); err != nil {
			t.Fatal(err)
		}
		return &parsed
	}
	text := func(s said) string {
		return fmt.Sprint(&corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{Namespace: parse(s)}})
	}
	in := Input{InitialMetadata: sources[0].json, RouteText: text(sources[2])}
	if rapid.Bool().Draw(t, "cluster as text") {
		in.ClusterText = text(sources[1])
	} else {
		in.ClusterMetadata = parse(sources[1])
	}
	return in
}
