package modelserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vLLM's answer with two adapters, shortened.
const answer = `{"object":"list","data":[
{"id":"llama","object":"model","owned_by":"vllm","root":"llama","parent":null,"max_model_len":4096,"permission":[{"id":"p"}]},
{"id":"sql","object":"model","owned_by":"vllm","root":"/l/sql","parent":"llama"},
{"id":"chat","object":"model","owned_by":"vllm","root":"/l/chat","parent":"llama"}]}`

func TestParse(t *testing.T) {
	for _, tc := range []struct{ body, want, fault string }{
		{body: answer, want: "chat sql"},
		{body: `{"data":[]}`},
		{body: `{"data":[{"id":"m"},{"id":"a","parent":""},{"id":"","parent":"m"}]}`},
		{body: `{}`, fault: "has no data"},
		{body: `<html>`, fault: "invalid character"},
		{body: `{"data":[{"id":7}]}`, fault: "cannot unmarshal"},
		{body: ``, fault: "unexpected end"},
	} {
		names, err := parse([]byte(tc.body))
		if got := strings.Join(names.All(), " "); got != tc.want || (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s: %q, %v; want %q, %q", tc.body, got, err, tc.want, tc.fault)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(answer))
	f.Add([]byte(`{"data":[{"id":"a\u0000b","parent":"m"},{"id":"a","parent":"m"},{"id":"a","parent":"m"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		names, err := parse(body)
		all := names.All()
		if err != nil && len(all) > 0 || len(all) > maxAdapters || slices.Contains(all, "") || !slices.IsSorted(all) {
			t.Errorf("%q, %v", all, err)
		}
	})
}

// Endpoints are asked at once when they come and again and again after that; one
// that fails keeps what it had, one that leaves is forgotten.
func TestListerFollowsTheEndpoints(t *testing.T) {
	var status atomic.Int64
	var body atomic.Value
	status.Store(200)
	body.Store(answer)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(body.Load().(string)))
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	changes := make(chan map[string]fleet.Names, 10)
	lister := NewLister(20*time.Millisecond, func(m map[string]fleet.Names) { changes <- m })
	failures := make(chan string, 1)
	lister.Failed = func(address string, err error) {
		select {
		case failures <- fmt.Sprint(address, " ", err):
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { lister.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	set, _ := fleet.NewSet([]fleet.Endpoint{{Address: address, Weight: 1}})
	lister.SetMembers(set)
	expect := func(what string, want ...string) {
		t.Helper()
		select {
		case m := <-changes:
			if got := m[address].All(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: no change", what)
		}
	}
	expect("at first", "chat", "sql")
	status.Store(500)
	if f := <-failures; !strings.Contains(f, address+" GET /v1/models: status 500") {
		t.Errorf("failure %q", f)
	}
	body.Store(`{"data":[{"id":"new","parent":"llama"}]}`)
	status.Store(200)
	expect("after the failure", "new")
	lister.SetMembers(fleet.Set{})
	expect("without members")
	if len(changes) > 0 {
		t.Errorf("a change that is none: %v", <-changes)
	}
}
