package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/config"
)

const envoyUsage = `usage: warmpath envoy [flags]

Prints Envoy configuration that fits a warmpath.yaml, with comments:

  --for bootstrap    a whole file for an Envoy of its own
  --for filter       the parts for a gateway that is there already, each under a
                     heading that says where it goes
  --for istio        the objects that put warmpath behind an ingress gateway of
                     Istio
  --for ca-secret    with TLS, the file of --tls-ca-secret
  --for cert-secret  with TLS, the file of --tls-cert-secret

Where listen.xds is "", the endpoints of membership.static or membership.file
stand in what is printed; with --steer header too.

`

// envoyOptions are the flags of envoy.
type envoyOptions struct {
	config, what        string
	addresses           envoy.Addresses
	steer, body         string
	collector           string
	sampling            float64
	tls                 envoy.TLS
	istio               istioFlags
	collectorIs, ratios bool // were given
}

func printEnvoy(args []string, stdout, stderr io.Writer) error {
	var o envoyOptions
	flags := flag.NewFlagSet("warmpath envoy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.register(flags)
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, envoyUsage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return usageError{fmt.Errorf("envoy: %w", err)}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("envoy: %.80q: want flags only", flags.Arg(0))}
	}
	var misplaced error
	flags.Visit(func(f *flag.Flag) {
		o.collectorIs = o.collectorIs || f.Name == "collector"
		o.ratios = o.ratios || f.Name == "sampling"
		if common := f.Name == "config" || f.Name == "for"; !common && forIstio(f.Name) != (o.what == "istio") {
			misplaced = fmt.Errorf("envoy: --%s has no effect with --for %.40s", f.Name, o.what)
		}
	})
	if misplaced != nil {
		return usageError{misplaced}
	}
	text, err := o.text()
	if err != nil {
		return usageError{fmt.Errorf("envoy: %w", err)}
	}
	_, err = stdout.Write(text)
	return err
}

func (o *envoyOptions) register(flags *flag.FlagSet) {
	flags.StringVar(&o.config, "config", "warmpath.yaml", "configuration `file` of warmpath")
	flags.StringVar(&o.what, "for", "bootstrap", "`what` to print: bootstrap, filter, istio, ca-secret or cert-secret")
	o.istio.register(flags)
	flags.StringVar(&o.addresses.Listener, "listener", "", "ip:port at which Envoy `listens` for clients (default 127.0.0.1:10000)")
	flags.StringVar(&o.addresses.Admin, "envoy-admin", "", "ip:port of Envoy's admin `listener` (default 127.0.0.1:9901)")
	flags.StringVar(&o.addresses.ExtProc, "ext-proc", "", "`address` at which Envoy finds warmpath's listen.extProc (default that of the configuration; every interface stands for 127.0.0.1)")
	flags.StringVar(&o.addresses.XDS, "xds", "", "`address` at which Envoy finds warmpath's listen.xds")
	flags.StringVar(&o.steer, "steer", "metadata", "`how` Envoy learns of the choice: metadata, which no client can send, or header")
	flags.StringVar(&o.body, "body", string(envoy.BodyOnDemand), "`how` request bodies get to warmpath: "+bodyModeNames())
	flags.StringVar(&o.collector, "collector", "", "host:port of the `collector` of Envoy's spans; \"\" for none (default tracing.otlpEndpoint)")
	flags.Float64Var(&o.sampling, "sampling", 100, "`percent` of requests traced of clients that have not decided it, more than 0 (default that of tracing.sampleRatio)")
	flags.StringVar(&o.tls.ServerName, "tls-server-name", "warmpath", "DNS `name` in warmpath's certificate; for listeners of the configuration that have TLS")
	flags.StringVar(&o.tls.CA, "tls-ca", "certs/ca.pem", "`file`, on Envoy's machine, of the authority that vouches for warmpath")
	flags.StringVar(&o.tls.Cert, "tls-cert", "certs/envoy.pem", "`file` of Envoy's own certificate, in the same folder")
	flags.StringVar(&o.tls.Key, "tls-key", "certs/envoy.key", "`file` of its key, in the same folder")
	flags.StringVar(&o.tls.CASecret, "tls-ca-secret", "./secret-ca.yaml", "`file` of the secret that names the authority")
	flags.StringVar(&o.tls.CertSecret, "tls-cert-secret", "./secret-envoy.yaml", "`file` of the secret that names the certificate")
}

func bodyModeNames() string {
	var names []string
	for _, mode := range envoy.BodyModes() {
		names = append(names, string(mode))
	}
	return strings.Join(names, ", ")
}

