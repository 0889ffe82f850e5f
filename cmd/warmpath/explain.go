package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
)

const explainUsage = `usage: warmpath explain [flags] FILE [FILE2]

Says what warmpath would do with a request body, by the code that the server
runs. FILE is a body as the client sends it; - is standard input. With two
files it also says where their texts part.

`

// explainOptions are the flags of explain.
type explainOptions struct {
	json, showText bool
	path           string
	headers        headerFlags
	prefixLength   lengthFlag
	endpoints      string
	config         string
}

// headerFlags collects repeated -H flags.
type headerFlags []string

// String implements flag.Value.
func (h *headerFlags) String() string { return strings.Join(*h, ", ") }

// Set implements flag.Value.
func (h *headerFlags) Set(s string) error {
	name, _, ok := strings.Cut(s, ":")
	if !ok || strings.TrimSpace(name) == "" {
		return fmt.Errorf("header %q: want 'name: value'", s)
	}
	*h = append(*h, s)
	return nil
}

func (h headerFlags) get(name string) string {
	for _, line := range h {
		if key, value, _ := strings.Cut(line, ":"); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// lengthFlag is a prefix length: 0 for none given, or route.AutoPrefixLength.
type lengthFlag int

// String implements flag.Value.
func (l *lengthFlag) String() string { return "" }

// Set implements flag.Value.
func (l *lengthFlag) Set(s string) error {
	if s == "auto" {
		*l = route.AutoPrefixLength
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want 1 or more characters, or auto")
	}
	*l = lengthFlag(n)
	return nil
}

func explain(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var o explainOptions
	flags := flag.NewFlagSet("warmpath explain", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.BoolVar(&o.showText, "show-text", false, "print the canonical text that the key covers")
	flags.StringVar(&o.path, "path", "/v1/chat/completions", "request `path`")
	flags.Var(&o.headers, "H", "request `header`, 'name: value'; may be repeated")
	flags.Var(&o.prefixLength, "prefix-length", "`characters` (bytes on native invoke paths) that make the key, 1 or more, or auto (default auto, or the configuration's)")
	flags.StringVar(&o.endpoints, "endpoints", "", "comma-separated `host:port` list to choose from (default the configuration's)")
	flags.StringVar(&o.config, "config", "", "warmpath.yaml `file` to take strategy, lengths, tenant header and endpoints from")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, explainUsage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() < 1 || flags.NArg() > 2:
		return usageError{fmt.Errorf("explain: want one or two body files, got %d arguments", flags.NArg())}
	}
	e, err := newExplainer(o)
	if err != nil {
		return usageError{err}
	}
	var bodies []explanation
	for _, file := range flags.Args() {
		body, err := readBody(file, stdin)
		if err != nil {
			return usageError{err}
		}
		bodies = append(bodies, e.explain(file, body))
	}
	if o.json {
		return printJSON(stdout, bodies)
	}
	return printWords(stdout, bodies)
}

func readBody(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// explainer decides as a server would that has no load and knows of no request
// before.
type explainer struct {
	options      explainOptions
	policy       route.Policy
	tenantHeader string
	inflate      int64
	bodyLimit    int64
	set          fleet.Set
}

func newExplainer(o explainOptions) (*explainer, error) {
	c := config.Default()
	set := fleet.Set{}
	p := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.DefaultPrefixLength}
	if o.config != "" {
		var err error
		if c, set, err = loadConfig(o.config); err != nil {
			return nil, err
		}
		p = policy(c.RoutingConfig)
	}
	if o.prefixLength != 0 {
		p.PrefixLength = int(o.prefixLength)
	}
	if o.endpoints != "" {
		var err error
		if set, err = parseEndpoints(o.endpoints); err != nil {
			return nil, err
		}
	}
	if o.endpoints == "" && c.Membership.Kubernetes.Service != "" {
		return nil, fmt.Errorf("explain: the endpoints of %s are those of a Service: name them with -endpoints", o.config)
	}
	return &explainer{
		options: o, policy: p, tenantHeader: c.Tenant.Header, inflate: c.Limits.InflateBytes,
		bodyLimit: c.Limits.RequestBodyBytes, set: set,
	}, nil
}

func parseEndpoints(list string) (fleet.Set, error) {
	var endpoints []fleet.Endpoint
	for _, s := range strings.Split(list, ",") {
		address, err := fleet.ParseAddress(strings.TrimSpace(s))
		if err != nil {
			return fleet.Set{}, fmt.Errorf("explain: -endpoints: %w", err)
		}
		endpoints = append(endpoints, fleet.Endpoint{Address: address, Weight: 1})
	}
	set, _ := fleet.NewSet(endpoints)
	return set, nil
}

// comparedChars is how far the texts of two bodies are compared.
const comparedChars = 1 << 20

func (e *explainer) explain(file string, body []byte) explanation {
	head := prefix.Head{
		Path: e.options.path, ContentType: e.options.headers.get("content-type"),
		ContentEncoding: e.options.headers.get("content-encoding"), TenantHeader: e.options.headers.get(e.tenantHeader),
	}
	unread := extproc.Unread(e.headerMap(body), e.bodyLimit)
	var scanner prefix.Scanner
	result := e.scan(&scanner, head, body, unread, e.policy.ReadLength())
	x := explanation{
		File: file, API: result.API.String(), Kind: result.Kind.String(),
		TextChars: result.Chars, PrefixLength: length(e.policy), Depth: result.Chars,
		Tenant: result.Tenant, TenantSource: result.TenantSource.String(),
		Model: result.Model, Adapter: result.Adapter, CacheSalt: result.CacheSalt,
		Strategy: e.policy.Strategy.String(), Homes: []string{},
	}
	for name := range result.Notes.All {
		x.Notes = append(x.Notes, name)
	}
	if e.options.showText {
		text := strings.ToValidUTF8(scanner.Text(), "\uFFFD")
		x.Text = &text
	}
	e.decide(&x, result)
	if unread != extproc.NoProblem {
		x.Notes = append(x.Notes, unread.String())
	}
	e.scan(&scanner, head, body, extproc.NoProblem, comparedChars)
	x.whole = scanner.Text()
	return x
}

// headerMap is the request's headers as Envoy would send them.
func (e *explainer) headerMap(body []byte) *corev3.HeaderMap {
	m := &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: ":path", RawValue: []byte(e.options.path)}}}
	for _, line := range e.options.headers {
		name, value, _ := strings.Cut(line, ":")
		m.Headers = append(m.Headers, &corev3.HeaderValue{
			Key: strings.ToLower(strings.TrimSpace(name)), RawValue: []byte(strings.TrimSpace(value)),
		})
	}
	if e.options.headers.get("transfer-encoding") == "" && e.options.headers.get("content-length") == "" {
		m.Headers = append(m.Headers, &corev3.HeaderValue{Key: "content-length", RawValue: []byte(strconv.Itoa(len(body)))})
	}
	return m
}

func (e *explainer) scan(s *prefix.Scanner, head prefix.Head, body []byte, unread extproc.Problem, length int) prefix.Result {
	s.Reset(head, prefix.Options{PrefixLength: length, MaxInflate: e.inflate})
	if unread == extproc.NoProblem {
		s.Feed(body)
	}
	return s.Finish(true)
}

// decide fills in what a server would choose.
func (e *explainer) decide(x *explanation, result prefix.Result) {
	keyed := result.Kind != prefix.None
	// A table of its own for each body: a table remembers what it has decided.
	table := route.NewTable(e.set, e.policy, load.NewTracker())
	decision, slot := table.Pick(route.Request{Key: result.Key, Keyed: keyed, Levels: result.Levels, Chars: result.Chars})
	slot.Release()
	x.Reason = decision.Reason.String()
	if keyed {
		key := result.Key
		if decision.Depth > 0 {
			key, x.Depth = decision.Key, decision.Depth
		}
		x.Key = fmt.Sprintf("%016x", key)
		if e.policy.Strategy != route.KVAware { // which has no homes
			x.Homes = table.Order(key)
		}
		x.Chosen = decision.Chosen
	} else if decision.Reason == route.NoEndpoints {
		x.Reason = route.NoKey.String()
	}
}
