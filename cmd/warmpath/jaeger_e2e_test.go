//go:build jaeger

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/telemetry"
	"github.com/warmpath/warmpath/internal/testenv"
)

const tracedTenant = "tenant-of-the-test"

// tracedBody is a request of a model and an adapter.
func tracedBody(prompt string) []byte {
	body := chat(strings.Repeat(prompt+" ", 100), "CANARY", true)
	return bytes.Replace(body, []byte(`"model":`), []byte(`"lora_path":"sql-lora","model":`), 1)
}

// tracedRequests sends requests in traces of their own to a stack that exports to
// a Jaeger.
type tracedRequests struct {
	t *testing.T
	j *jaeger
	s *stack.Stack
}

func startJaegered(t *testing.T, j *jaeger, config stack.Config, changes ...func([]byte) ([]byte, error)) *tracedRequests {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // milliseconds; warmpath inherits it
	config.OTLPEndpoint = j.collector
	config.Extra = noHealth
	changes = append(changes, withTracing(j.collector))
	return &tracedRequests{t: t, j: j, s: testenv.Start(t, stack.Options{
		Replica: fast, Replicas: 3, Config: config, Bootstrap: testenv.InOrder(changes...),
	})}
}

// legs are the spans of a request.
type legs struct {
	ingress, process, decision jaegerSpan
	tries                      []jaegerSpan // of the endpoints, in order
}

// send sends a request whose trace has that first byte, and returns who served it
// and the trace.
func (q *tracedRequests) send(first byte, body []byte) (address, id string) {
	q.t.Helper()
	header, id, _ := traceparent(first, "01")
	return mustServe(q.t, q.s, body, "traceparent", header, "x-request-id", requestID(first), "x-amzn-sagemaker-prefix-aware-id", tracedTenant), id
}

func requestID(first byte) string { return fmt.Sprintf("request-%x", first) }

// legs waits for the whole trace of a request: Envoy's span under the client's,
// its call of warmpath and a span for each endpoint that it tried under that, and
// the decision under the call. Without decided, warmpath was not there to ask.
func (q *tracedRequests) legs(first byte, tries int, decided bool) (l legs) {
	q.t.Helper()
	_, id, client := traceparent(first, "01")
	q.j.trace(q.t, q.s, id, func(tr jaegerTrace) error {
		under := func(parent string, is func(jaegerSpan) bool) func(jaegerSpan) bool {
			return func(s jaegerSpan) bool { return s.parent() == parent && is(s) }
		}
		ingress := tr.find("envoy", under(client, func(s jaegerSpan) bool { return s.tag("span.kind") == "server" }))
		if len(ingress) != 1 {
			return errors.New("no span of Envoy's under the client's")
		}
		l.ingress = ingress[0]
		l.tries = tr.find("envoy", under(l.ingress.SpanID, func(s jaegerSpan) bool { return s.tag("upstream_cluster") == envoy.PoolCluster }))
		if len(l.tries) != tries {
			return fmt.Errorf("%d spans of endpoints, want %d", len(l.tries), tries)
		}
		if !decided {
			return nil
		}
		process := tr.find("envoy", under(l.ingress.SpanID, func(s jaegerSpan) bool { return strings.Contains(s.OperationName, "ExternalProcessor.Process") }))
		if len(process) != 1 {
			return fmt.Errorf("%d calls of warmpath, want 1", len(process))
		}
		l.process = process[0]
		decision := tr.find("warmpath", under(l.process.SpanID, func(s jaegerSpan) bool { return s.OperationName == telemetry.SpanName }))
		if len(decision) != 1 {
			return fmt.Errorf("%d decisions, want 1", len(decision))
		}
		l.decision = decision[0]
		return nil
	})
	return l
}

func wantTags(t *testing.T, s jaegerSpan, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := s.tag(key); got != value {
			t.Errorf("%s: %s = %q, want %q", s.OperationName, key, got, value)
		}
	}
}

// wantKeys fails the test unless the span has all the tags.
func wantKeys(t *testing.T, s jaegerSpan, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if s.tag(key) == "" {
			t.Errorf("%s: no %s", s.OperationName, key)
		}
	}
}

// list is a list of strings as Jaeger tells it.
func list(values []string) string {
	text, _ := json.Marshal(values)
	return string(text)
}

