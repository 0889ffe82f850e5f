package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica"
	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// The real SDKs work unchanged through the gateway, each suite with the strategy
// that has the most to get wrong and with the one that reads no body.
func TestRealClients(t *testing.T) {
	const python = "../../.tools/python/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("the Python clients are not installed, run `make python`: %v", err)
	}
	s := testenv.Start(t, stack.Options{
		Replicas: 3,
		Replica:  replica.Params{Engine: engine.Llama70B(), TimeScale: 20, Models: []string{"demo"}},
	})
	suites := []struct {
		script string
		args   []string
	}{
		{"openai_sdk.py", []string{s.URL + "/v1", "--stats-url", "http://" + s.Replicas.Addresses()[0]}},
		{"boto3_invoke.py", []string{s.URL}},
	}
	for _, config := range []stack.Config{{Strategy: "LEAST_OUTSTANDING_REQUESTS"}, prefixAware(0)} {
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for _, suite := range suites {
			t.Run(config.Strategy+"/"+suite.script, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				args := append([]string{"../../internal/testenv/pyclient/" + suite.script}, suite.args...)
				if config.Strategy == "PREFIX_AWARE" {
					args = append(args, "--affinity")
				}
				out, err := exec.CommandContext(ctx, python, args...).CombinedOutput()
				if err != nil || !bytes.Contains(out, []byte(" passed, 0 failed")) {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		atRest(t, s)
	}
	noMisses(t, s)
}

// Bodies around and above Envoy's buffer limit are served, whole, where the
// decision says: by their prefix if Envoy can buffer them, by load otherwise.
// Several of each, because what goes wrong with them depends on timing.
func TestLargeBodies(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 4, Config: prefixAware(0)})
	const limit = 4 << 20
	tooLarge, unknown := 0, 0
	for _, size := range []int{32_767, 32_769, 200_000, limit - 1, limit, limit + 1, 5_000_000, 6_000_000, 20_000_000} {
		body := chat(strings.Repeat("A long shared document. ", 100), strings.Repeat("x", max(0, size-2600)), false)
		body = append(body, bytes.Repeat([]byte(" "), size-len(body))...)
		home := ""
		if size <= limit {
			home = homesOf(t, s, "/v1/chat/completions", body)[0]
		}
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("size=%d/chunked=%v", size, chunked), func(t *testing.T) {
				for range 4 {
					got := sendLarge(t, s, body, chunked)
					if size <= limit && !chunked && got != home {
						t.Errorf("served by %s, home is %s", got, home)
					}
				}
			})
			switch {
			case chunked:
				unknown += 4
			case size > limit:
				tooLarge += 4
			}
		}
	}
	for problem, want := range map[string]int{"body_too_large": tooLarge, "unknown_length": unknown} {
		if got, err := s.Metric(t.Context(), "warmpath_problems_total", fmt.Sprintf("problem=%q", problem)); err != nil || int(got) != want {
			t.Errorf("%s counted %v times (%v), want %d", problem, got, err, want)
		}
	}
	noMisses(t, s)
	atRest(t, s)
}

// sendLarge sends a body and checks that the replica that answered got it all.
func sendLarge(t *testing.T, s *stack.Stack, body []byte, chunked bool) (address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-replica-status", "418") // an answer without the work
	if chunked {
		request.ContentLength = -1
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text := readAll(t, r)
	if r.StatusCode != http.StatusTeapot {
		t.Fatalf("%s: %.200s", r.Status, text)
	}
	address = r.Header.Get("x-replica")
	records := s.Replicas.Replica(address).Requests()
	sum := sha256.Sum256(body)
	if last := records[len(records)-1]; last.Body.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("upstream got %d other bytes than the %d sent", last.Body.Length, len(body))
	}
	return address
}

// The home of a prefix is down: every request of it is served by its second
// home, and counted there.
func TestRetryGoesToTheSecondHome(t *testing.T) {
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	body := chat(strings.Repeat("Its home is down. ", 100), "q", true)
	homes := homesOf(t, s, "/v1/chat/completions", body)
	if err := s.Replicas.Stop(homes[0]); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if got, err := served(t.Context(), s, "/v1/chat/completions", body); err != nil || got != homes[1] {
			t.Fatalf("served by %s (%v), the second home is %s", got, err, homes[1])
		}
	}
	open, counts := holdOpen(t, s, body, 3)
	if counts[homes[1]] != 3 {
		t.Errorf("held streams at %v", counts)
	}
	truthAgrees(t, s)
	open.close()
	noMisses(t, s)
	atRest(t, s)
}
