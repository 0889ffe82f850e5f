package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// envoyClusters is what is read of Envoy's /clusters?format=json.
type envoyClusters struct {
	Clusters []struct {
		Name  string `json:"name"`
		Hosts []struct {
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"address"`
			Stats []struct {
				Name  string `json:"name"`
				Value int64  `json:"value,string"` // left out when it is 0
			} `json:"stats"`
		} `json:"host_statuses"`
	} `json:"cluster_statuses"`
}

// rqActive asks Envoy how many requests each endpoint of the pool has, without
// the idle ones.
func rqActive(ctx context.Context, s *stack.Stack) (map[string]int64, error) {
	text, err := s.EnvoyAdmin(ctx, "/clusters?format=json")
	if err != nil {
		return nil, err
	}
	var all envoyClusters
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("Envoy's clusters: %w", err)
	}
	active := make(map[string]int64)
	for _, cluster := range all.Clusters {
		for _, host := range cluster.Hosts {
			for _, stat := range host.Stats {
				if cluster.Name == envoy.PoolCluster && stat.Name == "rq_active" && stat.Value != 0 {
					active[net.JoinHostPort(host.Address.Socket.Address, strconv.Itoa(host.Address.Socket.Port))] = stat.Value
				}
			}
		}
	}
	return active, nil
}

// mixedLoad is requests of all kinds.
type mixedLoad struct {
	t       *testing.T
	stack   *stack.Stack
	clients [2]*http.Client // HTTP/1.1 and HTTP/2
	// gate is held for reading from the start of a request until a replica has
	// it; whoever locks it knows that nothing is on its way.
	gate    sync.RWMutex
	started atomic.Int64
	// starting are the clients, streaming the responses that run on.
	starting, streaming sync.WaitGroup
}

// run is a client: it starts one request after the other, up to n in all.
func (l *mixedLoad) run(n int64) {
	for {
		i := l.started.Add(1) - 1
		if i >= n {
			return
		}
		l.gate.RLock()
		err := l.start(int(i))
		l.gate.RUnlock()
		if l.t.Context().Err() != nil {
			return // the test has failed already
		}
		if err != nil {
			l.t.Errorf("request %d: %v", i, err)
		}
	}
}

// start sends a request and returns when a replica has it, or when it is over.
func (l *mixedLoad) start(i int) error {
	second := []string{"x-replica-tokens", "21", "x-replica-token-ms", "50"}
	switch i % 20 {
	case 0, 1: // until it is released
		return l.stream(i, 0, "x-replica-hold", "1")
	case 2, 3, 4, 5, 6:
		return l.stream(i, 0, second...)
	case 7, 8: // the client leaves in the middle
		return l.stream(i, time.Duration(50+i%7*60)*time.Millisecond, "x-replica-tokens", "21", "x-replica-token-ms", "500")
	case 9: // the client leaves before the answer begins
		ctx, cancel := context.WithTimeout(l.t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _, err := exchangeWith(l.client(i), l.chat(ctx, i, false, "x-replica-hold", "1"))
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("it should have been left: %w", err)
		}
		return nil
	case 10: // no body
		request, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.stack.URL+"/v1/models", nil)
		if err != nil {
			return err
		}
		return succeeded(exchangeWith(l.client(i), request))
	default:
		return succeeded(exchangeWith(l.client(i), l.chat(l.t.Context(), i, false)))
	}
}

func succeeded(r *http.Response, text []byte, err error) error {
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", r.Status, text)
	}
	return err
}

// client makes every kind of request come over both versions of HTTP.
func (l *mixedLoad) client(i int) *http.Client { return l.clients[i/20%2] }

// chat is a request of one of 25 prefixes.
func (l *mixedLoad) chat(ctx context.Context, i int, stream bool, headers ...string) *http.Request {
	body := chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", i%25), 130), "q", stream)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.stack.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		panic(err) // the URL is ours
	}
	request.Header.Set("content-type", "application/json")
	for j := 0; j+1 < len(headers); j += 2 {
		request.Header.Set(headers[j], headers[j+1])
	}
	return request
}

// stream opens a stream, whose headers show that a replica has the request, and
// lets it run on. Its client leaves after a time, or stays when that is 0.
func (l *mixedLoad) stream(i int, leave time.Duration, headers ...string) error {
	ctx, cancel := context.WithCancel(l.t.Context())
	r, err := l.client(i).Do(l.chat(ctx, i, true, headers...))
	if err != nil {
		cancel()
		return err
	}
	l.streaming.Go(func() {
		defer cancel()
		defer r.Body.Close()
		if leave > 0 {
			defer time.AfterFunc(leave, cancel).Stop()
		}
		text, err := io.ReadAll(r.Body)
		switch whole := bytes.HasSuffix(text, []byte("data: [DONE]\n\n")); {
		case l.t.Context().Err() != nil:
		case leave == 0 && (err != nil || !whole):
			l.t.Errorf("stream %d: %s, %v, it ends %q", i, r.Status, err, text[max(0, len(text)-60):])
		case leave > 0 && err == nil:
			l.t.Errorf("stream %d: %s, it should have been left", i, r.Status)
		}
	})
	return nil
}

// compare waits until warmpath's counts, Envoy's and the replicas' own are the
// same, and returns their sum. It has to wait because responses end meanwhile.
func (l *mixedLoad) compare() (running int64) {
	l.t.Helper()
	if err := l.stack.Await(l.t.Context(), "three times the same counts", func() error {
		envoys, err := rqActive(l.t.Context(), l.stack)
		if err != nil {
			return err
		}
		status, err := l.stack.Status(l.t.Context())
		if err != nil {
			return err
		}
		truth := make(map[string]int64)
		running = 0
		for _, r := range l.stack.Replicas.Stats() {
			if r.Outstanding != 0 {
				truth[r.Replica] = r.Outstanding
				running += r.Outstanding
			}
		}
		if ours := status.Outstanding(); !maps.Equal(ours, envoys) || !maps.Equal(ours, truth) {
			return fmt.Errorf("warmpath counts %v, Envoy %v, the replicas %v", ours, envoys, truth)
		}
		return nil
	}); err != nil {
		l.t.Error(err)
	}
	return running
}

// 2,000 requests of all kinds. Whenever none is on its way, warmpath's counts are
// Envoy's own and the replicas', for every endpoint.
func TestCountsEqualEnvoys(t *testing.T) {
	const requests, samples = 2000, 8
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5, Config: prefixAware(0)})
	l := &mixedLoad{t: t, stack: s, clients: [2]*http.Client{clientOf(t, 1), clientOf(t, 2)}}
	t.Cleanup(func() { l.starting.Wait(); l.streaming.Wait() })
	for range 8 {
		l.starting.Go(func() { l.run(requests) })
	}
	for sample := range int64(samples) {
		target := (sample + 1) * (requests - 100) / samples
		if err := s.Await(t.Context(), fmt.Sprintf("%d requests", target), func() error {
			if n := l.started.Load(); n < target {
				return fmt.Errorf("%d started", n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		l.gate.Lock()
		running := l.compare()
		s.Replicas.Release()
		l.gate.Unlock()
		t.Logf("%d requests running after %d", running, target)
		if running < 20 {
			t.Errorf("only %d requests ran when they were counted", running)
		}
	}
	l.starting.Wait()
	if err := s.Await(t.Context(), "the streams to end", func() error {
		s.Replicas.Release()
		if stats := s.Replicas.Stats(); slices.ContainsFunc(stats, func(r replica.Stats) bool { return r.Outstanding > 0 }) {
			return fmt.Errorf("replicas: %+v", stats)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	l.streaming.Wait()
	if left := l.compare(); left != 0 {
		t.Errorf("%d requests left", left)
	}
	noMisses(t, s)
}