// Every kind of decision is a whole trace in Jaeger, from the client to the
// endpoint, and is found by what the example asks for.
func TestJaegerHasEveryKindOfDecision(t *testing.T) {
	j := startJaeger(t)
	q := startJaegered(t, j, prefixAware(2))
	body := tracedBody("You are traced.")
	homes := homesOf(t, q.s, "/v1/chat/completions", body, "x-amzn-sagemaker-prefix-aware-id", tracedTenant)

	home := q.home(0x11, body, homes)
	q.overflow(0x22, body, homes)
	q.auto(0x33, body)
	q.retry(0x44, body, homes)
	q.drained(0x55, tracedBody("You drain."))
	q.unsampled(0x66, body)
	q.gone(0x77, body)
	undecided(t, j, 0x88, body)

	found := askExample(t, j, map[string]string{
		"warmpath.chosen": homes[0], "warmpath.key": home.decision.tag("warmpath.key"), "warmpath.request_id": requestID(0x11),
	})
	for query, want := range map[string][]byte{
		"warmpath.reason": {0x22}, "warmpath.request_id": {0x11}, "warmpath.choices": {0x77, 0x88}, "response_flags": {0x44},
	} {
		if ids := traceIDs(want); !slices.Equal(found[query], ids) {
			t.Errorf("the example's query for %s finds %v, want %v", query, found[query], ids)
		}
	}
	for query, want := range map[string][]byte{"warmpath.chosen": {0x11, 0x44}, "warmpath.key": {0x11, 0x22, 0x44}} {
		for _, id := range traceIDs(want) {
			if !slices.Contains(found[query], id) {
				t.Errorf("the example's query for %s finds %v, not %s", query, found[query], id)
			}
		}
	}
}

func traceIDs(firsts []byte) (ids []string) {
	for _, first := range firsts {
		_, id, _ := traceparent(first, "01")
		ids = append(ids, id)
	}
	return ids
}

var exampleQuery = regexp.MustCompile(`(?m)^ask (\w+) '(\{"([\w.]+)":"([^"]*)"\})'`)

// askExample asks Jaeger what the README of the example asks, with values of this test
// in the place of those that differ, and returns the traces by the tag.
func askExample(t *testing.T, j *jaeger, values map[string]string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../examples/tracing/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, m := range exampleQuery.FindAllStringSubmatch(string(text), -1) {
		tags := m[2]
		if value := values[m[3]]; value != "" {
			tags = strings.Replace(tags, m[4], value, 1)
		}
		found[m[3]] = j.search(t, m[1], tags)
	}
	if len(found) != 6 {
		t.Errorf("the example has %d queries, want 6", len(found))
	}
	return found
}

// home: the key's first home has room. The endpoint is called in the trace, too.
func (q *tracedRequests) home(first byte, body []byte, homes []string) legs {
	q.t.Helper()
	address, id := q.send(first, body)
	l := q.legs(first, 1, true)
	wantTags(q.t, l.decision, map[string]string{
		"warmpath.strategy": "PREFIX_AWARE", "warmpath.reason": "home", "warmpath.api": "chat",
		"warmpath.chosen": homes[0], "warmpath.homes": list(homes), "warmpath.choices": list(homes), "warmpath.rank": "0",
		"warmpath.load.chosen": "0", "warmpath.load.home": "0", "warmpath.bound": "2", "warmpath.candidates": "3",
		"warmpath.tenant": "true", "warmpath.model": "llama-70b", "warmpath.adapter": "sql-lora",
		"warmpath.request_id": requestID(first), "span.kind": "internal",
	})
	wantKeys(q.t, l.decision, "warmpath.key", "warmpath.key_chars", "warmpath.prompt_chars", "warmpath.body_bytes", "warmpath.membership", "warmpath.config_generation")
	wantTags(q.t, l.ingress, map[string]string{
		"guid:x-request-id": requestID(first), "warmpath.choices": strings.Join(homes, ","), "http.status_code": "200",
	})
	wantTags(q.t, l.tries[0], map[string]string{"upstream_address": address, "span.kind": "client"})
	for _, r := range q.s.Replicas.Replica(address).Requests() {
		if want := "00-" + id + "-" + l.tries[0].SpanID + "-01"; r.RequestID == requestID(first) && r.Traceparent != want {
			q.t.Errorf("the endpoint got traceparent %q, want Envoy's span of it, %q", r.Traceparent, want)
		}
	}
	for _, s := range []jaegerSpan{l.ingress, l.process, l.decision, l.tries[0]} {
		if text := fmt.Sprint(s); strings.Contains(text, "CANARY") || strings.Contains(text, tracedTenant) {
			q.t.Errorf("the prompt or the tenant is in a span: %.300s", text)
		}
	}
	return l
}

