// Command kapi is a Kubernetes control plane in one process, as small as a test
// of EndpointSlices can do with: etcd, the API server and the controller that
// makes EndpointSlices of Services and Pods. There is no kubelet, no scheduler
// and no node; whoever tests it writes the status of Pods.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
)

// slicePods is how many endpoints a slice has at most, as in real clusters.
const slicePods = 100

func main() {
	var s server
	flag.StringVar(&s.dir, "dir", "", "folder of the data; the same one again goes on with them")
	flag.StringVar(&s.token, "token", "", "bearer token of the administrator")
	flag.IntVar(&s.port, "port", 0, "port of the API server on 127.0.0.1; etcd takes the two after it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kapi:", err)
		os.Exit(1)
	}
}

type server struct {
	dir, token string
	port       int
}

func (s *server) run(ctx context.Context) error {
	if s.dir == "" || s.token == "" || s.port < 1 || s.port > 65533 {
		return errors.New("want -dir, -token and -port 1..65533")
	}
	etcd, err := s.startEtcd()
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case <-ctx.Done():
		return ctx.Err()
	}
	arguments, err := s.arguments(etcd)
	if err != nil {
		return err
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(arguments)
	ended := make(chan error, 2)
	go func() { ended <- command.ExecuteContext(ctx) }()
	go func() { ended <- s.control(ctx) }()
	return <-ended
}

func (s *server) startEtcd() (*embed.Etcd, error) {
	c := embed.NewConfig()
	c.Dir = filepath.Join(s.dir, "etcd")
	c.LogLevel = "error"
	c.UnsafeNoFsync = true
	clients, peers := at(s.port+1), at(s.port+2)
	c.ListenClientUrls, c.AdvertiseClientUrls = clients, clients
	c.ListenPeerUrls, c.AdvertisePeerUrls = peers, peers
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return embed.StartEtcd(c)
}

func at(port int) []url.URL {
	return []url.URL{{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(port)}}
}

// arguments writes the files that the API server needs, and names them.
func (s *server) arguments(etcd *embed.Etcd) ([]string, error) {
	key, tokens := filepath.Join(s.dir, "accounts.key"), filepath.Join(s.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(s.token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	if err := writeKey(key); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + etcd.Config().ListenClientUrls[0].String(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(s.port),
		"--cert-dir=" + filepath.Join(s.dir, "tls"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--token-auth-file=" + tokens,
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
	}, nil
}

// writeKey makes the key of ServiceAccounts, unless there is one from before.
func writeKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// control runs the controller of EndpointSlices once the API server is ready.
func (s *server) control(ctx context.Context) error {
	config := &rest.Config{
		Host: "https://127.0.0.1:" + strconv.Itoa(s.port), BearerToken: s.token, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(s.dir, "tls", "apiserver.crt")},
	}
	client, err := s.await(ctx, config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	controller := endpointslice.NewController(ctx,
		factory.Core().V1().Pods(), factory.Core().V1().Services(), factory.Core().V1().Nodes(),
		factory.Discovery().V1().EndpointSlices(), slicePods, client, 0)
	factory.Start(ctx.Done())
	controller.Run(ctx, 2)
	return ctx.Err()
}

// await returns a client once the API server says that it is ready.
func (s *server) await(ctx context.Context, config *rest.Config) (kubernetes.Interface, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		// The certificate that it trusts is written when the server starts.
		if client, err := kubernetes.NewForConfig(config); err == nil {
			if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err == nil {
				return client, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
