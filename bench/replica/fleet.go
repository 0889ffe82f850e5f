package replica

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Fleet serves replicas on their own addresses.
type Fleet struct {
	replicas  []*Replica // in the order of the addresses
	byAddress map[string]*Replica

	mu      sync.Mutex
	servers []*server
}

// Addresses returns n addresses that share the port of the first: 127.0.0.1:P,
// 127.0.0.2:P and so on. Linux lets a process use all of 127.0.0.0/8.
func Addresses(first netip.AddrPort, n int) []string {
	addresses := make([]string, 0, n)
	for ip := first.Addr(); len(addresses) < n; ip = ip.Next() {
		addresses = append(addresses, netip.AddrPortFrom(ip, first.Port()).String())
	}
	return addresses
}

// Listen starts a replica for each ip:port, each with a listener of its own, so
// that one can be stopped. Port 0 takes a free one.
func Listen(addresses []string, p Params) (*Fleet, error) {
	f := &Fleet{byAddress: make(map[string]*Replica)}
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("listen for replica %s: %w", address, err)
		}
		r, err := f.add(l.Addr().String(), p)
		if err != nil {
			_ = l.Close()
			f.Close()
			return nil, err
		}
		f.servers = append(f.servers, serve(l, f.handler(r)))
	}
	return f, nil
}

// ListenShared starts n replicas behind one listener on the port of first (0
// takes a free one): the local address of a connection says which replica it
// is for. Use it when there are too many replicas for a listener each.
// Connections to an address that is no replica's are closed at once.
func ListenShared(first netip.AddrPort, n int, p Params) (*Fleet, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(netip.IPv4Unspecified(), first.Port()).String())
	if err != nil {
		return nil, fmt.Errorf("listen for %d replicas from %s: %w", n, first, err)
	}
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	f := &Fleet{byAddress: make(map[string]*Replica)}
	for _, address := range Addresses(netip.AddrPortFrom(first.Addr(), port), n) {
		if _, err := f.add(address, p); err != nil {
			_ = l.Close()
			return nil, err
		}
	}
	f.servers = []*server{serve(knownListener{l, f.byAddress}, f.handler(nil))}
	return f, nil
}

func (f *Fleet) add(address string, p Params) (*Replica, error) {
	p.Name = address
	r, err := New(p)
	if err != nil {
		return nil, err
	}
	if f.byAddress[address] != nil {
		return nil, fmt.Errorf("replica %s: address given twice", address)
	}
	f.replicas = append(f.replicas, r)
	f.byAddress[address] = r
	return r, nil
}

// Addresses returns the replicas' addresses in the order given.
func (f *Fleet) Addresses() []string {
	addresses := make([]string, 0, len(f.replicas))
	for _, r := range f.replicas {
		addresses = append(addresses, r.Name())
	}
	return addresses
}

// Replicas returns the replicas in the order of their addresses.
func (f *Fleet) Replicas() []*Replica { return append([]*Replica(nil), f.replicas...) }

// Replica returns the replica at an address, nil when there is none.
func (f *Fleet) Replica(address string) *Replica { return f.byAddress[address] }

// Stats returns the ground truth of every replica, in the order of addresses.
func (f *Fleet) Stats() []Stats {
	stats := make([]Stats, 0, len(f.replicas))
	for _, r := range f.replicas {
		stats = append(stats, r.Stats())
	}
	return stats
}

// ResetStats resets every replica's ground truth.
func (f *Fleet) ResetStats() { f.each((*Replica).ResetStats) }

// ClearCaches empties every replica's prefix cache.
func (f *Fleet) ClearCaches() { f.each((*Replica).ClearCache) }

// Release lets every held response go on.
func (f *Fleet) Release() { f.each((*Replica).Release) }

func (f *Fleet) each(do func(*Replica)) {
	for _, r := range f.replicas {
		do(r)
	}
}

// Stop closes the listener and the connections of one replica of [Listen], as
// if its process had died, and waits for its handlers. Its Stats stay readable.
func (f *Fleet) Stop(address string) error {
	s, _ := f.server(address)
	if s == nil {
		return fmt.Errorf("stop replica %s: it has no listener of its own", address)
	}
	return s.close()
}

// Restart makes a replica that was stopped serve again, with an empty cache as
// after a start. Its Stats go on.
func (f *Fleet) Restart(address string) error {
	s, i := f.server(address)
	if s == nil {
		return fmt.Errorf("restart replica %s: it has no listener of its own", address)
	}
	if err := s.close(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for replica %s: %w", address, err)
	}
	r := f.Replica(address)
	r.ClearCache()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[i] = serve(l, f.handler(r))
	return nil
}

// server returns the server that listens at an address alone, nil if there is
// none.
func (f *Fleet) server(address string) (*server, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range f.servers {
		if s.listener.Addr().String() == address {
			return s, i
		}
	}
	return nil, 0
}

// Close closes every listener and connection and waits for the handlers.
func (f *Fleet) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// handler serves one replica, or the one at the connection's local address
// when r is nil, and the whole fleet's ground truth under /fleet/.
func (f *Fleet) handler(r *Replica) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fleet/stats", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, f.Stats()) })
	for path, do := range map[string]func(){
		"/fleet/stats/reset":         f.ResetStats,
		"/fleet/control/release":     f.Release,
		"/fleet/control/clear-cache": f.ClearCaches,
	} {
		mux.HandleFunc("POST "+path, func(http.ResponseWriter, *http.Request) { do() })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if served := f.served(r, req); served != nil {
			served.ServeHTTP(w, req)
		}
	})
	return mux
}

func (f *Fleet) served(r *Replica, req *http.Request) *Replica {
	if r != nil {
		return r
	}
	local, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return f.byAddress[localAddress(local)]
}

func localAddress(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
	}
	return ""
}

// knownListener closes connections whose local address is no replica's, as
// those that come from outside the machine.
type knownListener struct {
	net.Listener
	known map[string]*Replica
}

func (l knownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.known[localAddress(c.LocalAddr())] != nil {
			return c, nil
		}
		_ = c.Close()
	}
}
