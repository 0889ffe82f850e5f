package envoy

import (
	"fmt"
	"strconv"
	"strings"
)

// TLS is how Envoy secures its connections to warmpath. The files are those of
// the machine that Envoy runs on; a relative path is relative to the folder that
// Envoy was started in.
type TLS struct {
	// CA vouches for warmpath's certificate, which must have ServerName as a DNS
	// subject alternative name.
	CA, ServerName string
	// Cert and Key are Envoy's own, for a warmpath that asks for them.
	Cert, Key string
}

// transportSocket goes into both clusters.
const transportSocket = `    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: {name}
        common_tls_context:
          tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}
          alpn_protocols: [h2]
          # Envoy reads these files once. To replace them without a restart name them in an SDS
          # file instead (tls_certificate_sds_secret_configs).
          tls_certificates:
          - certificate_chain: {filename: {cert}}
            private_key: {filename: {key}}
          validation_context:
            trusted_ca: {filename: {ca}}
            # Without it any certificate of this authority would do.
            match_typed_subject_alt_names:
            - {san_type: DNS, matcher: {exact: {name}}}
`

// WithTLS adds TLS with certificates of both sides to the clusters of warmpath in
// what [Bootstrap] returned.
func WithTLS(bootstrap []byte, t TLS) ([]byte, error) {
	for what, value := range map[string]string{"CA": t.CA, "server name": t.ServerName, "certificate": t.Cert, "key": t.Key} {
		if value == "" {
			return nil, fmt.Errorf("TLS of the Envoy configuration: the %s is missing", what)
		}
	}
	block := strings.NewReplacer("{name}", strconv.Quote(t.ServerName), "{ca}", strconv.Quote(t.CA),
		"{cert}", strconv.Quote(t.Cert), "{key}", strconv.Quote(t.Key)).Replace(transportSocket)
	text := string(bootstrap)
	for _, cluster := range []string{ExtProcCluster, XDSCluster} {
		before := "    load_assignment:\n      cluster_name: " + cluster + "\n"
		if n := strings.Count(text, before); n != 1 {
			return nil, fmt.Errorf("bootstrap.yaml: %q occurs %d times, want once", before, n)
		}
		text = strings.Replace(text, before, block+before, 1)
	}
	return []byte(text), nil
}
