package envoy

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are what an Envoy configuration depends on. The zero value is the shipped
// one.
type Options struct {
	Addresses
	// Pool names the cluster of the model servers; "" means [PoolCluster].
	Pool string
	// TenantHeader is hashed by Envoy's own choice, while warmpath is away; "" keeps
	// the shipped one.
	TenantHeader string
	// BodyLimit is request_body_buffer_limit of the routes, in bytes; 0 means [BodyLimit].
	BodyLimit int64
	// Body says how request bodies get to warmpath; "" means [BodyOnDemand].
	Body BodyMode
	// WithoutInspection sends warmpath no parts of responses, whatever it asks for.
	WithoutInspection bool
	// Endpoints, if it is not nil, are the model servers, "ip:port" each: they stand in
	// the configuration then, and nothing is fetched from warmpath's control plane.
	Endpoints []string
	// RequestsPerConnection is after how many requests Envoy closes a connection to a
	// model server of Endpoints; 0 is no limit. 1 is for engines that close connections
	// without a word.
	RequestsPerConnection uint32
	// HeaderSteering has Envoy read the choice from the header
	// x-gateway-destination-endpoint and not from metadata. It needs Endpoints: the
	// cluster that warmpath sends reads metadata.
	HeaderSteering bool
	// TLS, if it is not nil, secures the connections of Secured, "" for all.
	TLS *TLS
	// Secured are the clusters to which TLS is spoken; nil means both of warmpath's.
	Secured []string
	// Collector gets Envoy's spans, OTLP over gRPC, "host:port"; "" traces nothing.
	Collector string
	// Sampling is the share of requests traced of clients that have not decided it, in
	// percent, more than 0 and at most 100; 0 means 100.
	Sampling float64
}

// BodyMode says how request bodies get to warmpath.
type BodyMode string

// The body modes. docs/RATIONALE.md has what each does to requests.
const (
	// BodyOnDemand sends none unless warmpath asks, which it does for those that fit.
	BodyOnDemand BodyMode = "on-demand"
	// BodyNone sends none: warmpath decides by headers and load.
	BodyNone BodyMode = "none"
	// BodyBuffered sends every body, as a whole.
	BodyBuffered BodyMode = "buffered"
	// BodyFullDuplex streams every body through warmpath.
	BodyFullDuplex BodyMode = "full-duplex"
)

// BodyModes are all that can be configured.
func BodyModes() []BodyMode { return []BodyMode{BodyOnDemand, BodyNone, BodyBuffered, BodyFullDuplex} }

// Render returns bootstrap.yaml as the options want it, comments and all.
func Render(o Options) ([]byte, error) {
	if o.HeaderSteering && o.Endpoints == nil {
		return nil, fmt.Errorf("steering by header: the cluster that warmpath's control plane sends reads metadata only; it needs a cluster of Envoy's own, with its endpoints")
	}
	text, err := Bootstrap(o.Addresses)
	if err != nil {
		return nil, err
	}
	edits, err := o.edits()
	if err != nil {
		return nil, err
	}
	out, err := apply(string(text), edits)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		if out, err = o.secure(out); err != nil {
			return nil, err
		}
	}
	if o.Endpoints != nil {
		if out, err = o.own(out); err != nil {
			return nil, err
		}
	}
	if o.Collector == "" {
		return []byte(out), nil
	}
	traced, err := WithTracing([]byte(out), o.Collector)
	if err != nil {
		return nil, err
	}
	return WithSampling(traced, o.Sampling)
}

func (o Options) secure(text string) (string, error) {
	clusters := o.Secured
	if clusters == nil {
		clusters = []string{ExtProcCluster, XDSCluster}
	}
	secured, err := withTLS([]byte(text), *o.TLS, clusters)
	return string(secured), err
}

// edit replaces a text that must occur n times, or the file has changed under it.
type edit struct {
	old, new string
	n        int
}

func apply(text string, edits []edit) (string, error) {
	for _, e := range edits {
		if n := strings.Count(text, e.old); n != e.n {
			return "", fmt.Errorf("bootstrap.yaml: %q occurs %d times, want %d", e.old, n, e.n)
		}
		text = strings.ReplaceAll(text, e.old, e.new)
	}
	return text, nil
}

var (
	clusterName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,60}$`)
	headerName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
)

// truths are what one or the other YAML takes for a truth value.
var truths = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false)$`)