// overflow: the home is at its bound.
func (q *tracedRequests) overflow(first byte, body []byte, homes []string) {
	q.t.Helper()
	ctx, cancel := context.WithCancel(q.t.Context())
	open := &held{cancel: cancel}
	defer open.close()
	for i := range 2 {
		header, _, _ := traceparent(0xf0+byte(i), "00")
		r, err := post(ctx, q.s, "/v1/chat/completions", body,
			"x-replica-hold", "1", "traceparent", header, "x-amzn-sagemaker-prefix-aware-id", tracedTenant)
		if err != nil {
			q.t.Fatal(err)
		}
		open.responses = append(open.responses, r)
	}
	address, _ := q.send(first, body)
	l := q.legs(first, 1, true)
	wantTags(q.t, l.decision, map[string]string{
		"warmpath.reason": "overflow", "warmpath.chosen": homes[1], "warmpath.rank": "1",
		"warmpath.load.chosen": "0", "warmpath.load.home": "2", "warmpath.bound": "2",
	})
	wantTags(q.t, l.tries[0], map[string]string{"upstream_address": address})
	if address != homes[1] {
		q.t.Errorf("served by %s, want the second home %s", address, homes[1])
	}
	open.close()
	atRest(q.t, q.s)
}

// auto: with the automatic length a decision says on how much of the prompt it
// depends, how hot that is, and how much of it is warm.
func (q *tracedRequests) auto(first byte, body []byte) {
	q.t.Helper()
	config := stack.Config{Strategy: "PREFIX_AWARE", PrefixLength: route.AutoPrefixLength, OTLPEndpoint: q.j.collector, Extra: noHealth}
	q.configure(config)
	q.send(first, body)
	l := q.legs(first, 1, true)
	wantTags(q.t, l.decision, map[string]string{"warmpath.reason": "home", "warmpath.warm_chars": "0"})
	wantKeys(q.t, l.decision, "warmpath.depth_chars", "warmpath.share", "warmpath.home_count", "warmpath.prompt_chars")
	config = prefixAware(2)
	config.OTLPEndpoint, config.Extra = q.j.collector, noHealth
	q.configure(config)
}

func (q *tracedRequests) configure(config stack.Config) {
	q.t.Helper()
	if err := q.s.SetConfig(q.t.Context(), config); err != nil {
		q.t.Fatal(err)
	}
}

// retry: the home is dead, which nobody knows yet. Each endpoint that Envoy tries
// has a span; the dead one's says that the connection failed.
func (q *tracedRequests) retry(first byte, body []byte, homes []string) {
	q.t.Helper()
	if err := q.s.Replicas.Stop(homes[0]); err != nil {
		q.t.Fatal(err)
	}
	address, _ := q.send(first, body)
	l := q.legs(first, 2, true)
	wantTags(q.t, l.decision, map[string]string{"warmpath.reason": "home", "warmpath.chosen": homes[0], "warmpath.choices": list(homes)})
	byFlag := make(map[string]string)
	for _, try := range l.tries {
		byFlag[try.tag("response_flags")] = try.tag("upstream_address")
	}
	if byFlag["UF"] != homes[0] || byFlag["-"] != homes[1] || address != homes[1] {
		q.t.Errorf("Envoy's spans have the endpoints %q by their flags, want UF %s and - %s", byFlag, homes[0], homes[1])
	}
	if err := q.s.Replicas.Restart(homes[0]); err != nil {
		q.t.Fatal(err)
	}
}

