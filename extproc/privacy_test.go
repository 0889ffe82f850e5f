package extproc

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// What a client writes in its prompt, tenant or other headers stays there: no
// observer gets to see it, so nothing that prints what observers know can.
func TestNoPromptTextIsRecorded(t *testing.T) {
	const canary = "CANARY-7f3a"
	scripts := [][]string{
		{
			"headers :method=POST :path=/v1/chat/completions?q=CANARY-7f3a content-length=64 x-tenant-id=CANARY-7f3a authorization=CANARY-7f3a",
			`body eos {"model":"m","prompt_cache_key":"CANARY-7f3a","user":"CANARY-7f3a","messages":[{"role":"user","content":"CANARY-7f3a"}]}`,
			"response 200 from=10.0.0.1:80",
		},
		{
			"headers :method=POST :path=/v1/completions content-length=60", `body eos {"prompt":"x"}`,
			"response 200 from=10.0.0.1:80 type=text/event-stream",
			`response-body more data: {"choices":[{"text":"CANARY-7f3a"}],"id":"CANARY-7f3a"}<line>`,
			`response-body more data: {"CANARY-7f3a`,
		},
		{
			"headers :method=POST :path=/v1/completions content-length=60", `body eos {"prompt":"x"}`,
			"response 200 from=10.0.0.1:80 type=application/json", `response-body eos {"CANARY-7f3a`,
		},
		{"headers :method=POST :path=/CANARY-7f3a/invocations content-length=64", "body eos CANARY-7f3a"},
		{"headers :method=POST :path=/v1/chat/completions content-encoding=CANARY-7f3a", "body more CANARY-7f3a"},
		{`headers eos :method=GET :path=/CANARY-7f3a x-tenant-id=" CANARY-7f3a"`},
	}
	for _, where := range []string{"", "decided", "served", "ended"} {
		for i, lines := range scripts {
			observer := &recorder{panicIn: where}
			var messages []*extprocv3.ProcessingRequest
			for _, line := range lines {
				m, err := parseMessage(line)
				if err != nil {
					t.Fatal(err)
				}
				messages = append(messages, m)
			}
			settings := testSettings
			settings.Inspect = 1
			play(t, New(newRouter(t, prefixAware(), 3), settings, observer, one), messages...)
			if len(observer.records) == 0 {
				t.Fatalf("script %d was not observed", i)
			}
			for _, r := range observer.records {
				if r.Context = nil; r.Inspection != nil {
					if printed := fmt.Sprintf("%+v", *r.Inspection); strings.Contains(printed, canary) {
						t.Errorf("script %d: the engine's words are in %s", i, printed)
					}
				}
				var log strings.Builder
				slog.New(slog.NewTextHandler(&log, nil)).Info("request", "record", r)
				for _, printed := range []string{fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), log.String()} {
					if strings.Contains(printed, canary) {
						t.Errorf("script %d: the client's words are in %s", i, printed)
					}
				}
			}
		}
	}
}

// Names that clients choose are recorded, cut and printable.
func TestClientNamesAreCut(t *testing.T) {
	observer := new(recorder)
	headers, _ := parseMessage(`headers :method=POST :path=/v1/chat/completions content-length=64 x-request-id="id\n\x00é` + strings.Repeat("x", 100) + `"`)
	body, _ := parseMessage(`body eos {"model":"` + strings.Repeat("m", 5000) + `","messages":[{"role":"user","content":"x"}]}`)
	play(t, New(newRouter(t, prefixAware(), 3), testSettings, observer, one), headers, body)
	r := observer.records[0]
	if want := "id???" + strings.Repeat("x", 58); r.RequestID != want {
		t.Errorf("request id %q, want %q", r.RequestID, want)
	}
	if len(r.Model) != 128 {
		t.Errorf("model has %d bytes, want 128", len(r.Model))
	}
}
