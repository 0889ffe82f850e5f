// Command istiod is Istio's control plane for tests. With -file it serves Envoy
// what the real istiod makes of those files, out of this process alone: Istio's
// own code, but for the API server, the place of which Istio's own tests' stand-in
// takes. "istiod discovery" is the real program, pilot-discovery, which wants an
// API server.
//
// What plain Envoy does not have must be switched off by the environment, which
// Istio reads as it starts: PILOT_ENABLE_ALPN_FILTER=false and
// PILOT_ENABLE_METADATA_EXCHANGE=false.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/protobuf/types/known/wrapperspb"
	discovery "k8s.io/api/discovery/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
	"istio.io/istio/pilot/pkg/features"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/schema/gvr"
	"istio.io/istio/pkg/kube"
	"istio.io/istio/pkg/kube/kclient/clienttest"
	"istio.io/istio/pkg/monitoring"
	"istio.io/istio/pkg/test"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "discovery" {
		if err := app.NewRootCommand().Execute(); err != nil {
			fmt.Fprintln(os.Stderr, "istiod:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.Func("file", "YAML of Istio and Kubernetes objects; may be repeated", func(path string) error {
		o.files = append(o.files, path)
		return nil
	})
	flag.StringVar(&o.crds, "crds", "", "Istio's CustomResourceDefinitions, by which its objects are checked as the API server would")
	flag.StringVar(&o.xds, "xds", "127.0.0.1:15010", "where Envoy asks")
	flag.StringVar(&o.http, "http", "127.0.0.1:15014", "where /metrics is, and /slices takes an EndpointSlice to put in place of its like")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var failed error
	if err := errors.Join(test.Wrap(func(t test.Failer) { failed = o.serve(ctx, t) }), failed); err != nil {
		fmt.Fprintln(os.Stderr, "istiod:", err)
		os.Exit(1)
	}
}

type options struct {
	files           []string
	crds, xds, http string
}

// serve serves until ctx ends.
func (o *options) serve(ctx context.Context, t test.Failer) error {
	objects, err := readObjects(o.files)
	if err != nil {
		return err
	}
	if o.crds != "" {
		if err := objects.validate(o.crds); err != nil {
			return err
		}
	}
	metrics, err := monitoring.RegisterPrometheusExporter(nil, nil)
	if err != nil {
		return err
	}
	// Listened on first and answered on last: who waits for the one knows of the other.
	control, err := net.Listen("tcp", o.http)
	if err != nil {
		return err
	}
	config := mesh.DefaultMeshConfig()
	config.EnableAutoMtls = wrapperspb.Bool(false) // there is no agent that hands out certificates
	istiod := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
		MeshConfig: config, DebounceTime: features.DebounceAfter, ConfigString: objects.istio, KubernetesObjectString: objects.kubernetes,
		ListenerBuilder:    func() (net.Listener, error) { return net.Listen("tcp", o.xds) },
		KubeClientModifier: func(c kube.Client) { clienttest.MakeCRD(t, c, gvr.InferencePool) },
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("PUT /slices", func(w http.ResponseWriter, r *http.Request) {
		if err := put(r.Context(), istiod.KubeClient(), r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(control); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// put creates or replaces an EndpointSlice.
func put(ctx context.Context, client kube.Client, body io.Reader) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var slice discovery.EndpointSlice
	if err := yaml.UnmarshalStrict(data, &slice); err != nil {
		return err
	}
	slices := client.Kube().DiscoveryV1().EndpointSlices(slice.Namespace)
	if _, err = slices.Update(ctx, &slice, meta.UpdateOptions{}); kerrors.IsNotFound(err) {
		_, err = slices.Create(ctx, &slice, meta.CreateOptions{})
	}
	return err
}
