package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/doctor"
	"github.com/warmpath/warmpath/internal/live/view"
)

const (
	probeAgent = "warmpath-doctor"
	// probePrompts are sent twice each.
	probePrompts = 3
	// probeText is about 600 tokens, which make some blocks in the cache of any engine.
	probeText   = 2400
	probeAnswer = 1 << 20
	// probeSeen bounds how long warmpath may take to tell of a probe that has ended.
	probeSeen, probeTick = 5 * time.Second, 100 * time.Millisecond
)

// probeOptions say what the probes ask for.
type probeOptions struct {
	path, model string
	timeout     time.Duration
	headers     headerFlags
}

func (o *probeOptions) register(flags *flag.FlagSet) {
	flags.StringVar(&o.path, "path", "/v1/chat/completions", "`path` of the probes of --live")
	flags.StringVar(&o.model, "model", "", "`model` that they ask for (default the first that GET /v1/models lists)")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how `long` one may take")
	flags.Var(&o.headers, "H", "`header` of theirs, 'name: value', such as an authorization; may be repeated")
}

// probeCounts are what became of the probes.
type probeCounts struct {
	Sent    int `json:"sent"`
	Decided int `json:"decided"`
	Served  int `json:"servedAsDecided"`
	// Again are those that were sent a second time; of them Same were served by who had
	// served the first, and of these Cached found it in the cache.
	Again  int `json:"repeated"`
	Same   int `json:"repeatedAtSameServer"`
	Cached int `json:"repeatedCached"`
	// closing: an engine that closes connections without a word has answered.
	closing bool
}

// String is the counts in a line.
func (c *probeCounts) String() string {
	return fmt.Sprintf("%d probes: %d decided by warmpath, %d served where it decided; %d sent again, %d of them to the same server, of which %d found their prompt in the cache",
		c.Sent, c.Decided, c.Served, c.Again, c.Same, c.Cached)
}

// probing sends probes through a gateway and asks warmpath about each.
type probing struct {
	probeOptions
	gateway, warmpath *client
	run               string // marks the probes of one run
	counts            probeCounts
	found             []doctor.Finding
}

// run sends a few small requests and returns what is wrong with what became of them.
func (o probeOptions) run(ctx context.Context, gateway string, server clientOptions) ([]doctor.Finding, *probeCounts, error) {
	p := &probing{probeOptions: o, run: rand.Text()}
	var err error
	named := (&url.URL{Host: o.headers.get("host")}).Hostname()
	if p.gateway, err = (clientOptions{from: gateway, ca: server.ca, serverName: named, flag: "--live"}).open(); err != nil {
		return nil, nil, usageError{err}
	}
	defer p.gateway.close()
	p.gateway.http.Timeout = o.timeout
	if transport, ok := p.gateway.http.Transport.(*http.Transport); ok {
		transport.ResponseHeaderTimeout = o.timeout
	}
	if p.warmpath, err = server.open(); err != nil {
		return nil, nil, usageError{err}
	}
	defer p.warmpath.close()
	if err := p.all(ctx); err != nil {
		return nil, nil, err
	}
	return p.found, &p.counts, nil
}

func (p *probing) all(ctx context.Context) error {
	if err := p.warmpath.ask(ctx, http.MethodGet, "/api/live?seconds=0&decisions=0", nil, new(view.Snapshot)); err != nil {
		return err
	}
	if p.model == "" {
		p.model = p.firstModel(ctx)
	}
	for prompt := range probePrompts {
		var first earlier
		for again := range 2 {
			answer, err := p.send(ctx, prompt, again)
			p.counts.Again += again
			if p.counts.Sent++; err != nil {
				p.report("probe-failed", "%s %s: %v", http.MethodPost, p.path, err)
				return nil // so would the others
			}
			served, err := p.decided(ctx, answer)
			if err != nil || len(p.found) > 0 && p.counts.Decided == 0 {
				return err // warmpath sees none of them
			}
			if again == 0 {
				first = earlierAt(ctx, served)
			} else if served != "" && served == first.served { // what another has cached says nothing
				p.judge(ctx, answer, first)
			}
		}
	}
	if p.counts.Same == 0 {
		p.report("cache-unasked", "none of the %d probes that were sent again is known to have gone to the server of the first", p.counts.Again)
	}
	return nil
}

func (p *probing) report(id, format string, args ...any) {
	f := doctor.Named(id).Finding(fmt.Sprintf(format, args...))
	f.File = p.gateway.base
	p.found = append(p.found, f)
}

// probe is what the gateway answered.
type probe struct {
	// requestID is for people to search by, in so far as gateways keep it; id is
	// extproc.ProbeHeader's.
	requestID, id string
	// cached are the prompt's tokens that the engine says were in its cache, nil if it
	// does not say.
	cached *int
}

// send sends a prompt of its own.
func (p *probing) send(ctx context.Context, prompt, again int) (probe, error) {
	a := probe{requestID: fmt.Sprintf("doctor-%.12s-%d-%d", p.run, prompt, again), id: probeID()}
	text := fmt.Sprintf("Probe %d of warmpath doctor, run %s. ", prompt, p.run)
	text += strings.Repeat("Nothing is to be done here. ", probeText/28)
	fields := map[string]any{"model": p.model, "max_tokens": 1, "stream": false}
	if path, _, _ := strings.Cut(p.path, "?"); strings.HasSuffix(path, "/completions") && !strings.HasSuffix(path, "/chat/completions") {
		fields["prompt"] = text // and nothing else: some engines refuse fields that they do not know
	} else {
		fields["messages"] = []map[string]string{{"role": "user", "content": text}}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return a, err
	}
	r, err := p.request(ctx, http.MethodPost, p.path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", a.requestID)
	r.Header.Set(extproc.ProbeHeader, a.id)
	answer, err := p.gateway.http.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return a, err
	}
	defer answer.Body.Close()
	p.counts.closing = p.counts.closing || strings.Contains(strings.ToLower(answer.Header.Get("Server")), "llama.cpp")
	if answer.StatusCode/100 != 2 {
		return a, errors.New(statusOf(answer))
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, probeAnswer))
	if err != nil {
		return a, fmt.Errorf("%s: read the answer: %w", statusOf(answer), err)
	}
	a.cached = toldCached(data)
	return a, nil
}

// probeID returns an id that nobody guesses.
func probeID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func (p *probing) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.gateway.base+path, body)
	if err != nil {
		return nil, err
	}
	for _, line := range p.headers {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	r.Host = p.headers.get("host") // which net/http does not take from the headers
	r.Header.Set("User-Agent", probeAgent)
	return r, nil
}

// toldCached reads an OpenAI usage object, nil if it tells nothing of the cache.
func toldCached(answer []byte) *int {
	var a struct {
		Usage struct {
			Details struct {
				Cached *int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if json.Unmarshal(answer, &a) != nil {
		return nil
	}
	return a.Usage.Details.Cached
}

// firstModel is the first model that the gateway lists, "probe" if it lists none.
func (p *probing) firstModel(ctx context.Context) string {
	const otherwise = "probe"
	r, err := p.request(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return otherwise
	}
	answer, err := p.gateway.http.Do(r)
	if err != nil {
		return otherwise
	}
	defer answer.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if json.NewDecoder(io.LimitReader(answer.Body, probeAnswer)).Decode(&list) != nil || len(list.Data) == 0 {
		return otherwise
	}
	return list.Data[0].ID
}
