// Package nameserver is a DNS server for tests, which also answers wrongly.
package nameserver

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Fault is a way of not answering.
type Fault int

// The faults.
const (
	None      Fault = iota
	Fails           // SERVFAIL
	Refuses         // REFUSED
	Unknown         // NXDOMAIN, of every name
	Silent          // says nothing
	Truncated       // says over UDP that the answer is longer; TCP is right
	Shortened       // the same, and nothing over TCP
	Cut             // the answer ends in the middle of a record
	NoIPv6          // SERVFAIL for AAAA only
)

// Server answers on a port of the loopback interface, over UDP and TCP.
type Server struct {
	// Address is the server's ip:port.
	Address string

	mu        sync.Mutex
	fault     Fault
	addresses map[string][]netip.Addr
	services  map[string][]net.SRV
}

// Start returns a server that ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{addresses: make(map[string][]netip.Addr), services: make(map[string][]net.SRV)}
	packets, stream := open(t)
	s.Address = packets.LocalAddr().String()
	var running sync.WaitGroup
	running.Go(func() { s.servePackets(packets) })
	running.Go(func() { s.serveStreams(stream) })
	t.Cleanup(func() {
		_ = packets.Close()
		_ = stream.Close()
		running.Wait()
	})
	return s
}

// open finds a port that is free for both protocols.
func open(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	var err error
	for range 20 {
		var stream net.Listener
		if stream, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			continue
		}
		var packets net.PacketConn
		if packets, err = net.ListenPacket("udp", stream.Addr().String()); err == nil {
			return packets, stream
		}
		_ = stream.Close()
	}
	t.Fatal(err)
	return nil, nil
}

// SetAddresses are from now on the addresses of a name, given without the dot at
// its end.
func (s *Server) SetAddresses(name string, addresses ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses[name] = addresses
}

// SetService are the SRV records of a name.
func (s *Server) SetService(name string, records ...net.SRV) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services[name] = records
}

// SetFault makes the server fail from now on; None makes it answer again.
func (s *Server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *Server) servePackets(c net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer := s.answer(buffer[:n], false); answer != nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}

func (s *Server) serveStreams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.serveStream(c)
		_ = c.Close()
	}
}

// serveStream answers one query.
func (s *Server) serveStream(c net.Conn) {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return
	}
	if answer := s.answer(query, true); answer != nil {
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

// answer returns nil for none.
func (s *Server) answer(query []byte, stream bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	q := m.Questions[0]
	if s.fault == Silent || s.fault == Shortened && stream {
		return nil
	}
	if s.fault == Truncated && !stream || s.fault == Shortened {
		m.Truncated = true
		return pack(m)
	}
	m.RCode = s.code(q)
	if m.RCode == dnsmessage.RCodeSuccess {
		m.Answers = s.records(q)
	}
	text := pack(m)
	if s.fault == Cut {
		return text[:len(text)-2]
	}
	return text
}

func (s *Server) code(q dnsmessage.Question) dnsmessage.RCode {
	name := strings.TrimSuffix(q.Name.String(), ".")
	_, isHost := s.addresses[name]
	_, isService := s.services[name]
	switch {
	case s.fault == Fails || s.fault == NoIPv6 && q.Type == dnsmessage.TypeAAAA:
		return dnsmessage.RCodeServerFailure
	case s.fault == Refuses:
		return dnsmessage.RCodeRefused
	case s.fault == Unknown || !isHost && !isService:
		return dnsmessage.RCodeNameError
	}
	return dnsmessage.RCodeSuccess
}

// records answer in another order each time, as name servers do.
func (s *Server) records(q dnsmessage.Question) (list []dnsmessage.Resource) {
	name := strings.TrimSuffix(q.Name.String(), ".")
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
	for _, a := range s.addresses[name] {
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			list = append(list, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			list = append(list, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	for _, r := range s.services[name] {
		if q.Type == dnsmessage.TypeSRV {
			list = append(list, dnsmessage.Resource{Header: header, Body: &dnsmessage.SRVResource{
				Priority: r.Priority, Weight: r.Weight, Port: r.Port, Target: dnsmessage.MustNewName(r.Target),
			}})
		}
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func pack(m dnsmessage.Message) []byte {
	text, err := m.Pack()
	if err != nil {
		panic("nameserver: " + err.Error()) // the test's own records
	}
	return text
}
