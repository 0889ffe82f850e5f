package main

import (
	"fmt"
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

// explainer decides as a server would that has no load and knows of no request
// before.
type explainer struct {
	options explainOptions
	config  config.Config
	pools   *extproc.Pools
}

func newExplainer(o explainOptions) (*explainer, error) {
	e := &explainer{options: o, config: config.Default()}
	e.config.RoutingConfig.RoutingStrategy = config.PrefixAware
	sets := make([]fleet.Set, 1)
	if o.config != "" {
		var err error
		if e.config, sets, err = loadConfig(o.config); err != nil {
			return nil, err
		}
	}
	if o.endpoints != "" {
		set, err := parseEndpoints(o.endpoints)
		if err != nil {
			return nil, err
		}
		for i := range sets {
			sets[i] = set
		}
	}
	for _, pool := range append([]config.NamedPool{{Pool: e.config.Pool}}, e.config.Pools...) {
		if o.endpoints == "" && pool.Membership.Kubernetes.Service != "" {
			return nil, fmt.Errorf("explain: the endpoints of %s are those of a Service: name them with -endpoints", o.config)
		}
	}
	pools := []*extproc.Pool{e.pool(config.NamedPool{Pool: e.config.Pool}, sets[0])}
	for i, named := range e.config.Pools {
		pools = append(pools, e.pool(named, sets[i+1]))
	}
	var err error
	e.pools, err = extproc.NewPools(pools[0], pools[1:]...)
	return e, err
}

func (e *explainer) pool(c config.NamedPool, set fleet.Set) *extproc.Pool {
	p := policy(c.RoutingConfig)
	if e.options.prefixLength != 0 {
		p.PrefixLength = int(e.options.prefixLength)
	}
	router := route.NewRouter(p)
	router.SetMembership(set)
	return &extproc.Pool{Name: c.Name, Cluster: c.Cluster.Name, Router: router, Models: c.Models, Components: c.Components}
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
	var scanner prefix.Scanner
	pool, unread, result := e.read(&scanner, body)
	by := pool.Router.Table().Policy()
	x := explanation{
		File: file, API: result.API.String(), Kind: result.Kind.String(), Pool: pool.Name,
		TextChars: result.Chars, PrefixLength: length(by), Depth: result.Chars,
		Tenant: result.Tenant, TenantSource: result.TenantSource.String(),
		Model: result.Model, Adapter: result.Adapter, CacheSalt: result.CacheSalt,
		Strategy: by.Strategy.String(), Homes: []string{},
	}
	for name := range result.Notes.All {
		x.Notes = append(x.Notes, name)
	}
	if e.options.showText {
		text := strings.ToValidUTF8(scanner.Text(), "\uFFFD")
		x.Text = &text
	}
	x.decide(pool.Router.Membership(), by, result)
	if unread != extproc.NoProblem {
		x.Notes = append(x.Notes, unread.String())
	}
	e.scan(&scanner, e.head(), body, extproc.NoProblem, comparedChars)
	x.whole = scanner.Text()
	return x
}

// read finds a body's pool and reads of it what the pool's policy looks at. The result is
// valid until the scanner is used again.
func (e *explainer) read(scanner *prefix.Scanner, body []byte) (*extproc.Pool, extproc.Problem, prefix.Result) {
	unread := extproc.Unread(e.headerMap(body), e.config.Limits.RequestBodyBytes)
	_, pathModel := prefix.Classify(e.options.path)
	model := e.scan(scanner, e.head(), body, unread, 1).Model
	pool := e.pools.Of(e.options.headers.get(e.config.Component.Header), pathModel, model)
	return pool, unread, e.scan(scanner, e.head(), body, unread, max(pool.Router.Table().Policy().ReadLength(), 1))
}

// head is the request's headers that the text depends on.
func (e *explainer) head() prefix.Head {
	headers := e.options.headers
	return prefix.Head{
		Path: e.options.path, ContentType: headers.get("content-type"),
		ContentEncoding: headers.get("content-encoding"), TenantHeader: headers.get(e.config.Tenant.Header),
	}
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
	s.Reset(head, prefix.Options{PrefixLength: length, MaxInflate: e.config.Limits.InflateBytes})
	if unread == extproc.NoProblem {
		s.Feed(body)
	}
	return s.Finish(true)
}

// decide fills in what a server would choose.
func (x *explanation) decide(set fleet.Set, by route.Policy, result prefix.Result) {
	keyed := result.Kind != prefix.None
	// A table of its own for each body: a table remembers what it has decided.
	table := route.NewTable(set, by, load.NewTracker())
	decision, slot := table.Pick(route.Request{Key: result.Key, Keyed: keyed, Levels: result.Levels, Chars: result.Chars})
	slot.Release()
	x.Reason = decision.Reason.String()
	if keyed {
		key := result.Key
		if decision.Depth > 0 {
			key, x.Depth = decision.Key, decision.Depth
		}
		x.Key = fmt.Sprintf("%016x", key)
		if by.Strategy != route.KVAware { // which has no homes
			x.Homes = table.Order(key)
		}
		x.Chosen = decision.Chosen
	} else if decision.Reason == route.NoEndpoints {
		x.Reason = route.NoKey.String()
	}
}
