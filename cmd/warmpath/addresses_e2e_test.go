package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// named is a server that says who it is.
func named(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	name := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return upstream(t, name, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("x-replica", name) })
}

// An endpoint with an IPv6 address is served as any other: by a decision at the
// headers, by one on the body, and as the second choice when the first is dead.
// Written in two ways it is one endpoint, which stays until both have gone.
func TestIPv6AndRepeatedEndpoints(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: unjudged()})
	v6, v4 := named(t, "[::1]:0"), named(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(v6)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}

	instead(t, s, v6, dead)
	for i := range 20 { // about half of them have the dead one as their home
		got, err := served(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat(fmt.Sprint("Beginning ", i, ". "), 90), "q", false))
		if err != nil || got != v6 {
			t.Errorf("prefix %d: served by %q (%v), want %s", i, got, err, v6)
		}
	}
	r, err := http.Get(s.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	if readAll(t, r); r.StatusCode != 200 || r.Header.Get("x-replica") != v6 {
		t.Errorf("without a body: %s from %q, want 200 from %s", r.Status, r.Header.Get("x-replica"), v6)
	}

	long := "[0:0:0:0:0:0:0:1]:" + port
	for _, list := range [][]string{{v6, long, v4}, {v4, long, v6, v4}, {long, v4}, {v4, v6}} {
		var text strings.Builder
		text.WriteString("endpoints:\n")
		for _, address := range list {
			fmt.Fprintf(&text, "- {address: %q}\n", address)
		}
		if err := s.WriteRawEndpoints(text.String()); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(t.Context(), "two endpoints", func() error {
			status, err := s.Status(t.Context())
			if err == nil && (len(status.Endpoints) != 2 || len(status.Membership.Problems) != len(list)-2 || status.Membership.Error != "") {
				err = fmt.Errorf("status %+v", status)
			}
			if err != nil {
				return err
			}
			return s.EnvoyKnows(t.Context(), 2)
		}); err != nil {
			t.Fatalf("%v: %v", list, err)
		}
		counts := make(map[string]int)
		for i := range 60 {
			got, err := served(t.Context(), s, "/v1/chat/completions", chat(strings.Repeat(fmt.Sprint("Share ", i, ". "), 120), "q", false))
			if err != nil {
				t.Fatal(err)
			}
			counts[got]++
		}
		if len(counts) != 2 || counts[v6] < 15 || counts[v4] < 15 {
			t.Errorf("%v: shares %v, want about 30 each", list, counts)
		}
	}
	noMisses(t, s)
	atRest(t, s)
}
