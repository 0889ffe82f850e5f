package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// Requests that few clients send are served as without warmpath.
func TestRareRequests(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3, Config: prefixAware(0)})
	body := string(chat(strings.Repeat("A rare request. ", 90), "q", false))
	post := func(version, headers string) string {
		return fmt.Sprintf("POST /v1/chat/completions HTTP/%s\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n%s",
			version, len(body), headers, body)
	}
	many := new(strings.Builder)
	for i := range 90 {
		fmt.Fprintf(many, "x-h%d: v\r\n", i)
	}
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"HTTP/1.0":              {post("1.0", ""), 200},
		"90 headers":            {post("1.1", many.String()), 200},
		"a header of 59,000":    {post("1.1", "x-big: "+strings.Repeat("x", 59_000)+"\r\n"), 200},
		"upgrade to TLS":        {post("1.1", "connection: upgrade\r\nupgrade: TLS/1.2\r\n"), 200},
		"upgrade without token": {post("1.1", "upgrade: websocket\r\n"), 200},
		"expect":                {post("1.1", "expect: 100-continue\r\n"), 200},
		"websocket":             {"GET /v1/realtime HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 404},
		"HEAD":                  {"HEAD /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n", 200},
		"empty body":            {"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: 0\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := exchange(s, tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != tc.status || r.Header.Get("x-replica") == "" {
				t.Errorf("answered %s by replica %q, want %d from one", r.Status, r.Header.Get("x-replica"), tc.status)
			}
		})
	}
	noMisses(t, s)
	atRest(t, s)
}

// exchange sends bytes over a connection of their own and returns the final
// response's head.
func exchange(s *stack.Stack, request string) (*http.Response, error) {
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := connection.Write([]byte(request)); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(connection)
	for {
		r, err := http.ReadResponse(reader, nil)
		if err != nil || r.StatusCode != http.StatusContinue {
			return r, err
		}
	}
}
