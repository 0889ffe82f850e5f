package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/warmpath/warmpath/internal/stack"
	"github.com/warmpath/warmpath/internal/testenv"
)

// envoyHas waits until Envoy has n endpoints.
func envoyHas(t *testing.T, s *stack.Stack, n int) {
	t.Helper()
	if err := s.Await(t.Context(), "Envoy to follow", func() error { return s.EnvoyKnows(t.Context(), n) }); err != nil {
		t.Fatal(err)
	}
}

// Envoy is there first. It begins to serve within seconds of warmpath's start,
// long before its own patience of 15 s with a control plane is over.
func TestControlPlaneStartsLate(t *testing.T) {
	config := prefixAware(1000)
	config.Extra = noHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Config: config})
	s.Warmpath.Kill()
	if err := s.Envoy.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- s.StartEnvoy(t.Context()) }()
	if err := s.Await(t.Context(), "Envoy to have looked for warmpath in vain", func() error {
		text, err := s.EnvoyAdmin(t.Context(), "/stats?filter=^cluster.warmpath_xds.upstream_cx_connect_fail$")
		if err == nil && !regexp.MustCompile(`: [2-9]`).Match(text) {
			err = fmt.Errorf("it says %q", text)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 12*time.Second {
		t.Errorf("Envoy served %s after warmpath's start", took)
	} else {
		t.Logf("Envoy served %s after warmpath's start", took)
	}
	if err := s.AwaitRouting(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitSteering(t, s)
	before := goroutines(t, s)
	startWorkload(t, s).settled(t, before, nil)
}

// The control plane comes back with the same members, with others, with a file
// that it cannot read, and after a freeze. Envoy keeps what it has until there is
// something better, and no request is lost.
func TestControlPlaneComesBack(t *testing.T) {
	config := prefixAware(1000)
	config.Extra = quickHealth
	s := testenv.Start(t, stack.Options{Replica: fast, Config: config})
	before := goroutines(t, s)
	all := stack.Endpoints(s.Replicas.Addresses()...)
	l := startWorkload(t, s)
	l.roaming = true

	changes := envoyCounter(t, s, "cluster.warmpath_pool.membership_change")
	l.underway(t)
	s.Warmpath.Kill()
	l.more(t, 30)
	l.restart(t)
	if now := envoyCounter(t, s, "cluster.warmpath_pool.membership_change"); now != changes {
		t.Errorf("the same members changed Envoy's pool %d times", now-changes)
	}

	l.underway(t)
	s.Warmpath.Kill()
	if err := s.WriteEndpoints(all[4:]); err != nil {
		t.Fatal(err)
	}
	l.more(t, 30)
	if err := s.EnvoyKnows(t.Context(), 7); err != nil {
		t.Error(err)
	}
	l.restart(t)
	envoyHas(t, s, 3)
	l.more(t, 30)

	l.underway(t)
	s.Warmpath.Kill()
	if err := s.WriteRawEndpoints("endpoints: ["); err != nil {
		t.Fatal(err)
	}
	if err := s.StartWarmpath(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.more(t, 60)
	if err := s.EnvoyKnows(t.Context(), 3); err != nil {
		t.Errorf("before the new process knew any member: %v", err)
	}
	if err := s.WriteEndpoints(all[:5]); err != nil {
		t.Fatal(err)
	}
	envoyHas(t, s, 5)
	awaitSteering(t, s)

	l.underway(t)
	tell(t, s, syscall.SIGSTOP)
	if err := s.WriteEndpoints(all[2:]); err != nil {
		t.Fatal(err)
	}
	l.more(t, 60)
	tell(t, s, syscall.SIGCONT)
	if err := s.Await(t.Context(), "the new members", func() error {
		clusters, err := s.EnvoyAdmin(t.Context(), "/clusters")
		if text := string(clusters); err == nil && (strings.Contains(text, all[0].Address) || !strings.Contains(text, all[6].Address)) {
			err = errors.New("Envoy has others")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	awaitSteering(t, s)
	l.more(t, 30)
	l.settled(t, before, nil)
}

// Envoy dies with requests under way: they leave the counts, and the next Envoy
// is served like the first.
func TestEnvoyDies(t *testing.T) {
	t.Parallel()
	s := testenv.Start(t, stack.Options{Replica: fast, Config: prefixAware(0)})
	body := mixed[1].body(0)
	open, _ := holdOpen(t, s, body, 20)
	truthAgrees(t, s)
	s.Envoy.Kill()
	atRest(t, s)
	truthAgrees(t, s)
	open.close()
	if err := s.StartEnvoy(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitSteering(t, s)
	if got, err := served(t.Context(), s, "/v1/chat/completions", mixed[0].body(0)); err != nil || got == "" {
		t.Errorf("served by %q: %v", got, err)
	}
	if n, err := s.Metric(t.Context(), "warmpath_xds_envoys"); err != nil || n != 1 {
		t.Errorf("%v Envoys are connected (%v), want the new one alone", n, err)
	}
	noMisses(t, s)
}

// An Envoy refuses what it is sent. It is told once, not again and again; the
// refusal stands in the log, the metric and the status; the others go on, and the
// next membership reaches it too.
func TestAnEnvoyRefuses(t *testing.T) {
	t.Parallel()
	config := stack.Config{Strategy: "RANDOM"}
	config.Extra = noHealth // each message is a change of the file
	s := testenv.Start(t, stack.Options{Replica: fast, Config: config})
	all := stack.Endpoints(s.Replicas.Addresses()...)
	change := func(n int) {
		t.Helper()
		if err := s.WriteEndpoints(all[:n]); err != nil {
			t.Fatal(err)
		}
		envoyHas(t, s, n)
	}
	change(3)
	second := joinEnvoys(t, listens(t, s, "xds"))
	second.expect(t, 3, "")
	const detail = "malformed IP address: planted"
	for refusals := 1; refusals <= 2; refusals++ {
		change(3 + refusals)
		second.expect(t, 3+refusals, detail) // the next message, so the last was not repeated
		refusalIsSeen(t, s, refusals, detail)
	}
	// What an Envoy does not know would fall back there, so nobody is sent to it.
	for range 50 {
		got, err := served(t.Context(), s, "/v1/chat/completions", chat("short", "q", false))
		if err != nil || got == all[3].Address || got == all[4].Address {
			t.Errorf("served by %q, which an Envoy refuses (%v)", got, err)
		}
	}
	change(7)
	second.expect(t, 7, "")
	if err := s.Await(t.Context(), "all to agree", func() error {
		if n, err := s.Metric(t.Context(), "warmpath_rollout_unacknowledged"); err != nil || n != 0 {
			return fmt.Errorf("warmpath_rollout_unacknowledged = %v (%v)", n, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := s.Await(t.Context(), "what was refused to be used", func() error {
		if got, err := served(t.Context(), s, "/v1/chat/completions", chat("short", "q", false)); err != nil || got != all[3].Address {
			return fmt.Errorf("served by %q (%v)", got, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	noMisses(t, s)
}

// refusalIsSeen waits until n refusals stand everywhere.
func refusalIsSeen(t *testing.T, s *stack.Stack, n int, detail string) {
	t.Helper()
	if err := s.Await(t.Context(), fmt.Sprintf("refusal %d to be seen", n), func() error {
		if got, err := s.Metric(t.Context(), "warmpath_xds_nacks_total", fmt.Sprintf("type=%q", resource.EndpointType)); err != nil || int(got) != n {
			return fmt.Errorf("warmpath_xds_nacks_total = %v (%v)", got, err)
		}
		if logged := strings.Count(s.Warmpath.Output(), "Envoy refused a resource"); logged != n {
			return fmt.Errorf("logged %d times", logged)
		}
		status, err := controlPlane(t, s)
		if err != nil || status.Nacks != n || status.LastNack.Node != "second" || !strings.Contains(status.LastNack.Detail, detail) {
			return fmt.Errorf("status %+v (%v)", status, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.Warmpath.Output(), detail) {
		t.Errorf("the log does not say %q", detail)
	}
}

type controlPlaneStatus struct {
	Nacks    int
	LastNack struct{ Node, Detail string }
}

func controlPlane(t *testing.T, s *stack.Stack) (controlPlaneStatus, error) {
	t.Helper()
	var v struct{ ControlPlane controlPlaneStatus }
	r, err := http.Get("http://" + listens(t, s, "admin") + "/status")
	if err != nil {
		return v.ControlPlane, err
	}
	return v.ControlPlane, json.Unmarshal([]byte(readAll(t, r)), &v)
}

// listens is where warmpath says that it listens.
func listens(t *testing.T, s *stack.Stack, what string) string {
	t.Helper()
	m := regexp.MustCompile(what + `=(\S+)`).FindStringSubmatch(s.Warmpath.Output())
	if m == nil {
		t.Fatalf("warmpath does not say where it listens for %s:\n%s", what, s.Warmpath.Output())
	}
	return m[1]
}

// secondEnvoy speaks Envoy's side of a delta stream.
type secondEnvoy struct {
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

// joinEnvoys connects an Envoy named second and has it ask for the pool.
func joinEnvoys(t *testing.T, xds string) *secondEnvoy {
	t.Helper()
	connection, err := grpc.NewClient(xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &secondEnvoy{stream}
	e.send(t, &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "second"}, TypeUrl: resource.ClusterType})
	clusters := e.receive(t)
	e.send(t, &discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, ResponseNonce: clusters.GetNonce()})
	service := regexp.MustCompile(`warmpath_pool/[0-9a-f]{16}`).Find(clusters.GetResources()[0].GetResource().GetValue())
	e.send(t, &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{string(service)}})
	return e
}

func (e *secondEnvoy) send(t *testing.T, r *discovery.DeltaDiscoveryRequest) {
	t.Helper()
	if err := e.stream.Send(r); err != nil {
		t.Fatal(err)
	}
}

func (e *secondEnvoy) receive(t *testing.T) *discovery.DeltaDiscoveryResponse {
	t.Helper()
	r, err := e.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// expect receives n endpoints and takes them, or refuses them for a reason.
func (e *secondEnvoy) expect(t *testing.T, n int, refusal string) {
	t.Helper()
	r := e.receive(t)
	answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	if refusal != "" {
		answer.ErrorDetail = &rpcstatus.Status{Code: int32(codes.Internal), Message: refusal}
	}
	e.send(t, answer)
	var assignment endpointv3.ClusterLoadAssignment
	if err := r.GetResources()[0].GetResource().UnmarshalTo(&assignment); err != nil {
		t.Fatal(err)
	}
	if got := len(assignment.GetEndpoints()[0].GetLbEndpoints()); got != n {
		t.Errorf("the second Envoy gets %d endpoints, want %d", got, n)
	}
}
