package envoy

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed istio.yaml
var istio string

// IstioRoute is the name of the VirtualService's route in what [Istio] returns, by
// which the EnvoyFilter knows it.
const IstioRoute = "warmpath"

// IstioOptions are the names that [Istio] writes. The zero value of a field keeps
// the shipped one.
type IstioOptions struct {
	// GatewayNamespace is where the pods of the ingress gateway run, and
	// GatewayLabels are labels that they have and other pods there have not.
	GatewayNamespace string            // shipped: istio-system
	GatewayLabels    map[string]string // shipped: istio: ingressgateway
	// GatewayPort is the port of the gateway's Service for plain HTTP, 1..65535.
	GatewayPort int // shipped: 80
	// Host is the name that clients use; "*.example.com" is any below that, "*" any.
	Host string // shipped: llm.example.com
	// Namespace is where warmpath and the model servers run.
	Namespace string // shipped: llm
	// Warmpath is the Service of warmpath, WarmpathPort its port of ext_proc.
	Warmpath     string // shipped: warmpath
	WarmpathPort int    // shipped: 9002
	// Models is the Service of the model servers, ModelsPort its port.
	Models     string // shipped: llama
	ModelsPort int    // shipped: 8000
	// TenantHeader is hashed by Envoy's own choice, while warmpath is away.
	TenantHeader string // shipped: x-amzn-sagemaker-prefix-aware-id
	// BodyLimit is request_body_buffer_limit of the route, in bytes, 0..4294967295.
	BodyLimit int64 // shipped: BodyLimit
	// RequestsPerConnection is after how many requests the gateway closes a connection to
	// a model server; 0 is no limit. 1 is for engines that close connections without a word.
	RequestsPerConnection uint32
	// WithoutInspection sends warmpath no parts of responses, whatever it asks for.
	WithoutInspection bool
}

// Istio returns istio.yaml with the given names in the place of the shipped ones,
// comments and all: the objects that put warmpath behind an ingress gateway of
// Istio. The error names the option that is no such name, and its value.
func Istio(o IstioOptions) ([]byte, error) {
	shipped := IstioOptions{
		"istio-system",
		map[string]string{"istio": "ingressgateway"},
		80, "llm.example.com",
		"llm", "warmpath", 9002, "llama", 8000,
		"x-amzn-sagemaker-prefix-aware-id", BodyLimit,
		0, false,
	}
	o = o.or(shipped)
	if err := o.validate(); err != nil {
		return nil, err
	}
	from, to := shipped.places(), o.places()
	// All at once: what is wanted in one place may be what is shipped in another.
	pairs := make([]string, 0, 2*len(from))
	for i, place := range from {
		if n := strings.Count(istio, place.text); n != place.times {
			return nil, fmt.Errorf("istio.yaml: %q occurs %d times, want %d", place.text, n, place.times)
		}
		pairs = append(pairs, place.text, to[i].text)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(istio)), nil
}

// or returns o with the fields of other where it has none.
func (o IstioOptions) or(other IstioOptions) IstioOptions {
	if len(o.GatewayLabels) == 0 {
		o.GatewayLabels = other.GatewayLabels
	}
	for _, field := range []struct{ mine, other *string }{
		{&o.GatewayNamespace, &other.GatewayNamespace},
		{&o.Host, &other.Host},
		{&o.Namespace, &other.Namespace},
		{&o.Warmpath, &other.Warmpath},
		{&o.Models, &other.Models},
		{&o.TenantHeader, &other.TenantHeader},
	} {
		if *field.mine == "" {
			*field.mine = *field.other
		}
	}
	for _, field := range []struct{ mine, other *int }{
		{&o.GatewayPort, &other.GatewayPort},
		{&o.WarmpathPort, &other.WarmpathPort},
		{&o.ModelsPort, &other.ModelsPort},
	} {
		if *field.mine == 0 {
			*field.mine = *field.other
		}
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = other.BodyLimit
	}
	return o
}

// place is a text of istio.yaml that depends on the options.
type place struct {
	text  string
	times int
}

