package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// cuttable stands before one address, over UDP and TCP, and can be cut.
type cuttable struct {
	address string // where it is reached
	cut     atomic.Bool
	udp     *net.UDPConn
	tcp     *net.TCPListener
	to      string
	mu      sync.Mutex
	open    map[net.Conn]bool
	wg      sync.WaitGroup
}

func startCuttable(t *testing.T, address, to string) *cuttable {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenUDP("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	c := &cuttable{address: address, udp: udp, tcp: listener.(*net.TCPListener), to: to, open: make(map[net.Conn]bool)}
	target, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	c.wg.Go(func() { c.datagrams(target) })
	c.wg.Go(c.connections)
	t.Cleanup(c.close)
	return c
}

func (c *cuttable) datagrams(to *net.UDPAddr) {
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := c.udp.ReadFromUDP(buffer)
		if err != nil {
			return
		}
		if !c.cut.Load() {
			_, _ = c.udp.WriteToUDP(buffer[:n], to)
		}
	}
}

func (c *cuttable) connections() {
	for {
		from, err := c.tcp.Accept()
		if err != nil {
			return
		}
		if c.cut.Load() {
			_ = from.Close()
			continue
		}
		to, err := net.Dial("tcp", c.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		c.keep(from, to)
		c.wg.Go(func() { c.copy(to, from) })
		c.wg.Go(func() { c.copy(from, to) })
	}
}

func (c *cuttable) keep(list ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range list {
		c.open[one] = true
	}
}

// copy copies one direction and tells the other end that it is over.
func (c *cuttable) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.(*net.TCPConn).CloseWrite()
}

func (c *cuttable) close() {
	_ = c.udp.Close()
	_ = c.tcp.Close()
	c.mu.Lock()
	for one := range c.open {
		_ = one.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
