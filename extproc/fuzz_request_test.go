package extproc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/warmpath/warmpath/internal/prefix"
)

// FuzzRequest sends one request in each of the body modes. However its body comes,
// the same is read of it, the same endpoint is chosen, and no more is told of it
// than names: the key is the one that package prefix finds.
func FuzzRequest(f *testing.F) {
	for i, c := range handed(f) {
		f.Add(c.path, "application/json", "", "", c.body, uint16(i))
	}
	f.Add("/v1/chat/completions?x=1", "Application/JSON; charset=utf-8", "identity", "team-a", []byte(`{"model":"m","messages":[{"role":"user","content":"Hello"}]}`), uint16(9))
	f.Add("/v1/chat/completions", "", "x-gzip, identity", "a\x00b", payloadOf(`gzip:{"messages":[{"role":"user","content":"Hello"}]}`), uint16(3))
	f.Add("/v1/audio/transcriptions", "multipart/form-data; boundary=x", "br", strings.Repeat("t", 300), []byte("--x"), uint16(1))
	f.Fuzz(func(t *testing.T, path, contentType, encoding, tenant string, body []byte, cut uint16) {
		if len(body) == 0 || int64(len(body)) > testSettings.BodyLimit {
			return
		}
		if tenant != "" {
			tenant = "CANARY-7f3a" + tenant
		}
		head, whole := asSent(path, contentType, encoding, tenant, body)
		want := told(t, head, whole)
		for _, mode := range []bodyMode{modePartial, modeDuplex} {
			head, _ := asSent(path, contentType, encoding, tenant, body)
			head.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: mode}
			parts := []*extprocv3.ProcessingRequest{whole}
			if mode == modeDuplex {
				at := int(cut) % len(body)
				parts = []*extprocv3.ProcessingRequest{bodyPart(body[:at], false), bodyPart(body[at:], true)}
			}
			if got := told(t, append([]*extprocv3.ProcessingRequest{head}, parts...)...); got != want {
				t.Errorf("%v: %s, buffered %s", mode, got, want)
			}
		}
		h := prefix.Head{Path: path, ContentType: contentType, ContentEncoding: encoding, TenantHeader: tenant}
		if !h.NeedsBody() {
			return
		}
		var s prefix.Scanner
		s.Reset(h, prefix.Options{PrefixLength: prefixAware().PrefixLength, MaxInflate: testSettings.InflateLimit})
		s.Feed(body)
		if r := s.Finish(true); !strings.HasPrefix(want, fmt.Sprintf("key=%x keyed=%v chars=%d ", r.Key, r.Kind != prefix.None, r.Chars)) {
			t.Errorf("%s, package prefix finds %x of %d characters", want, r.Key, r.Chars)
		}
	})
}

// told plays a request and prints all that is found out about it.
func told(t *testing.T, messages ...*extprocv3.ProcessingRequest) string {
	t.Helper()
	observer := new(recorder)
	server := New(newRouter(t, prefixAware(), 3), testSettings, observer, one)
	checkLockstep(t, server, messages)
	atRest(t, server)
	checkRecords(t, observer.records)
	if fmt.Sprint(observer.events) != "[decided ended]" {
		t.Fatalf("observed %v", observer.events)
	}
	r := observer.records[0]
	return fmt.Sprintf("key=%x keyed=%v chars=%d tenant=%v model=%q adapter=%q api=%v problems=%v choices=%v",
		r.Decision.Key, r.Decision.Keyed, r.KeyChars, r.HasTenant, r.Model, r.Adapter, r.API, r.Problems, r.Decision.Choices())
}

// asSent is a request as Envoy sends it in the mode BUFFERED.
func asSent(path, contentType, encoding, tenant string, body []byte) (head, whole *extprocv3.ProcessingRequest) {
	headers := new(corev3.HeaderMap)
	for _, h := range [][2]string{
		{":method", "POST"},
		{":path", path},
		{"content-type", contentType},
		{"content-encoding", encoding},
		{"content-length", strconv.Itoa(len(body))},
		{"x-tenant-id", tenant},
		{"authorization", "CANARY-7f3a"},
	} {
		if h[1] != "" {
			headers.Headers = append(headers.Headers, &corev3.HeaderValue{Key: h[0], RawValue: []byte(h[1])})
		}
	}
	return &extprocv3.ProcessingRequest{
		Request:        &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: headers}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: modeBuffered},
	}, bodyPart(body, true)
}

func bodyPart(body []byte, end bool) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: body, EndOfStream: end},
	}}
}

// request is a body that a real client has sent, and its path.
type request struct {
	path string
	body []byte
}

// handed returns the bodies that package prefix is tested with.
func handed(t testing.TB) (all []request) {
	t.Helper()
	cases := filepath.Join("..", "internal", "prefix", "testdata", "cases")
	index, err := os.ReadFile(filepath.Join(cases, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(index)), "\n") {
		cells := strings.Split(line, "\t")
		if names == nil {
			names = cells
			continue
		}
		var r request
		for i, name := range names {
			switch name {
			case "api_path":
				r.path = cells[i]
			case "file":
				if r.body, err = os.ReadFile(filepath.Join(cases, "bodies", cells[i])); err != nil {
					t.Fatal(err)
				}
			}
		}
		all = append(all, r)
	}
	return all
}
