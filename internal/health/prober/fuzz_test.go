package prober

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzProbe lets an endpoint answer anything, and more of it for ever where endless
// is set. A verdict is reached after a bounded part of it; it is good only for an
// answer that net/http by itself reads as good; and what is told of a bad one is
// short and printable.
func FuzzProbe(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.0 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\x1b[31m\xff\r\n\r\n",
		"SSH-2.0-OpenSSH_9.6\r\n",
		strings.Repeat("\x00é", 2000) + "\r\n\r\n",
		strings.Repeat("é", 2000),
		"x" + strings.Repeat("é", 2000),
		"",
	} {
		f.Add([]byte(answer), false)
		f.Add([]byte(answer), true)
	}
	f.Fuzz(func(t *testing.T, answer []byte, endless bool) {
		p, err := New(Defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		conn := &canned{answer: answer, endless: endless, asked: make(chan struct{}), closed: make(chan struct{})}
		transport := p.options.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
		failure := p.probe(t.Context(), "10.0.0.1:80")
		transport.CloseIdleConnections()
		<-conn.closed // nothing is left of a probe
		if len(failure) > maxFailure || !utf8.ValidString(failure) {
			t.Errorf("a failure of %d bytes: %q", len(failure), failure)
		}
		for _, c := range failure {
			if !unicode.IsPrint(c) {
				t.Fatalf("not printable: %q", failure)
			}
		}
		if n := conn.read.Load(); n > 64<<10 {
			t.Errorf("%d bytes were read", n)
		}
		if failure == "" && !good(answer, endless) {
			t.Errorf("%q is good", answer)
		}
	})
}

// good is the verdict of net/http alone.
func good(answer []byte, endless bool) bool {
	var source io.Reader = bytes.NewReader(answer)
	if endless {
		source = io.MultiReader(source, io.LimitReader(forever{}, 1<<20))
	}
	r := bufio.NewReader(source)
	for {
		response, err := http.ReadResponse(r, nil)
		switch {
		case err != nil:
			return false
		case response.StatusCode < 200 && response.StatusCode != http.StatusSwitchingProtocols:
			continue
		}
		response.Body.Close()
		return response.StatusCode >= 200 && response.StatusCode <= 299
	}
}

// forever is text without an end.
type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// canned is a connection whose other side answers a request, whatever it asks.
type canned struct {
	answer  []byte
	endless bool
	read    atomic.Int64

	ask, shut     sync.Once
	asked, closed chan struct{}
}

func (c *canned) Read(p []byte) (n int, err error) {
	select {
	case <-c.asked:
	case <-c.closed:
	}
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	switch n = copy(p, c.answer); {
	case n > 0:
		c.answer = c.answer[n:]
	case c.endless:
		n, _ = forever{}.Read(p)
	default:
		return 0, io.EOF
	}
	c.read.Add(int64(n))
	return n, nil
}

func (c *canned) Write(p []byte) (int, error) {
	c.ask.Do(func() { close(c.asked) })
	return len(p), nil
}

func (c *canned) Close() error {
	c.shut.Do(func() { close(c.closed) })
	return nil
}

func (c *canned) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *canned) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }
