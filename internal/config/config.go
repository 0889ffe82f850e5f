// Package config reads warmpath.yaml and the membership file: strictly, with
// every problem of a file at once, into plain values whose defaults are
// [Default]. docs/CONFIG.md is the manual of both formats.
package config

import (
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/route"
)

// Problem is one fault of a file, with its line, path and value.
type Problem = strict.Problem

// Problems is every fault of a file; as an error it lists them, one a line.
type Problems = strict.Problems

// Config is a complete, checked configuration.
type Config struct {
	Listen Listen `yaml:"listen"`
	TLS    TLS    `yaml:"tls"`
	// Pool is the default pool: of the requests that belong to no other.
	Pool `yaml:",inline"`
	// Pools are the others.
	Pools     []NamedPool `yaml:"pools,omitempty"`
	Component Component   `yaml:"component"`
	// Routers is how many warmpath processes, this one included, route to the same
	// endpoints without knowing of each other's requests, 1 to MaxRouters.
	Routers int `yaml:"routers"`
	// Gossip lets them know of each other's.
	Gossip Gossip `yaml:"gossip"`
	// Zone is where this process is: endpoints there are preferred; empty when the
	// zones do not matter.
	Zone      string        `yaml:"zone"`
	Policies  []NamedPolicy `yaml:"policies"`
	Tenant    Tenant        `yaml:"tenant"`
	Limits    Limits        `yaml:"limits"`
	Retry     Retry         `yaml:"retry"`
	Tracing   Tracing       `yaml:"tracing"`
	Recording Recording     `yaml:"recording"`
	// Inspection reads what the engines answer.
	Inspection Inspection `yaml:"inspection"`
	// EngineMetrics reads the engines' own metrics.
	EngineMetrics EngineMetrics `yaml:"engineMetrics"`
	// Decision tells of the decisions.
	Decision Decision `yaml:"decision"`
	Log      Log      `yaml:"log"`
}

// Listen holds the addresses to serve on, each "ip:port", "localhost:port",
// ":port" for every interface, or "unix:" and an absolute path. Port 0 takes a
// free one.
type Listen struct {
	// ExtProc serves Envoy's external processing and grpc.health.v1.
	ExtProc string `yaml:"extProc"`
	// XDS serves the control plane; empty when Envoy has its endpoints from
	// somewhere else.
	XDS string `yaml:"xds"`
	// Admin serves HTTP for operators; empty for none.
	Admin string `yaml:"admin"`
	// SocketMode says who may connect to the Unix sockets: 0600, 0660 or 0666.
	SocketMode SocketMode `yaml:"socketMode"`
}

// SocketMode are the permissions of a Unix socket.
type SocketMode uint32

// Strategy names how a host is chosen, in the words of SageMaker's RoutingConfig.
type Strategy string

// The strategies.
const (
	Random                   Strategy = "RANDOM"
	LeastOutstandingRequests Strategy = "LEAST_OUTSTANDING_REQUESTS"
	PrefixAware              Strategy = "PREFIX_AWARE"
	KVAware                  Strategy = "KV_AWARE"
)

// RoutingConfig is SageMaker's block of that name.
type RoutingConfig struct {
	RoutingStrategy Strategy                 `yaml:"routingStrategy"`
	PrefixAware     PrefixAwareRoutingConfig `yaml:"prefixAwareRoutingConfig"`
}

// PrefixAwareRoutingConfig has an effect only while the strategy is PrefixAware; the
// threshold also with KVAware.
type PrefixAwareRoutingConfig struct {
	// PrefixLength is how much of a prompt decides, route.MinPrefixLength to
	// route.MaxPrefixLength: characters of its text, bytes on native invoke paths;
	// or route.AutoPrefixLength, "auto" in the file.
	PrefixLength Length `yaml:"prefixLength"`
	// ConcurrencyThreshold is how many requests may be outstanding on a host
	// before the next host is taken.
	ConcurrencyThreshold Threshold `yaml:"concurrencyThreshold"`
}

// Length is a number of characters, or AutoLength.
type Length int

// AutoLength finds the length for each prefix; "auto" in the file.
const AutoLength Length = route.AutoPrefixLength

// Threshold is a number of outstanding requests on one host,
// route.MinConcurrencyThreshold to route.MaxConcurrencyThreshold, or AutoThreshold.
type Threshold int

// AutoThreshold derives the bound from the load of the fleet; "auto" in the file.
const AutoThreshold Threshold = route.AutoConcurrencyThreshold

// NamedPolicy is a policy that Envoy's configuration may name.
type NamedPolicy struct {
	Name          string `yaml:"name"`
	RoutingConfig `yaml:",inline"`
}

// Health says when an endpoint is given no requests although it is a member.
type Health struct {
	// Path is what is requested of every endpoint; empty probes nothing.
	Path string `yaml:"path"`
	// Interval is the time between two probes, Timeout how long one may take.
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
	// FailedProbes in a row make an endpoint unhealthy, GoodProbes healthy again.
	FailedProbes int `yaml:"failedProbes"`
	GoodProbes   int `yaml:"goodProbes"`
	// FailedRequests without a success between them make it unhealthy too; 0
	// means never.
	FailedRequests int `yaml:"failedRequests"`
	// SlowStart is how long the share of an endpoint rises that has joined or come
	// back; 0 gives it all at once.
	SlowStart time.Duration `yaml:"slowStart"`
}

