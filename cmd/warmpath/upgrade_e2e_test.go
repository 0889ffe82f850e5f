package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// talk sends a request that asks for an upgrade, and a byte behind it.
func talk(t *testing.T, c net.Conn, request string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(c)
	r, err := http.ReadResponse(reader, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %+v (%v), want 101", r, err)
	}
	if strings.HasPrefix(request, "POST") { // what it sent with its body comes first
		if b, err := reader.ReadByte(); err != nil || b != '{'+1 {
			t.Fatalf("the body's first byte came back as %q (%v)", b, err)
		}
		return
	}
	if _, err := c.Write([]byte{'a'}); err != nil {
		t.Fatal(err)
	}
	if b, err := reader.ReadByte(); err != nil || b != 'b' {
		t.Fatalf("a byte came back as %q (%v)", b, err)
	}
}

// Upgraded connections are decided at their headers, stay counted as long as they
// are open, and pass bytes both ways.
func TestUpgradedConnections(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 2, Config: unjudged()})
	echoes := func(w http.ResponseWriter, r *http.Request) {
		c, both, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
		for both.Flush() == nil {
			b, err := both.ReadByte()
			if err != nil {
				return
			}
			_ = both.WriteByte(b + 1)
		}
	}
	instead(t, s, upstream(t, "127.0.0.1:0", echoes), upstream(t, "127.0.0.1:0", echoes))
	body := string(chat(strings.Repeat("A talk. ", 200), "q", true))
	var open []net.Conn
	for _, request := range []string{
		"GET /v1/realtime HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
		fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body),
	} {
		for range 3 {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			open = append(open, c)
			talk(t, c, request)
		}
	}
	counted := func(want int64) {
		t.Helper()
		if err := s.Await(t.Context(), fmt.Sprintf("%d counted", want), func() error {
			status, err := s.Status(t.Context())
			var sum int64
			for _, n := range status.Outstanding() {
				sum += n
			}
			if err == nil && sum != want {
				err = fmt.Errorf("%d are", sum)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	counted(6)
	if n := metric(t, s, "warmpath_problems_total", `problem="upgrade"`); n != 6 {
		t.Errorf("%v upgrades noticed of 6", n)
	}
	for i, c := range open {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		counted(int64(5 - i))
	}
	noMisses(t, s)
	atRest(t, s)
}