// places are all of them, one that contains another before it.
func (o IstioOptions) places() []place {
	models, warmpath := o.Models+"."+o.Namespace+".svc.cluster.local", o.Warmpath+"."+o.Namespace+".svc.cluster.local"
	return []place{
		{fmt.Sprintf("host: %s, port: {number: %d}", models, o.ModelsPort), 1},
		{fmt.Sprintf("service: %s, portNumber: %d", models, o.ModelsPort), 1},
		{"host: " + models + "\n", 1},
		{fmt.Sprintf("outbound|%d||%s", o.WarmpathPort, warmpath), 1},
		{fmt.Sprintf("service: %s, portNumber: %d", warmpath, o.WarmpathPort), 1},
		{"host: " + warmpath + "\n", 1},
		{"  name: " + o.Models + "\n  namespace: " + o.Namespace + "\n", 2},
		{"  name: " + o.Warmpath + "\n  namespace: " + o.Namespace + "\n", 2},
		{"  namespace: " + o.Namespace + "\n", 5},
		{"{app: " + o.Models + "}", 1},
		{fmt.Sprintf("port: %d, targetPort: %[1]d", o.ModelsPort), 1},
		{fmt.Sprintf("port: %d, targetPort: ext-proc", o.WarmpathPort), 1},
		{"{number: " + strconv.Itoa(o.GatewayPort) + ", name: http,", 1},
		{`"` + o.Host + `"`, 2},
		{": " + labels(o.GatewayLabels) + "\n", 2},
		{"  namespace: " + o.GatewayNamespace + "\n", 2},
		{"gateways: [" + o.GatewayNamespace + "/", 1},
		{"header_name: " + scalar(o.TenantHeader) + "}", 1},
		{"connectionPool: {tcp: {connectTimeout: 1s}" + o.connections() + "}\n", 1},
		{o.modes(), 1},
		{fmt.Sprintf("request_body_buffer_limit: %d\n", o.BodyLimit), 1},
		// The comments.
		{"gateway (" + o.GatewayNamespace + ")", 1},
		{fmt.Sprintf(":%d warmpath", o.WarmpathPort), 1},
		{"Service " + o.Models + "\n", 1},
		{"{service: " + o.Models + ",", 1},
	}
}

// connections limits those to the model servers.
func (o IstioOptions) connections() string {
	if o.RequestsPerConnection == 0 {
		return ""
	}
	return fmt.Sprintf(", http: {maxRequestsPerConnection: %d}", o.RequestsPerConnection)
}

// modes is the end of what warmpath may ask for.
func (o IstioOptions) modes() string {
	const asked = "          - {request_body_mode: BUFFERED, response_header_mode: SEND, response_trailer_mode: SEND}\n"
	if o.WithoutInspection {
		return asked
	}
	return asked + "          - {request_body_mode: NONE, response_header_mode: SEND, response_body_mode: STREAMED, response_trailer_mode: SEND}\n"
}

// labels is a map of labels as a flow mapping, in order.
func labels(m map[string]string) string {
	list := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, strconv.Quote(key)+": "+strconv.Quote(m[key])) // YAML takes some for booleans or numbers
	}
	return "{" + strings.Join(list, ", ") + "}"
}

var (
	// The syntaxes of Kubernetes' names, and of Istio's hosts.
	nameSyntax  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	hostSyntax  = regexp.MustCompile(`^(\*|(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*)$`)
	keySyntax   = regexp.MustCompile(`^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/)?[A-Za-z]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	valueSyntax = regexp.MustCompile(`^([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
)

func (o IstioOptions) validate() error {
	for _, name := range []struct {
		what, value, want string
		syntax            *regexp.Regexp
	}{
		{"namespace of the gateway", o.GatewayNamespace, "1..63 of a-z, 0-9 and -", nameSyntax},
		{"host", o.Host, `a DNS name, "*." and one, or "*"`, hostSyntax},
		{"namespace", o.Namespace, "1..63 of a-z, 0-9 and -", nameSyntax},
		{"Service of warmpath", o.Warmpath, "1..63 of a-z, 0-9 and -", nameSyntax},
		{"Service of the model servers", o.Models, "1..63 of a-z, 0-9 and -", nameSyntax},
	} {
		if !name.syntax.MatchString(name.value) || name.what != "host" && scalar(name.value) != name.value {
			return fmt.Errorf("Istio configuration: %s %q, want %s, and nothing that YAML takes for a number or a truth value", name.what, name.value, name.want)
		}
	}
	if o.Warmpath == o.Models {
		return fmt.Errorf("Istio configuration: %q is the Service of warmpath and of the model servers: want two", o.Models)
	}
	for key, value := range o.GatewayLabels {
		if !keySyntax.MatchString(key) || !valueSyntax.MatchString(value) {
			return fmt.Errorf("Istio configuration: label of the gateway %q: %q, want those of Kubernetes", key, value)
		}
	}
	for _, port := range []struct {
		what  string
		value int
	}{{"gateway", o.GatewayPort}, {"Service of warmpath", o.WarmpathPort}, {"Service of the model servers", o.ModelsPort}} {
		if port.value < 1 || port.value > 65535 {
			return fmt.Errorf("Istio configuration: port of the %s %d, want 1..65535", port.what, port.value)
		}
	}
	if o.BodyLimit < 0 || o.BodyLimit > math.MaxUint32 {
		return fmt.Errorf("Istio configuration: limit of bodies %d, want 0..%d", o.BodyLimit, math.MaxUint32)
	}
	if !headerName.MatchString(o.TenantHeader) {
		return fmt.Errorf("Istio configuration: header of the tenant %q, want the name of a header", o.TenantHeader)
	}
	return nil
}