// drained: a stream runs on at the endpoint that drains, and new requests of its
// prefix have another first home, by another membership.
func (q *tracedRequests) drained(first byte, body []byte) {
	q.t.Helper()
	header, _, _ := traceparent(first, "01")
	stream, err := post(q.t.Context(), q.s, "/v1/chat/completions", body, "x-replica-hold", "1",
		"traceparent", header, "x-request-id", requestID(first), "x-amzn-sagemaker-prefix-aware-id", tracedTenant)
	if err != nil {
		q.t.Fatal(err)
	}
	defer stream.Body.Close()
	leaving := stream.Header.Get("x-replica")
	endpoints := stack.Endpoints(q.s.Replicas.Addresses()...)
	for i := range endpoints {
		if endpoints[i].Address == leaving {
			endpoints[i].State = fleet.Draining
		}
	}
	if err := q.s.WriteEndpoints(endpoints); err != nil {
		q.t.Fatal(err)
	}
	if err := q.s.Await(q.t.Context(), "the drain", func() error {
		status, err := q.s.Status(q.t.Context())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(status.Endpoints, func(e stack.EndpointStatus) bool { return e.Address == leaving && e.State == "draining" }) {
			return fmt.Errorf("endpoints %+v", status.Endpoints)
		}
		return nil
	}); err != nil {
		q.t.Fatal(err)
	}
	address, _ := q.send(first+1, body)
	after := q.legs(first+1, 1, true)
	q.s.Replicas.Release()
	if text := readAll(q.t, stream); !strings.HasSuffix(text, "data: [DONE]\n\n") {
		q.t.Errorf("the stream was cut: it ends %q", text[max(0, len(text)-60):])
	}
	before := q.legs(first, 1, true)
	wantTags(q.t, before.tries[0], map[string]string{"upstream_address": leaving, "http.status_code": "200"})
	if address == leaving {
		q.t.Errorf("a new request went to %s, which drains", address)
	}
	wantTags(q.t, after.decision, map[string]string{
		"warmpath.reason": "home", "warmpath.chosen": address, "warmpath.candidates": "2", "warmpath.key": before.decision.tag("warmpath.key"),
	})
	if strings.Contains(after.decision.tag("warmpath.choices"), leaving) {
		q.t.Errorf("the choices %s have the endpoint that drains", after.decision.tag("warmpath.choices"))
	}
	if v := after.decision.tag("warmpath.membership"); v == "" || v == before.decision.tag("warmpath.membership") {
		q.t.Errorf("membership %q as before", v)
	}
}

// unsampled: what the client does not trace is not in Jaeger. The sampled request
// after it is, so it would have been.
func (q *tracedRequests) unsampled(first byte, body []byte) {
	q.t.Helper()
	header, id, _ := traceparent(first, "00")
	mustServe(q.t, q.s, body, "traceparent", header)
	q.send(first+1, body)
	q.legs(first+1, 1, true)
	if traces, err := q.j.ask(q.t, "/api/traces/"+id, nil); !errors.Is(err, errNoTrace) && len(traces) != 0 {
		q.t.Errorf("Jaeger has %v of a trace that is not sampled (%v)", traces, err)
	}
}

// gone: without warmpath Envoy chooses, and its spans say so.
func (q *tracedRequests) gone(first byte, body []byte) {
	q.t.Helper()
	q.s.Warmpath.Kill()
	address, _ := q.send(first, body)
	l := q.legs(first, 1, false)
	wantTags(q.t, l.ingress, map[string]string{"warmpath.choices": "none"})
	wantTags(q.t, l.tries[0], map[string]string{"upstream_address": address})
}

// undecided: Envoy is not allowed to send the body that warmpath asks for, so it
// chooses by itself; the decision's span says that and why.
func undecided(t *testing.T, j *jaeger, first byte, body []byte) {
	t.Helper()
	q := startJaegered(t, j, prefixAware(2), testenv.Replace(t,
		"              - {request_body_mode: BUFFERED, response_header_mode: SEND, response_trailer_mode: SEND}\n", ""))
	address, _ := q.send(first, body)
	l := q.legs(first, 1, true)
	wantTags(t, l.decision, map[string]string{
		"warmpath.reason": "undecided", "warmpath.chosen": "", "warmpath.rank": "-1", "warmpath.problems": list([]string{"body_not_sent"}),
	})
	wantTags(t, l.ingress, map[string]string{"warmpath.choices": "none"})
	wantTags(t, l.tries[0], map[string]string{"upstream_address": address})
}
