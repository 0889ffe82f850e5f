package main

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/config"
)

// istioFlags are the flags of envoy --for istio: what Kubernetes knows and the
// configuration of warmpath does not.
type istioFlags struct{ envoy.IstioOptions }

func (o *istioFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&o.Host, "host", "", "for istio: the `name` that clients use (default llm.example.com)")
	flags.StringVar(&o.GatewayNamespace, "gateway-namespace", "", "for istio: the `namespace` of the gateway's pods (default istio-system)")
	flags.Func("gateway-label", "for istio: `key=value` that the gateway's pods have; may be repeated (default istio=ingressgateway)", o.label)
	flags.Func("gateway-port", "for istio: the `port` of the gateway's Service for plain HTTP (default 80)", port(&o.GatewayPort))
	flags.StringVar(&o.Namespace, "namespace", "", "for istio: the `namespace` of warmpath and the model servers (default membership.kubernetes.namespace, else llm)")
	flags.StringVar(&o.Warmpath, "service", "", "for istio: the `Service` of warmpath (default warmpath)")
	flags.StringVar(&o.Models, "models", "", "for istio: the `Service` of the model servers (default membership.kubernetes.service)")
	flags.Func("models-port", "for istio: its `port` (default membership.kubernetes.port if that is a number, else 8000)", port(&o.ModelsPort))
}

// port reads one that is given: 0 is none.
func port(into *int) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%.40q: want 1..65535", text)
		}
		*into = int(n)
		return nil
	}
}

// forIstio reports whether a flag of envoy is for istio only.
func forIstio(name string) bool {
	switch name {
	case "host", "gateway-namespace", "gateway-label", "gateway-port", "namespace", "service", "models", "models-port":
		return true
	}
	return false
}

func (o *istioFlags) label(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%.80q: want key=value", text)
	}
	if o.GatewayLabels == nil {
		o.GatewayLabels = make(map[string]string)
	}
	o.GatewayLabels[key] = value
	return nil
}

// text is what Istio has to know of a configuration of warmpath.
func (o istioFlags) text(c config.Config) ([]byte, error) {
	options := o.IstioOptions
	_, port, err := net.SplitHostPort(c.Listen.ExtProc)
	if err == nil {
		options.WarmpathPort, err = strconv.Atoi(port)
	}
	if err != nil || options.WarmpathPort == 0 {
		return nil, fmt.Errorf("--for istio: listen.extProc %.80q: want a port for a Service", c.Listen.ExtProc)
	}
	if len(c.Pools) > 0 {
		return nil, fmt.Errorf("--for istio: the configuration has pools: the gateway gets its clusters from istiod, of one Service")
	}
	if c.Listen.XDS != "" {
		return nil, fmt.Errorf("--for istio: listen.xds %.80q: want \"\": the gateway gets its endpoints from istiod", c.Listen.XDS)
	}
	k := c.Membership.Kubernetes
	options.Models = cmp.Or(options.Models, k.Service)
	options.Namespace = cmp.Or(options.Namespace, k.Namespace)
	if n, err := strconv.Atoi(k.Port); err == nil && options.ModelsPort == 0 {
		options.ModelsPort = n
	}
	if options.Models == "" {
		return nil, fmt.Errorf("--for istio: there is no membership.kubernetes: say with --models which Service the model servers have")
	}
	if c.TLS.ExtProc.On() {
		return nil, fmt.Errorf("--for istio: tls.extProc is set, and what is printed speaks no TLS to warmpath: let the mesh secure that, or print it without and write tls of the DestinationRule %s yourself", cmp.Or(options.Warmpath, "warmpath"))
	}
	options.TenantHeader, options.BodyLimit = c.Tenant.Header, c.Limits.RequestBodyBytes
	options.RequestsPerConnection, options.WithoutInspection = c.Cluster.MaxRequestsPerConnection, c.Inspection.Share == 0
	return envoy.Istio(options)
}
