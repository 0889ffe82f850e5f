package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/internal/stack"
)

// upstream are model servers that cost as little as possible: they take a body
// without looking at it and answer with a constant, so that the noise of their
// own work does not hide the routers'.
type upstream struct {
	addresses []string
	servers   []*http.Server
	running   sync.WaitGroup
}

// model is the one that is served.
const model = "llama-70b"

// What is answered: to all requests a whole answer without a word in it; to
// whoever asks for the models, as some routers do, the model.
const (
	constant = `{"object":"chat.completion","choices":[]}`
	models   = `{"object":"list","data":[{"id":"` + model + `","object":"model"}]}`
)

func startUpstream(n int) (*upstream, error) {
	u := &upstream{}
	hosts := replica.Addresses(netip.MustParseAddrPort("127.0.0.1:1"), n)
	for i, a := range hosts {
		hosts[i] = netip.MustParseAddrPort(a).Addr().String()
	}
	port, err := stack.FreePort(hosts...)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		address := net.JoinHostPort(host, strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(err, u.close())
		}
		server := &http.Server{Handler: newAnswerer(address)}
		u.addresses, u.servers = append(u.addresses, address), append(u.servers, server)
		u.running.Go(func() { _ = server.Serve(listener) }) // until it is closed
	}
	return u, nil
}

func (u *upstream) close() error {
	var errs []error
	for _, s := range u.servers {
		errs = append(errs, s.Close())
	}
	u.running.Wait()
	return errors.Join(errs...)
}

// answerer is one model server.
type answerer struct {
	name    string
	buffers sync.Pool
}

// buffer is large, so that a MiB takes few system calls.
type buffer [256 << 10]byte

func newAnswerer(name string) *answerer {
	return &answerer{name: name, buffers: sync.Pool{New: func() any { return new(buffer) }}}
}

// onlyWriter hides that a writer could read by itself, with a buffer of its own.
type onlyWriter struct{ io.Writer }

// ServeHTTP implements http.Handler, for probes of health too.
func (a *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := a.buffers.Get().(*buffer)
	_, err := io.CopyBuffer(onlyWriter{io.Discard}, r.Body, b[:])
	a.buffers.Put(b)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer := constant
	if r.URL.Path == "/v1/models" {
		answer = models
	}
	header := w.Header()
	header["X-Replica"] = []string{a.name}
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = io.WriteString(w, answer) // whoever does not read it has left
}