// text is what is to be printed.
func (o *envoyOptions) text() ([]byte, error) {
	c, err := config.Load(o.config)
	if err != nil {
		return nil, err
	}
	if o.what == "istio" {
		return o.istio.text(c)
	}
	options, err := o.options(c)
	if err != nil {
		return nil, err
	}
	switch o.what {
	case "bootstrap":
		return envoy.Render(options)
	case "filter":
		return envoy.Filter(options)
	case "ca-secret", "cert-secret":
		if options.TLS == nil {
			return nil, fmt.Errorf("--for %s: %s has neither tls.extProc nor tls.xds", o.what, o.config)
		}
		ca, cert, err := options.TLS.Secrets()
		if o.what == "ca-secret" {
			return ca, err
		}
		return cert, err
	default:
		return nil, fmt.Errorf("--for %.40q: want bootstrap, filter, istio, ca-secret or cert-secret", o.what)
	}
}

// options are those of Envoy's configuration that fit the configuration of warmpath.
func (o *envoyOptions) options(c config.Config) (envoy.Options, error) {
	options := envoy.Options{
		Addresses: o.addresses, Pool: c.Cluster.Name, TenantHeader: c.Tenant.Header, BodyLimit: c.Limits.RequestBodyBytes,
		RequestsPerConnection: c.Cluster.MaxRequestsPerConnection,
		Body:                  envoy.BodyMode(o.body), WithoutInspection: c.Inspection.Share == 0, HeaderSteering: o.steer == "header",
	}
	if o.steer != "metadata" && o.steer != "header" {
		return options, fmt.Errorf("--steer %.40q: want metadata or header", o.steer)
	}
	if err := o.reach(c, &options); err != nil {
		return options, err
	}
	if c.Listen.XDS == "" || options.HeaderSteering {
		if err := o.ownEndpoints(c, &options); err != nil {
			return options, err
		}
	}
	o.secure(c, &options)
	return options, o.trace(c, &options)
}

// reach fills in where Envoy finds warmpath.
func (o *envoyOptions) reach(c config.Config, options *envoy.Options) (err error) {
	if options.ExtProc == "" {
		if options.ExtProc, err = reachable(c.Listen.ExtProc); err != nil {
			return fmt.Errorf("listen.extProc: %w: say with --ext-proc where it is", err)
		}
	}
	if options.XDS == "" && c.Listen.XDS != "" {
		if options.XDS, err = reachable(c.Listen.XDS); err != nil {
			return fmt.Errorf("listen.xds: %w: say with --xds where it is", err)
		}
	}
	return nil
}

// reachable is an address under which a listener is found from the same machine.
func reachable(listen string) (string, error) {
	if strings.HasPrefix(listen, "unix:") {
		return listen, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", fmt.Errorf("%q takes any free port", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// ownEndpoints has the model servers stand in Envoy's configuration.
func (o *envoyOptions) ownEndpoints(c config.Config, options *envoy.Options) error {
	if len(c.Pools) > 0 {
		return fmt.Errorf("%s has pools: their clusters come from listen.xds only, steered by metadata", o.config)
	}
	m := c.Membership
	if m.Static == nil && m.File == "" {
		return fmt.Errorf("%s: without listen.xds, and with --steer header, the endpoints must stand in membership.static or membership.file", o.config)
	}
	set, err := loadMembership(m, o.config)
	if err != nil {
		return err
	}
	options.Endpoints = []string{}
	for _, e := range set.Endpoints() {
		options.Endpoints = append(options.Endpoints, e.Address)
	}
	return nil
}

// secure speaks TLS to the listeners that have it.
func (o *envoyOptions) secure(c config.Config, options *envoy.Options) {
	if c.TLS.ExtProc.On() {
		options.Secured = append(options.Secured, envoy.ExtProcCluster)
	}
	if c.TLS.XDS.On() && options.Endpoints == nil {
		options.Secured = append(options.Secured, envoy.XDSCluster)
	}
	if options.Secured != nil {
		options.TLS = &o.tls
	}
}

// trace sends Envoy's spans where warmpath's go.
func (o *envoyOptions) trace(c config.Config, options *envoy.Options) error {
	options.Collector, options.Sampling = o.collector, o.sampling
	if !o.collectorIs {
		options.Collector = c.Tracing.OTLPEndpoint
		if options.Collector != "" && !c.Tracing.Insecure {
			return fmt.Errorf("tracing.insecure is false, and the cluster of the collector that is printed speaks no TLS: name one that needs none with --collector, or none with --collector ''")
		}
	}
	if o.ratios && (o.sampling <= 0 || options.Collector == "") {
		return fmt.Errorf("--sampling %v: want more than 0 percent, and a collector; without one nothing is traced", o.sampling)
	}
	if !o.ratios && c.Tracing.SampleRatio > 0 {
		options.Sampling = 100 * c.Tracing.SampleRatio
	}
	return nil
}
