package extproc

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

// Attributes of other filters beside ours do not hide who served.
func TestAttributesOfSeveralFilters(t *testing.T) {
	for range 20 { // the order of a map
		observer := new(recorder)
		headers, _ := parseMessage("headers eos :method=GET :path=/")
		response, _ := parseMessage("response 200 from=10.0.0.2:80 attempts=2")
		response.Attributes["a.third"] = &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(1)}}
		play(t, New(newRouter(t, prefixAware(), 3), testSettings, observer, one), headers, response)
		if r := observer.records[len(observer.records)-1]; r.Served != "10.0.0.2:80" || r.Attempts != 2 {
			t.Fatalf("served by %q after %d attempts, want 10.0.0.2:80 after 2", r.Served, r.Attempts)
		}
	}
}
