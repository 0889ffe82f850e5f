package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/bench/load"
)

// crowd is clients that hold responses open, each with connections of its own, half
// of them over HTTP/2.
type crowd struct {
	url    string
	name   string // begins the ids of all requests
	bytes  int    // of a body
	tokens int    // of an answer
	traced bool
	seed   uint64
	// atOnce is how many responses are opened at the same time; 0 is [openers].
	atOnce int

	clients []*client
	sums    sync.Map // request id → SHA-256 of its body
}

// perClient is how many responses a client holds: over HTTP/2 on one connection.
const perClient = 100

// openers is how many responses are opened at the same time, if not all are.
const openers = 64

// client is one that can leave without a goodbye.
type client struct {
	http.Client
	mu    sync.Mutex
	conns []*net.TCPConn
}

func newClient(http2 bool) *client {
	c := new(client)
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, DialContext: c.dial}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	c.Transport = transport
	return c
}

func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.conns = append(c.conns, tcp)
	}
	return conn, nil
}

// leave resets all its connections.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.SetLinger(0) // of one that is closed already: nothing to reset
		_ = conn.Close()
	}
	c.conns = nil
}

// held is a response that has begun.
type held struct {
	id, replica string
	choices     []string
	attempts    int // how many endpoints Envoy tried
	body        io.ReadCloser
}

// open opens n responses and returns them when all have begun. Whatever failed is
// in the error, with how often.
func (c *crowd) open(ctx context.Context, n int) ([]*held, error) {
	for len(c.clients) < (n+perClient-1)/perClient {
		c.clients = append(c.clients, newClient(len(c.clients)%2 == 1))
	}
	all := make([]*held, n)
	failures := newTally()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range cmp.Or(c.atOnce, openers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				var err error
				// One client after the other, so that no connection has a rush.
				if all[i], err = c.persist(ctx, c.clients[i%len(c.clients)], i); err != nil {
					failures.add(err.Error())
				}
			}
		})
	}
	wg.Wait()
	return all, failures.err("not opened")
}

// backOff is when a client tries again that was refused a connection: Envoy is
// being restarted, and nothing was sent.
const backOff = 50 * time.Millisecond

// persist opens one response, as soon as somebody listens.
func (c *crowd) persist(ctx context.Context, from *client, i int) (*held, error) {
	for {
		h, err := c.one(ctx, from, i)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return h, err
		}
		if err := wait(ctx, backOff); err != nil {
			return nil, err
		}
	}
}

// wait waits for d, unless the context ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// one opens one response.
func (c *crowd) one(ctx context.Context, from *client, i int) (*held, error) {
	r, err := c.request(i)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	request.GetBody = nil // so that net/http does not send it again by itself
	h := &held{id: fmt.Sprintf("%s-%d", c.name, i)}
	sum := sha256.Sum256(r.Body)
	c.sums.Store(h.id, hex.EncodeToString(sum[:]))
	for name, value := range map[string]string{
		"content-type": "application/json", "x-request-id": h.id, "x-replica-hold": "1",
		"x-replica-first-token-ms": "0", "x-replica-token-ms": "0", "x-replica-tokens": fmt.Sprint(c.tokens),
	} {
		request.Header.Set(name, value)
	}
	if c.traced {
		request.Header.Set("traceparent", fmt.Sprintf("00-%032x-%016x-01", i+1, i+1))
	}
	response, err := from.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", withoutAddress(err))
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		why, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // Envoy's or the replica's words
		return nil, fmt.Errorf("status %d, choices %q, %q", response.StatusCode, response.Header.Get("x-chaos-choices"), why)
	}
	h.body, h.replica = response.Body, response.Header.Get("x-replica")
	h.attempts, _ = strconv.Atoi(response.Header.Get("x-chaos-attempts"))
	if choices := strings.Trim(response.Header.Get("x-chaos-choices"), `"`); choices != "" && choices != "-" {
		h.choices = strings.Split(choices, ",")
	}
	return h, nil
}

// request makes the request of a number: one of 40 beginnings, which go on
// differently.
func (c *crowd) request(i int) (load.Request, error) {
	system := strings.Repeat(fmt.Sprintf("Rule %d of %d. ", i%40, c.seed), 1+c.bytes/20)
	system = system[:c.bytes/2]
	user := fmt.Sprintf("Request %s-%d. ", c.name, i)
	user += strings.Repeat("x", max(0, c.bytes-len(system)-len(user)-160))
	return load.Kind{API: load.Chat, Model: "llama-70b", Stream: true}.Request(load.Prompt{Messages: []load.Message{
		{Role: "system", Content: system}, {Role: "user", Content: user},
	}})
}

// finish reads responses to their ends and says what is not whole.
func (c *crowd) finish(all []*held) error {
	failures := newTally()
	var wg sync.WaitGroup
	for _, h := range all {
		if h == nil {
			continue
		}
		wg.Go(func() {
			defer h.body.Close()
			text, err := io.ReadAll(h.body)
			switch tokens := bytes.Count(text, []byte(`"content":" `)); {
			case err != nil:
				failures.add("cut: " + withoutAddress(err).Error())
			case tokens != c.tokens || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")):
				failures.add(fmt.Sprintf("%d tokens of %d, %d bytes", tokens, c.tokens, len(text)))
			}
		})
	}
	wg.Wait()
	return failures.err("not whole")
}

// leave resets all connections at once.
func (c *crowd) leave(all []*held) {
	for _, from := range c.clients {
		from.leave()
	}
	for _, h := range all {
		if h != nil {
			_ = h.body.Close()
		}
	}
}

// dismiss closes what is idle.
func (c *crowd) dismiss() {
	for _, from := range c.clients {
		from.CloseIdleConnections()
	}
}
