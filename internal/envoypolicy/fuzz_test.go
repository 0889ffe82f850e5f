package envoypolicy

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// FuzzMessage reads the policy out of any first message of a stream, as it comes
// over the wire, with any initial metadata. It is a valid one whatever is said,
// the same when it is asked for again and kept, and a source that says nothing
// changes nothing.
func FuzzMessage(f *testing.F) {
	add := func(initial string, m *extprocv3.ProcessingRequest) {
		wire, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(initial, wire)
	}
	fields := func(values map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(values)
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	add("", &extprocv3.ProcessingRequest{MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		Namespace: fields(map[string]any{"strategy": "PREFIX_AWARE", "prefix_length": 4096}),
	}}})
	for name := range routes {
		add("long", &extprocv3.ProcessingRequest{Attributes: map[string]*structpb.Struct{
			"envoy.filters.http.ext_proc": fields(map[string]any{
				attributeRoute: readSample(f, name).RouteText, attributeCluster: metadataText(`fields {key: "policy" value {string_value: "long"}}`),
			}),
		}})
	}
	f.Fuzz(func(t *testing.T, initial string, wire []byte) {
		m := new(extprocv3.ProcessingRequest)
		if len(wire) > 128<<10 || proto.Unmarshal(wire, m) != nil {
			return
		}
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(Key, "overruled", Key, initial))
		in := NewInput(ctx, m)
		if in.InitialMetadata != initial {
			t.Errorf("initial metadata %q, want %q", in.InitialMetadata, initial)
		}
		r := testResolver(t) // what an older one remembers would look like new coverage
		first := r.Resolve(in)
		checkValid(t, first)
		if again := r.Resolve(in); describe(again) != describe(first) {
			t.Errorf("asked again: %s, first %s", describe(again), describe(first))
		}
		if first.Origin == FromDefault && first.Policy != r.fallback {
			t.Errorf("nobody said %+v", first.Policy)
		}
		if first.Origin == FromInitialMetadata && initial == "" {
			t.Error("the empty initial metadata said something")
		}
	})
}
