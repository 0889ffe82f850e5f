package origin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Addresses and localhost in every spelling are let in; any other name only where no
// browser could have been misled.
func TestByAddress(t *testing.T) {
	handler := ByAddress(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9004": 200, "LOCALHOST:9004": 200, "localhost.": 200, "localhost.:9004": 200,
		"127.0.0.1": 200, "127.0.0.1:9004": 200, "[::1]": 200, "[::1]:9004": 200, "10.1.2.3:9004": 200,
		"evil.example": 421, "evil.example:9004": 421, "localhost.evil.example": 421, "localhost..": 421, "127.0.0.1.nip.io": 421,
		"": 200, ":9004": 421, ".": 421, "warmpath": 421,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != want || want == 421 && !strings.Contains(w.Body.String(), "want localhost or an IP address") {
			t.Errorf("%q: %d %s, want %d", host, w.Code, w.Body, want)
		}
		secured, socket := r.Clone(t.Context()), r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix"}))
		secured.TLS = new(tls.ConnectionState)
		for _, r := range []*http.Request{secured, socket} {
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%q with TLS or on a socket: %d", host, w.Code)
			}
		}
	}
}
