package extproc

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/warmpath/warmpath/internal/route"
)

// dial serves the server over an in-memory connection.
func dial(t *testing.T, s *Server) extprocv3.ExternalProcessorClient {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, s)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///warmpath",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return extprocv3.NewExternalProcessorClient(conn)
}

// exchange sends lines of a script, one answer to each, and returns the last.
func exchange(stream extprocv3.ExternalProcessor_ProcessClient, lines ...string) (last *extprocv3.ProcessingResponse, err error) {
	for _, line := range lines {
		m, err := parseMessage(line)
		if err != nil {
			return nil, err
		}
		if err := stream.Send(m); err != nil {
			return nil, fmt.Errorf("send %q: %w", line, err)
		}
		if last, err = stream.Recv(); err != nil {
			return nil, fmt.Errorf("answer to %q: %w", line, err)
		}
	}
	return last, nil
}

// awaitTotal polls until the sum of all counts is want.
func awaitTotal(t *testing.T, r *route.Router, want int64) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		var sum int64
		for _, c := range r.Loads().Snapshot() {
			sum += c.Outstanding
		}
		if sum == want {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%d requests are counted, want %d", sum, want)
		}
	}
}

const chatHeaders = "headers :method=POST :path=/v1/chat/completions content-length=64 x-request-id=1"

// 200 requests at once, which end where they please: at any message, in an
// orderly way or by cancellation.
func TestStreamsEndAnywhere(t *testing.T) {
	router := newRouter(t, prefixAware(), 5)
	client := dial(t, New(router, testSettings, silent{}, rand.Uint64))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := client.Process(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			lines := []string{
				chatHeaders, fmt.Sprintf(`body eos {"messages":[{"role":"user","content":"%d"}]}`, i%7),
				fmt.Sprintf("response 200 from=10.0.0.%d:80 attempts=1", 1+r.IntN(6)), "response-trailers",
			}
			if _, err := exchange(stream, lines[:r.IntN(len(lines)+1)]...); err != nil {
				t.Error(err)
			}
			if r.IntN(2) == 0 {
				return // by cancellation
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
			if _, err := stream.Recv(); err != io.EOF {
				t.Errorf("the stream ended with %v, want EOF", err)
			}
		})
	}
	wg.Wait()
	awaitTotal(t, router, 0)
}

// Requests are told apart by their streams: 50 with one x-request-id are 50,
// and no endpoint runs more than the threshold while there is room.
func TestRequestIDIsNoIdentity(t *testing.T) {
	policy := prefixAware()
	policy.ConcurrencyThreshold = 10
	router := newRouter(t, policy, 7)
	client := dial(t, New(router, testSettings, silent{}, rand.Uint64))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			stream, err := client.Process(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			last, err := exchange(stream, chatHeaders, `body eos {"messages":[{"role":"user","content":"one prompt"}]}`)
			if err != nil || !isDecision(last) {
				t.Errorf("no decision: %v, %v", last, err)
			}
		})
	}
	wg.Wait()
	awaitTotal(t, router, 50)
	for _, c := range router.Loads().Snapshot() {
		if c.Outstanding != 0 && c.Outstanding != 10 {
			t.Errorf("%s runs %d requests, want 10 or none", c.Address, c.Outstanding)
		}
	}
	cancel()
	awaitTotal(t, router, 0)
}

// Settings and membership change while requests run; every request sees one
// state or the other.
func TestChangesUnderLoad(t *testing.T) {
	router := newRouter(t, prefixAware(), 3)
	server := New(router, testSettings, silent{}, rand.Uint64)
	client := dial(t, server)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 10 {
				stream, err := client.Process(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := exchange(stream, chatHeaders, `body eos {"messages":[{"role":"user","content":"x"}]}`); err != nil {
					t.Error(err)
				}
				_ = stream.CloseSend()
				_, _ = stream.Recv()
			}
			s := testSettings
			s.RetryAttempts = i % 3
			server.SetSettings(s)
			router.SetMembership(newRouter(t, prefixAware(), 1+i%5).Membership())
		})
	}
	wg.Wait()
	awaitTotal(t, router, 0)
}
