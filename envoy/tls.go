package envoy

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// TLS is how Envoy secures its connections to warmpath. The paths are those of
// the machine that Envoy runs on; relative ones begin at the folder that it was
// started in.
type TLS struct {
	// ServerName is a DNS name that warmpath's certificate must have.
	ServerName string
	// CA vouches for warmpath. Cert and Key are Envoy's own, for a warmpath that
	// asks for them. All three are PEM files in one folder, which Envoy watches.
	CA, Cert, Key string
	// CASecret and CertSecret are the files that name those: see [TLS.Secrets].
	CASecret, CertSecret string
}

// transportSocket goes into both clusters. Files that the bootstrap itself named
// would be read once; those that a secret's file names are read again when their
// folder changes.
const transportSocket = `    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: {name}
        common_tls_context:
          tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}
          alpn_protocols: [h2]
          # Certificates named in files of their own (SDS) are read again when they are replaced;
          # named here, they would be read once.
          tls_certificate_sds_secret_configs:
          - {name: envoy, sds_config: {path_config_source: {path: {certsecret}}, resource_api_version: V3}}
          combined_validation_context:
            validation_context_sds_secret_config: {name: ca, sds_config: {path_config_source: {path: {casecret}}, resource_api_version: V3}}
            default_validation_context:
              # Without it any certificate of the authority would do.
              match_typed_subject_alt_names: [{san_type: DNS, matcher: {exact: {name}}}]
`

const certSecret = `# Envoy's certificate towards warmpath. Envoy reads its files again when something in their
# folder is renamed, as Kubernetes does it too.
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: envoy
  tls_certificate:
    certificate_chain: {filename: {cert}}
    private_key: {filename: {key}}
    watched_directory: {path: {folder}}
`

const caSecret = `# The authority that vouches for warmpath's certificate, read again as Envoy's own is.
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: ca
  validation_context:
    trusted_ca: {filename: {ca}}
    watched_directory: {path: {folder}}
`

// WithTLS adds TLS with certificates of both sides to the clusters of warmpath in
// what [Bootstrap] returned.
func WithTLS(bootstrap []byte, t TLS) ([]byte, error) {
	return withTLS(bootstrap, t, []string{ExtProcCluster, XDSCluster})
}

func withTLS(bootstrap []byte, t TLS, clusters []string) ([]byte, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	block := t.fill(transportSocket)
	text := string(bootstrap)
	for _, cluster := range clusters {
		before := "    load_assignment:\n      cluster_name: " + cluster + "\n"
		if n := strings.Count(text, before); n != 1 {
			return nil, fmt.Errorf("bootstrap.yaml: %q occurs %d times, want once", before, n)
		}
		text = strings.Replace(text, before, block+before, 1)
	}
	return []byte(text), nil
}

// Secrets returns the contents of the files CASecret and CertSecret.
func (t TLS) Secrets() (ca, cert []byte, err error) {
	if err := t.validate(); err != nil {
		return nil, nil, err
	}
	return []byte(t.fill(caSecret)), []byte(t.fill(certSecret)), nil
}

func (t TLS) fill(template string) string {
	q := strconv.Quote
	return strings.NewReplacer("{name}", q(t.ServerName), "{ca}", q(t.CA), "{cert}", q(t.Cert), "{key}", q(t.Key),
		"{folder}", q(path.Dir(t.Cert)), "{casecret}", q(t.CASecret), "{certsecret}", q(t.CertSecret)).Replace(template)
}

func (t TLS) validate() error {
	for _, field := range []struct{ what, value string }{
		{"server name", t.ServerName},
		{"CA", t.CA},
		{"certificate", t.Cert},
		{"key", t.Key},
		{"file of the CA's secret", t.CASecret},
		{"file of the certificate's secret", t.CertSecret},
	} {
		if field.value == "" {
			return fmt.Errorf("TLS of the Envoy configuration: the %s is missing", field.what)
		}
	}
	for _, secret := range []string{t.CASecret, t.CertSecret} {
		if !strings.Contains(secret, "/") {
			return fmt.Errorf("TLS of the Envoy configuration: %q has no folder, without which Envoy refuses it (want ./%s)", secret, secret)
		}
	}
	if path.Dir(t.CA) != path.Dir(t.Cert) || path.Dir(t.Key) != path.Dir(t.Cert) {
		return fmt.Errorf("TLS of the Envoy configuration: %q, %q and %q are not in one folder", t.CA, t.Cert, t.Key)
	}
	return nil
}
