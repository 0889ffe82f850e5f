package web

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/live"
)

// counting counts what the kernel takes of what is to be sent.
type counting struct {
	net.Listener
	sent *atomic.Int64
}

// Accept implements net.Listener.
func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counted{c, l.sent}, err
}

type counted struct {
	net.Conn
	sent *atomic.Int64
}

// SetWriteBuffer is that of the connection inside.
func (c counted) SetWriteBuffer(bytes int) error {
	return c.Conn.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(bytes)
}

// Write implements io.Writer.
func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// Who never reads is cut off, and not only when megabytes wait for him: his place is free
// for others then.
func TestWhoDoesNotReadIsCutOff(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		var generation atomic.Int32
		page := New(Options{Store: live.New(time.Now()), Config: func() (string, int) {
			return strings.Repeat("x", 256<<10), int(generation.Add(1)) // each event is large
		}})
		page.patience = 100 * time.Millisecond
		mux := http.NewServeMux()
		page.Register(mux)
		var sent atomic.Int64
		ended := make(chan struct{})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mux.ServeHTTP(w, r)
			close(ended)
		}))
		_ = server.Listener.Close()
		server.Listener, server.Config.ConnContext = counting{l, &sent}, ConnContext
		server.Start()
		connection, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, "GET /api/live/events?interval=100ms HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-ended
		if n := sent.Load(); n > 1<<20 {
			t.Errorf("%s: %d bytes were sent to somebody who reads nothing", network, n)
		}
		if n := len(page.listeners); n != 0 {
			t.Errorf("%s: %d places are taken by nobody", network, n)
		}
		_ = connection.Close()
		page.Close()
		server.Close()
	}
}

// A large event may take longer than a small one: 5,000 endpoints are 750 KB.
func TestPatience(t *testing.T) {
	s := New(Options{})
	for bytes, want := range map[int]time.Duration{0: 5 * time.Second, 50_000: 5 * time.Second, writeSize: 10 * time.Second, 750_000: 30 * time.Second} {
		if got := s.patienceFor(bytes); got != want {
			t.Errorf("%d bytes: %v, want %v", bytes, got, want)
		}
	}
}

// told is a connection that takes note of how much it is to hold.
type told struct {
	net.Conn
	bytes int
}

// SetWriteBuffer implements what *net.TCPConn and *net.UnixConn do.
func (c *told) SetWriteBuffer(bytes int) error {
	c.bytes = bytes
	return nil
}

// TLS hides the connection whose buffer it is.
func TestConnContext(t *testing.T) {
	plain, secured := new(told), new(told)
	ConnContext(t.Context(), plain)
	ConnContext(t.Context(), tls.Server(secured, nil))
	if plain.bytes != writeBuffer || secured.bytes != writeBuffer {
		t.Errorf("buffers of %d and, with TLS, %d bytes, want %d", plain.bytes, secured.bytes, writeBuffer)
	}
	one, other := net.Pipe() // has none
	if ConnContext(t.Context(), one) != t.Context() {
		t.Error("the context is another")
	}
	_, _ = one.Close(), other.Close()
}
