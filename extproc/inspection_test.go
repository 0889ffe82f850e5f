package extproc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// inspected plays n requests whose responses are parts, the last of which ends it.
func inspected(t *testing.T, share float64, n int, parts ...string) []*Inspection {
	t.Helper()
	settings, observer := testSettings, new(recorder)
	settings.Inspect = share
	source := rand.New(rand.NewPCG(1, 2))
	s := New(newRouter(t, prefixAware(), 3), settings, observer, source.Uint64)
	headers, _ := parseMessage("headers eos :method=POST :path=/v1/completions")
	response, _ := parseMessage("response 200 from=10.0.0.1:80 type=application/json")
	messages := []*extprocv3.ProcessingRequest{headers, response}
	for i, part := range parts {
		messages = append(messages, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
			ResponseBody: &extprocv3.HttpBody{Body: []byte(part), EndOfStream: i == len(parts)-1},
		}})
	}
	for range n {
		play(t, s, messages...)
	}
	if left := s.inspected.taken.Load(); left != 0 {
		t.Errorf("%d bytes of the budget were not given back", left)
	}
	var all []*Inspection
	for i, event := range observer.events {
		if event == "ended" {
			all = append(all, observer.records[i].Inspection)
		}
	}
	return all
}

func TestShareOfInspections(t *testing.T) {
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		n, sum := 4000, 0
		for _, i := range inspected(t, share, n, "{}") {
			if i != nil {
				sum++
			}
		}
		if want := share * float64(n); float64(sum) < 0.8*want || float64(sum) > 1.2*want {
			t.Errorf("share %v: %d of %d are inspected", share, sum, n)
		}
	}
}

// A body is held to 1 MiB, and all bodies to the budget.
func TestInspectionIsBounded(t *testing.T) {
	large := strings.Repeat("x", 200<<10)
	if i := inspected(t, 1, 1, large, large, large, large, large, large)[0]; i.Result != InspectionTooLarge {
		t.Errorf("1.2 MB: %s, want %s", i.Result, InspectionTooLarge)
	}
	s := New(newRouter(t, prefixAware(), 3), testSettings, silent{}, one)
	settings := testSettings
	settings.Inspect = 1
	s.SetSettings(settings)
	headers, _ := parseMessage("headers eos :method=POST :path=/v1/completions")
	response, _ := parseMessage("response 200 from=10.0.0.1:80 type=application/json")
	first, _ := parseMessage(fmt.Sprintf("response-body more {<pad %d>", 300_000))
	second, _ := parseMessage(fmt.Sprintf("response-body more <pad %d>", 700_000))
	results := make(map[InspectionResult]int)
	var open []*stream
	play := func(st *stream, messages ...*extprocv3.ProcessingRequest) {
		t.Helper()
		for _, m := range messages {
			if _, ok := st.handle(m); !ok {
				t.Fatal("a stream was ended")
			}
		}
		if taken := s.inspected.taken.Load(); taken > inspectionBytes {
			t.Fatalf("%d bytes are held, want at most %d", taken, inspectionBytes)
		}
	}
	for range 100 {
		st := s.begin(t.Context())
		play(st, headers, response, first)
		open = append(open, st)
	}
	for _, st := range open { // those that get no more hold something already
		play(st, second)
	}
	for _, st := range open {
		st.end()
		results[st.record.Inspection.Result]++
	}
	if results[InspectionOverloaded] == 0 || results[InspectionCut] == 0 || len(results) != 2 {
		t.Errorf("%v, want some that were overloaded and some that were cut", results)
	}
	if left := s.inspected.taken.Load(); left != 0 {
		t.Errorf("%d bytes of the budget were not given back", left)
	}
}
