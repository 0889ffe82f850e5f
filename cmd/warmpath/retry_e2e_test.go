package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// One of the endpoints is dead. It looks idle, so the least loaded choice falls
// on it again and again: every request is served all the same, whether its body
// was read or not.
func TestDeadEndpointFailsNoRequest(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5})
	dead := s.Replicas.Addresses()[2]
	if err := s.Replicas.Stop(dead); err != nil {
		t.Fatal(err)
	}
	for _, config := range []stack.Config{
		{Strategy: "LEAST_OUTSTANDING_REQUESTS"},
		prefixAware(0),
		{Strategy: "RANDOM"},
		{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength},
		{Strategy: "KV_AWARE"},
	} {
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		open, _ := holdOpen(t, s, chat("keeps the others busy", "q", true), 8)
		for _, chunked := range []bool{false, true} {
			for i := range 40 {
				body := chat(strings.Repeat(fmt.Sprintf("Prefix %d. ", i), 150), "q", false)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/chat/completions", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("content-type", "application/json")
				if chunked {
					request.ContentLength = -1
				}
				r, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				if text := readAll(t, r); r.StatusCode != http.StatusOK {
					t.Errorf("%s, chunked %v, request %d: %s %.100s", config.Strategy, chunked, i, r.Status, text)
				}
			}
		}
		truthAgrees(t, s)
		open.close()
		atRest(t, s)
	}
	noMisses(t, s)
}

// Most endpoints are dead: retries go to endpoints that the decision named, and
// when those are used up it is no disagreement about the membership.
func TestManyDeadEndpointsAreNoMisses(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 5})
	for _, address := range s.Replicas.Addresses()[:3] {
		if err := s.Replicas.Stop(address); err != nil {
			t.Fatal(err)
		}
	}
	failed := 0
	for range 100 {
		if _, err := served(t.Context(), s, "/v1/chat/completions", chat("short", "q", false)); err != nil {
			failed++
		}
	}
	if failed > 30 { // three dead first, second and third: 1 in 10
		t.Errorf("%d of 100 requests failed with 3 of 5 endpoints dead", failed)
	}
	noMisses(t, s)
}

// warmpath is killed in the middle of uploads, with retries switched on: every
// replica gets just the bytes that the client sent.
func TestKilledInMidUpload(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Replicas: 3})
	for _, config := range []stack.Config{{Strategy: "LEAST_OUTSTANDING_REQUESTS"}, prefixAware(0)} {
		if err := s.SetConfig(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			var uploads []*upload
			for i := range 6 {
				uploads = append(uploads, startUpload(t, s, i%2 == 0))
			}
			for _, u := range uploads {
				u.send(t, u.body[:len(u.body)/2])
			}
			s.Warmpath.Kill()
			for _, u := range uploads {
				u.send(t, u.body[len(u.body)/2:])
				u.finish(t, s, fmt.Sprintf("%s round %d", config.Strategy, round))
			}
			if err := s.StartWarmpath(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.AwaitRouting(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// upload is a request whose body is sent by hand.
type upload struct {
	body   []byte
	writer *io.PipeWriter
	done   chan *http.Response
	err    error
}

func startUpload(t *testing.T, s *stack.Stack, known bool) *upload {
	t.Helper()
	reader, writer := io.Pipe()
	u := &upload{
		body:   chat(strings.Repeat("A long document. ", 40_000), "q", false),
		writer: writer, done: make(chan *http.Response, 1),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-replica-status", "418")
	if known {
		request.ContentLength = int64(len(u.body))
	}
	go func() {
		var r *http.Response
		r, u.err = http.DefaultClient.Do(request)
		u.done <- r
	}()
	return u
}

func (u *upload) send(t *testing.T, part []byte) {
	t.Helper()
	if _, err := u.writer.Write(part); err != nil {
		t.Errorf("sending a part: %v", err)
	}
}

func (u *upload) finish(t *testing.T, s *stack.Stack, what string) {
	t.Helper()
	_ = u.writer.Close()
	r := <-u.done
	if u.err != nil {
		t.Errorf("%s: %v", what, u.err)
		return
	}
	if text := readAll(t, r); r.StatusCode != http.StatusTeapot {
		t.Errorf("%s: %s %.100s", what, r.Status, text)
		return
	}
	sum := sha256.Sum256(u.body)
	for _, record := range s.Replicas.Replica(r.Header.Get("x-replica")).Requests() {
		if record.Body.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: a replica got %d bytes that nobody sent", what, record.Body.Length)
		}
	}
}