// scalar writes a text so that YAML reads just that, and not a number or a truth value:
// neither YAML 1.2, nor 1.1, whose names of truth values Envoy and Kubernetes take.
func scalar(text string) string {
	var read any
	if err := yaml.Unmarshal([]byte(text), &read); err == nil && read == text && !truths.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

// edits are the changes of single values.
func (o Options) edits() (edits []edit, err error) {
	if o.Pool != "" && o.Pool != PoolCluster {
		if !clusterName.MatchString(o.Pool) {
			return nil, fmt.Errorf("cluster %.80q: want 1..60 letters, digits, '.', '-', '_'", o.Pool)
		}
		edits = append(edits,
			edit{"cluster: " + PoolCluster + "\n", "cluster: " + scalar(o.Pool) + "\n", 1},
			edit{"cluster, " + PoolCluster + ", comes", "cluster, " + o.Pool + ", comes", 1})
	}
	const tenant = "header_name: x-amzn-sagemaker-prefix-aware-id"
	if o.TenantHeader != "" {
		if !headerName.MatchString(o.TenantHeader) {
			return nil, fmt.Errorf("tenant header %.80q: want the name of a header", o.TenantHeader)
		}
		edits = append(edits, edit{tenant, "header_name: " + scalar(o.TenantHeader), 2})
	}
	if o.BodyLimit != 0 {
		if o.BodyLimit < 1 || o.BodyLimit > math.MaxUint32 {
			return nil, fmt.Errorf("body limit %d: want 1..%d bytes", o.BodyLimit, uint32(math.MaxUint32))
		}
		limit := "request_body_buffer_limit: "
		edits = append(edits, edit{limit + strconv.Itoa(BodyLimit), limit + strconv.FormatInt(o.BodyLimit, 10), 2})
	}
	if o.HeaderSteering {
		edits = append(edits,
			edit{"[x-gateway-destination-endpoint, x-warmpath-pool]", "[x-warmpath-pool]", 1},
			edit{shippedRemoval, steeredRemoval, 1})
	}
	modes, err := o.bodyEdits()
	return append(edits, modes...), err
}

const (
	shippedRemoval = `                # The choice travels as metadata; the header is for gateways that read only that.
                request_headers_to_remove: [x-gateway-destination-endpoint]
`
	steeredRemoval = `                # The header x-gateway-destination-endpoint must not be removed here: that happens before
                # the endpoint is chosen, by that header. A client's own copy is removed further up.
`
	shippedMode = `                # No body unless warmpath asks for it, which it does for those that fit into the buffer.
                # BUFFERED here would refuse a larger one that arrives faster than warmpath's answer
                # to the headers; the streamed and partial modes repeat, truncate or hang bodies.
                request_body_mode: NONE
`
	shippedOverrides = `              allow_mode_override: true
              # What warmpath may ask for: the whole body of a request, intact in every failure. And in passing
              # the body of a response, of the share that inspection.share names; without this line of none.
              allowed_override_modes:
` + bufferedOverride + inspectionOverride
	bufferedOverride   = "              - {request_body_mode: BUFFERED, response_header_mode: SEND, response_trailer_mode: SEND}\n"
	inspectionOverride = "              - {request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND}\n"
)

// bodyEdits are the changes for the body mode, and of what warmpath may ask for.
func (o Options) bodyEdits() ([]edit, error) {
	mode, asked := shippedMode, bufferedOverride
	switch o.Body {
	case "", BodyOnDemand:
	case BodyNone:
		mode, asked = "                # warmpath decides by headers and load: it gets no body.\n                request_body_mode: NONE\n", ""
	case BodyBuffered:
		mode = `                # Every body. One above the buffer that arrives faster than warmpath's answer to the headers
                # is refused with 413: the mode "on-demand" has none of that.
                request_body_mode: BUFFERED
`
		asked = strings.Replace(bufferedOverride, "BUFFERED", "NONE", 1)
	case BodyFullDuplex:
		mode, asked = `                # Every body streams through warmpath, which keeps the beginning of it. This mode does not
                # fail open: while warmpath is away a request with a body gets 500. And nothing is retried.
                request_body_mode: FULL_DUPLEX_STREAMED
                request_trailer_mode: SEND
`, ""
	default:
		return nil, fmt.Errorf("body mode %.40q: want one of %v", o.Body, BodyModes())
	}
	inspected := inspectionOverride
	if o.WithoutInspection {
		inspected = ""
	}
	if mode == shippedMode && inspected != "" {
		return nil, nil
	}
	overrides := "              # What warmpath may ask for; every line has a combination of modes.\n              allow_mode_override: true\n              allowed_override_modes:\n" + asked + inspected
	if asked+inspected == "" { // an empty list would allow everything
		overrides = "              allow_mode_override: false\n"
	}
	return []edit{{shippedMode, mode, 1}, {shippedOverrides, overrides, 1}}, nil
}

// WithSampling sets the share of requests that is traced of clients that have not
// decided it, in what [WithTracing] returned: more than 0 and at most 100 percent; 0
// means 100.
func WithSampling(traced []byte, percent float64) ([]byte, error) {
	if percent < 0 || percent > 100 || math.IsNaN(percent) {
		return nil, fmt.Errorf("sampling %v: want a share of 0..100 percent", percent)
	}
	parts := math.Round(percent * 10_000) // of a million
	if parts == 0 || parts == 1_000_000 {
		if percent > 0 && parts == 0 {
			return nil, fmt.Errorf("sampling %v: want at least 0.0001 percent", percent)
		}
		return traced, nil
	}
	const whole = "{numerator: 100, denominator: HUNDRED}"
	text, err := apply(string(traced), []edit{{whole, fmt.Sprintf("{numerator: %.0f, denominator: MILLION}", parts), 1}})
	return []byte(text), err
}
