// Package origin keeps out what web pages of others have a browser send to this machine
// by a name that they have made to point here (DNS rebinding).
package origin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ByAddress refuses, with 421, what is sent to a name that somebody may have made to
// point here: without TLS only addresses and localhost are not such names. On a Unix
// socket no browser asks, and none asks without a host, as HTTP/1.0 may.
func ByAddress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if (!ok || local.Network() != "unix") && r.TLS == nil && r.Host != "" && !isAddress(r.Host) {
			refuse(w, r.Host)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isAddress reports whether a Host header has an address or localhost, which as a name has
// no case and may end in a dot.
func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// refuse answers with a problem of RFC 9457.
func refuse(w http.ResponseWriter, host string) {
	const code = http.StatusMisdirectedRequest
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(code), code, fmt.Sprintf("the host %.80q is not an address: without TLS want localhost or an IP address", host)})
}
