package replica_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/bench/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fast makes the engine take almost no time.
var fast = replica.Params{TimeScale: 1000}

func start(t *testing.T, n int, p replica.Params) *replica.Fleet {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = "127.0.0.1:0"
	}
	f, err := replica.Listen(addresses, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// client returns an HTTP client that leaves no connection behind.
func client(t *testing.T, protocol func(*http.Protocols)) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	protocol(tr.Protocols)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func h2c(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

func post(t *testing.T, c *http.Client, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp, err := send(t.Context(), c, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer of %s: %v", url, err)
	}
	return resp, string(b)
}

func send(ctx context.Context, c *http.Client, url, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.Do(req)
}

// eventually polls until ok, or fails after 10 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

func chatBody(text string, stream bool) string {
	b, _ := json.Marshal(map[string]any{
		"model": "m", "messages": []any{map[string]any{"role": "user", "content": text}},
		"stream": stream, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 4,
	})
	return string(b)
}

func TestFleetSharedListenerTellsReplicasApart(t *testing.T) {
	f, err := replica.ListenShared(netip.MustParseAddrPort("127.0.0.1:0"), 5, fast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := client(t, http1)
	for _, address := range f.Addresses() {
		resp, _ := post(t, c, "http://"+address+"/v1/chat/completions", chatBody("hello", false))
		if got := resp.Header.Get("x-replica"); got != address {
			t.Errorf("request to %s was served by %q", address, got)
		}
	}
	for _, s := range f.Stats() {
		if s.Finished != 1 {
			t.Errorf("replica %s finished %d requests, want 1", s.Replica, s.Finished)
		}
	}
	port := netip.MustParseAddrPort(f.Addresses()[0]).Port()
	outside := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.99"), port)
	if _, err := send(t.Context(), c, "http://"+outside.String()+"/v1/chat/completions", "{}"); err == nil {
		t.Errorf("%s is no replica but answers", outside)
	}
}

func TestFleetStopKillsOneReplica(t *testing.T) {
	f := start(t, 2, fast)
	c := client(t, http1)
	addresses := f.Addresses()
	if err := f.Stop(addresses[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := send(t.Context(), c, "http://"+addresses[0]+"/v1/chat/completions", chatBody("x", false)); err == nil {
		t.Error("stopped replica still answers")
	}
	resp, _ := post(t, c, "http://"+addresses[1]+"/v1/chat/completions", chatBody("x", false))
	if resp.StatusCode != http.StatusOK {
		t.Errorf("other replica: status %d", resp.StatusCode)
	}
	if err := f.Stop("127.0.0.1:1"); err == nil {
		t.Error("stop of an unknown address: no error")
	}
}

// A replica that is started again is a new process to whoever uses it, and one to
// whoever counts.
func TestFleetRestart(t *testing.T) {
	f := start(t, 2, fast)
	c := client(t, http1)
	address := f.Addresses()[0]
	for range 2 { // stopped before, and not
		post(t, c, "http://"+address+"/v1/chat/completions", chatBody(strings.Repeat("cached ", 100), false))
		if err := f.Restart(address); err != nil {
			t.Fatal(err)
		}
		c.CloseIdleConnections() // they ended with it
		resp, _ := post(t, c, "http://"+address+"/v1/chat/completions", chatBody(strings.Repeat("cached ", 100), false))
		if resp.StatusCode != http.StatusOK || resp.Header.Get("x-replica") != address {
			t.Errorf("status %d by %s", resp.StatusCode, resp.Header.Get("x-replica"))
		}
		if err := f.Stop(address); err != nil {
			t.Fatal(err)
		}
		if err := f.Restart(address); err != nil {
			t.Fatal(err)
		}
		c.CloseIdleConnections()
	}
	stats := f.Stats()[0]
	if stats.Started != 4 || stats.Outstanding != 0 || stats.CachedTokens >= stats.PromptTokens {
		t.Errorf("%+v", stats)
	}
	if err := f.Restart("127.0.0.1:1"); err == nil {
		t.Error("restart of an unknown address: no error")
	}
}

// A record says when its request was outstanding.
func TestRecordTimes(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	url := "http://" + f.Addresses()[0] + "/v1/chat/completions"
	post(t, c, url, chatBody("first", false))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	held, err := send(ctx, c, url, chatBody("held", true), "x-replica-hold", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Body.Close()
	records := f.Replicas()[0].Requests()
	if len(records) != 2 || records[0].Ended.IsZero() || !records[0].Ended.After(records[0].Began) ||
		!records[1].Ended.IsZero() || records[1].Began.Before(records[0].Ended) {
		t.Errorf("%+v", records)
	}
	eventually(t, "it to be held", func() bool { return f.Stats()[0].Held == 1 })
	f.Release()
	eventually(t, "the end of the held one", func() bool { return !f.Replicas()[0].Requests()[1].Ended.IsZero() })
}

func TestFleetCloseEndsHeldResponses(t *testing.T) {
	for name, protocol := range map[string]func(*http.Protocols){"http1": http1, "h2c": h2c} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 1, fast)
			c := client(t, protocol)
			const n = 100
			for range n {
				resp, err := send(t.Context(), c, "http://"+f.Addresses()[0]+"/v1/chat/completions",
					chatBody("x", true), "x-replica-hold", "1", "x-replica-first-token-ms", "0")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
			}
			eventually(t, "all held", func() bool { return f.Stats()[0].Held == n })
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if got := f.Stats()[0].Outstanding; got != 0 {
				t.Errorf("outstanding after Close: %d", got)
			}
		})
	}
}

func TestListenRejects(t *testing.T) {
	bad := map[string]replica.Params{
		"time scale":    {TimeScale: -1},
		"output tokens": {OutputTokens: -1},
	}
	for name, p := range bad {
		if _, err := replica.Listen([]string{"127.0.0.1:0"}, p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := replica.Listen([]string{"127.0.0.1"}, fast); err == nil {
		t.Error("address without port: no error")
	}
}

func TestStreamSendsHeadersBeforeTheFirstToken(t *testing.T) {
	f := start(t, 1, fast)
	url := "http://" + f.Addresses()[0] + "/v1/chat/completions"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := send(ctx, client(t, http1), url, chatBody("x", true), "x-replica-first-token-ms", "3600000")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	eventually(t, "aborted", func() bool { s := f.Stats()[0]; return s.Aborted == 1 && s.Outstanding == 0 })
}

func TestHoldIsOutstandingUntilReleased(t *testing.T) {
	const n = 40
	for name, protocol := range map[string]func(*http.Protocols){"http1": http1, "h2c": h2c} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 1, fast)
			url := "http://" + f.Addresses()[0]
			c := client(t, protocol)
			results := make(chan string, n)
			for i := range n {
				go func() {
					resp, err := send(t.Context(), c, url+"/v1/chat/completions", chatBody("x", i%2 == 0),
						"x-replica-hold", "1", "x-replica-first-token-ms", "0", "x-replica-token-ms", "0")
					if err != nil {
						results <- err.Error()
						return
					}
					defer resp.Body.Close()
					b, _ := io.ReadAll(resp.Body)
					results <- string(b)
				}()
			}
			eventually(t, "all held", func() bool { return f.Stats()[0].Held == n })
			f.ResetStats() // forgets nothing that is still running
			if s := f.Stats()[0]; s.Started != n || s.Outstanding != n || s.PeakOutstanding != n || s.Held != n || s.Finished != 0 {
				t.Errorf("while held: %+v", s)
			}
			post(t, c, url+"/control/release", "")
			for range n {
				if got := <-results; !strings.Contains(got, "length") {
					t.Errorf("released answer %q", got)
				}
			}
			eventually(t, "all finished", func() bool { s := f.Stats()[0]; return s.Finished == n && s.Outstanding == 0 && s.Held == 0 })
			if s := f.Stats()[0]; s.Aborted != 0 {
				t.Errorf("aborted %d, want 0", s.Aborted)
			}
		})
	}
}

// events returns the data of every event of a stream, after the event's name
// and a space where it has one.
func events(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	name := ""
	for s := bufio.NewScanner(bytes.NewReader([]byte(body))); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			name = v + " "
		}
		if v, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			out, name = append(out, name+v), ""
		}
	}
	return out
}
