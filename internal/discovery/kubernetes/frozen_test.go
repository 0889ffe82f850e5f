package kubernetes

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/testenv/kubeapi"
)

// A connection that is open and carries nothing, not even an end, is given up by
// HTTP/2's pings long before the watch should end.
func TestFrozenConnection(t *testing.T) {
	f := prepare(t)
	address, freeze := forward(t, f.URL[len("https://"):])
	f.options.Server = "https://" + address
	w := hurried()
	w.watch, w.ping = time.Hour, 200*time.Millisecond
	f.run(w)
	f.want(all, "")
	f.eventually("a watch", func() bool { return f.Watches() == 1 })
	freeze()
	f.Put("b", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
	f.want(all, "not read, the last good one stays")
	f.want("1, 2 unhealthy, 4", "")
}

// forward passes connections on. freeze makes those that are open carry nothing
// any more; new ones work.
func forward(t *testing.T, to string) (address string, freeze func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var open []net.Conn
	frozen := make(chan struct{})
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			stop := frozen
			mu.Unlock()
			wg.Go(func() { copyUntil(client, server, stop) })
			wg.Go(func() { copyUntil(server, client, stop) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String(), func() {
		mu.Lock()
		defer mu.Unlock()
		close(frozen)
		frozen = make(chan struct{})
	}
}

// copyUntil passes on what comes, until the connection ends; once it is frozen it
// throws away what comes.
func copyUntil(from, to net.Conn, frozen <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-frozen:
			if err != nil {
				return
			}
			continue
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
