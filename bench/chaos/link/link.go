// Package link is a TCP connection between two programs that can be cut and made
// slow, as networks are.
package link

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Link accepts connections and passes them on to a target.
type Link struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	delay time.Duration
	open  map[net.Conn]struct{} // both ends of each connection
}

// New listens on a free port of the loopback interface. The target is "host:port";
// it need not listen yet.
func New(target string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a link to %s: %w", target, err)
	}
	l := &Link{listener: listener, target: target, open: make(map[net.Conn]struct{})}
	l.wg.Go(l.accept)
	return l, nil
}

// Address is where to connect to.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut resets all connections, and new ones as they come, until [Link.Mend].
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.open {
		reset(c)
	}
}

// Mend ends a cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Delay holds what is sent to the target up for d from now on; 0 is not at all.
// What is on its way then stays in its order.
func (l *Link) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Close closes everything and waits for the goroutines.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.Cut()
	l.wg.Wait()
	return err
}

func (l *Link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		to, err := net.Dial("tcp", l.target)
		if err != nil {
			reset(from)
			continue
		}
		if !l.enter(from, to) {
			continue
		}
		l.wg.Go(func() { l.pass(from, to) })
	}
}

// enter books a new connection, unless there is a cut.
func (l *Link) enter(from, to net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		reset(from)
		reset(to)
		return false
	}
	l.open[from], l.open[to] = struct{}{}, struct{}{}
	return true
}

// pass moves bytes in both directions until one end is closed.
func (l *Link) pass(from, to net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { l.forward(from, to) })
	both.Go(func() {
		_, _ = io.Copy(from, to) // ends with the connection
		reset(from)
		reset(to)
	})
	both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, from)
	delete(l.open, to)
}

// piece is what was read at one time and may be sent at another.
type piece struct {
	data []byte
	due  time.Time
}

// forward moves bytes towards the target, each piece when its delay is over.
func (l *Link) forward(from, to net.Conn) {
	pieces := make(chan piece, 64)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range pieces {
			if wait := time.Until(p.due); wait > 0 {
				timer := time.NewTimer(wait)
				<-timer.C
			}
			if _, err := to.Write(p.data); err != nil {
				reset(from)
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			l.mu.Lock()
			delay := l.delay
			l.mu.Unlock()
			pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writing.Wait()
	reset(from)
	reset(to)
}

// reset closes a connection without a goodbye.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil && !errors.Is(err, net.ErrClosed) {
			return
		}
	}
	_ = c.Close()
}