// Tenant says how the tenant of a request is known.
type Tenant struct {
	// Header is the lower-case name of the request header with the tenant.
	Header string `yaml:"header"`
}

// Membership says where the endpoints come from: exactly one of Static, File, DNS,
// API and Kubernetes.
type Membership struct {
	// Static is nil unless the endpoints stand in the configuration itself.
	Static []fleet.Endpoint
	// File is the path of the membership file as written; see [Membership.Path].
	File string
	// Kubernetes is the source when it names a Service.
	Kubernetes Kubernetes
	// DNS is nil unless they are the answers to a query.
	DNS *DNS
	// API is nil unless they are given over HTTP, on the admin listener.
	API *API
	// DrainTimeout is how long an endpoint that left the list may finish its
	// requests before it is taken from Envoy.
	DrainTimeout time.Duration
}

// Kind is the key under which the source stands in the configuration.
func (m Membership) Kind() string {
	switch {
	case m.Kubernetes.Service != "":
		return "kubernetes"
	case m.File != "":
		return "file"
	case m.DNS != nil:
		return "dns"
	case m.API != nil:
		return "api"
	}
	return "static"
}

// Path is where the membership file is: relative to the folder of the
// configuration file. Empty when the endpoints come from elsewhere.
func (m Membership) Path(configPath string) string { return beside(configPath, m.File) }

// Cluster is the pool as Envoy is told of it over xDS.
type Cluster struct {
	Name           string        `yaml:"name"`
	ConnectTimeout time.Duration `yaml:"connectTimeout"`
	// MaxRequestsPerConnection is after how many requests Envoy closes a connection to an
	// endpoint; 0 for no limit.
	MaxRequestsPerConnection uint32 `yaml:"maxRequestsPerConnection"`
}

// Limits bound the memory one request can take.
type Limits struct {
	// RequestBodyBytes is the request_body_buffer_limit of the Envoy route.
	RequestBodyBytes int64 `yaml:"requestBodyBytes"`
	// TotalBodyBytes is how much of bodies all requests together may have asked for
	// and not been decided on.
	TotalBodyBytes int64 `yaml:"totalBodyBytes"`
	// Requests is how many requests may be served at once.
	Requests int64 `yaml:"requests"`
	// InflateBytes is how much of a compressed body is read, after inflation.
	InflateBytes int64 `yaml:"inflateBytes"`
}

// Retry says when Envoy tries another host; it is switched on request by request.
type Retry struct {
	// Conditions are values of x-envoy-retry-on; none switches retries off.
	Conditions []RetryCondition `yaml:"conditions,flow"`
	// Attempts is how many times a request is tried again, 0 to 5.
	Attempts int `yaml:"attempts"`
}

// Tracing exports a span for each decision.
type Tracing struct {
	// OTLPEndpoint is the host:port of a collector that speaks OTLP over gRPC;
	// empty exports nothing.
	OTLPEndpoint string `yaml:"otlpEndpoint"`
	// Insecure leaves TLS out.
	Insecure bool `yaml:"insecure"`
	// SampleRatio is the share of requests traced, 0 to 1, where the caller has
	// not decided that.
	SampleRatio float64 `yaml:"sampleRatio"`
}

// Log says what is written to standard error, and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level LogLevel `yaml:"level"`
	// Format is text or json.
	Format LogFormat `yaml:"format"`
}

// LogLevel is the lowest severity that is written.
type LogLevel string

// LogFormat is how a log line looks.
type LogFormat string

// Levels and formats of the log.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"

	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// MaxRouters bounds Config.Routers.
const MaxRouters = 1000

// Default is the configuration of an empty file, which only lacks a membership.
func Default() Config {
	return Config{
		Listen:     Listen{ExtProc: "127.0.0.1:9002", XDS: "127.0.0.1:9003", Admin: "127.0.0.1:9004", SocketMode: 0o660},
		Pool:       defaultPool(),
		Component:  Component{Header: "x-amzn-sagemaker-inference-component"},
		Routers:    1,
		Gossip:     Gossip{Join: []string{}},
		Tenant:     Tenant{Header: "x-amzn-sagemaker-prefix-aware-id"},
		Limits:     Limits{RequestBodyBytes: 4 << 20, TotalBodyBytes: 256 << 20, Requests: 50_000, InflateBytes: 4 << 20},
		Retry:      Retry{Conditions: []RetryCondition{ConnectFailure, RefusedStream, Reset}, Attempts: 2},
		Tracing:    Tracing{Insecure: true, SampleRatio: 1},
		Recording:  Recording{SampleRatio: 1, FileBytes: 64 << 20, Files: 8},
		Inspection: Inspection{Share: 0.01},
		Log:        Log{Level: LogInfo, Format: LogText},
	}
}

// Load reads and decodes a configuration file. The error is what kept the file
// from being read, or [Problems].
func Load(path string) (Config, error) {
	data, err := watch.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, problems := Decode(path, data)
	return c, problems.Err()
}
