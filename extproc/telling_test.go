package extproc

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// telling serves one request and returns the header of its response's answer.
func telling(t *testing.T, s *Server, more ...*corev3.HeaderValue) string {
	t.Helper()
	headers, _ := parseMessage("headers eos :method=POST :path=/v1/completions")
	response, _ := parseMessage("response 200 from=10.0.0.1:80")
	m := response.GetResponseHeaders().GetHeaders()
	m.Headers = append(m.Headers, more...)
	answers := play(t, s, []*extprocv3.ProcessingRequest{headers, response}...)
	for _, h := range answers[1].GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if h.GetHeader().GetKey() == DecisionHeader {
			return value(h.GetHeader())
		}
	}
	return ""
}

// A response near Envoy's limits gets no header of ours: it would be answered 500 instead.
func TestFullResponsesAreNotTold(t *testing.T) {
	settings := testSettings
	settings.DecisionHeader = true
	s := New(newRouter(t, prefixAware(), 3), settings, silent{}, one)
	var many []*corev3.HeaderValue
	for i := range roomyHeaders {
		many = append(many, &corev3.HeaderValue{Key: fmt.Sprint("x-", i), RawValue: []byte("1")})
	}
	large := &corev3.HeaderValue{Key: "x-large", RawValue: []byte(strings.Repeat("x", roomyBytes))}
	if got := telling(t, s, many[:roomyHeaders-1]...); !strings.Contains(got, "reason=no_key") {
		t.Errorf("with %d headers more: %q", roomyHeaders-1, got)
	}
	for what, headers := range map[string][]*corev3.HeaderValue{"many": many, "large": {large}} {
		if got := telling(t, s, headers...); got != "" {
			t.Errorf("%s headers: %q", what, got)
		}
	}
}

// What is told of one request is kept for no other, and memory does not fill with it.
func TestToldAnswersAreNotKept(t *testing.T) {
	settings := testSettings
	settings.DecisionMetadata = true
	s := New(newRouter(t, prefixAware(), 3), settings, silent{}, one)
	for range 100 {
		telling(t, s)
	}
	if n := len(s.answers.made); n != 0 {
		t.Errorf("%d answers are kept", n)
	}
}
