package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Wire sends requests over a fixed number of kept-alive HTTP/1.1 connections and
// takes little of the machine for itself: no goroutine hands anything to another,
// and bodies go from where they are straight into the socket. It is for measuring
// what a gateway costs. A request waits for a free connection, which counts as its
// latency.
type Wire struct {
	address string
	free    chan *wireConn
}

var _ Sender = (*Wire)(nil)

// wireConn is a place for a connection. It belongs to one request at a time.
type wireConn struct {
	conn   net.Conn // nil before the first request and after a failed one
	reader *bufio.Reader
	head   []byte
}

// NewWire returns a sender to the gateway at address, "host:port", that opens up
// to so many connections, each when it is first needed.
func NewWire(address string, connections int) *Wire {
	w := &Wire{address: address, free: make(chan *wireConn, connections)}
	for range connections {
		w.free <- &wireConn{reader: bufio.NewReaderSize(nil, 8<<10)}
	}
	return w
}

// Close closes the connections. No request may be running.
func (w *Wire) Close() {
	for range cap(w.free) {
		c := <-w.free
		c.drop()
		w.free <- c
	}
}

// Send implements [Sender].
func (w *Wire) Send(ctx context.Context, q *Request, begin time.Time) Outcome {
	o := Outcome{Prefix: q.Prefix}
	err := w.exchange(ctx, q, begin, &o)
	o.Latency = time.Since(begin)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // not what it did to the connection
		}
		o.Err = reason(err)
	}
	return o
}

func (w *Wire) exchange(ctx context.Context, q *Request, begin time.Time, o *Outcome) (err error) {
	var c *wireConn
	select {
	case c = <-w.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.free <- c }()
	if err := c.open(ctx, w.address); err != nil {
		return err
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	reusable := false
	defer func() {
		if !stop() || !reusable {
			c.drop()
		}
	}()
	if err := c.write(q, w.address); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	err = readAnswer(resp, q, begin, o)
	// An answer that was read to its end leaves the connection where the next begins.
	reusable = (err == nil || resp.StatusCode != http.StatusOK) && !resp.Close
	return err
}

// write sends head and body in one system call, where the socket takes them.
func (c *wireConn) write(q *Request, host string) error {
	h := append(c.head[:0], "POST "...)
	h = append(h, q.Path...)
	h = append(h, " HTTP/1.1\r\nHost: "...)
	h = append(h, host...)
	h = append(h, "\r\nContent-Type: application/json\r\n"...)
	if q.Tenant != "" {
		h = append(h, tenantHeader+": "...)
		h = append(h, q.Tenant...)
		h = append(h, "\r\n"...)
	}
	h = append(h, "Content-Length: "...)
	h = strconv.AppendInt(h, int64(len(q.Body)), 10)
	h = append(h, "\r\n\r\n"...)
	c.head = h
	parts := net.Buffers{h, q.Body}
	_, err := parts.WriteTo(c.conn)
	return err
}

func (c *wireConn) open(ctx context.Context, address string) (err error) {
	if c.conn != nil {
		return nil
	}
	var d net.Dialer
	if c.conn, err = d.DialContext(ctx, "tcp", address); err != nil {
		c.conn = nil
		return err
	}
	c.reader.Reset(c.conn)
	return nil
}

func (c *wireConn) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
