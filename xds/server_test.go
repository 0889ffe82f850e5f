package xds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/warmpath/warmpath/internal/fleet"
)

func newServer(t *testing.T, obs Observer) *Server {
	t.Helper()
	return serverOf(t, obs, Options{})
}

// serverOf returns a server of pools.
func serverOf(t *testing.T, obs Observer, pools ...Options) *Server {
	t.Helper()
	s := New(obs)
	for _, o := range pools {
		if _, err := s.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pool is the first pool of a server.
func pool(s *Server) *Pool { return s.pools[0] }

func publish(t *testing.T, s *Server, addresses ...string) uint64 {
	t.Helper()
	return publishTo(t, pool(s), addresses...)
}

func publishTo(t *testing.T, p *Pool, addresses ...string) uint64 {
	t.Helper()
	endpoints := make([]fleet.Endpoint, len(addresses))
	for i, a := range addresses {
		endpoints[i] = host(a + ":8000")
	}
	g, err := p.Publish(setOf(t, endpoints...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// waitAcked fails the test when the generation is not taken in good time.
func waitAcked(t *testing.T, s *Server, generation uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := pool(s).Acked(ctx, generation); err != nil {
		t.Fatal(err)
	}
}

// behind returns Acked's answer of this moment.
func behind(t *testing.T, s *Server, generation uint64) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return pool(s).Acked(ctx, generation)
}

// events collects what an Observer is told.
type events struct {
	mu  sync.Mutex
	log []string
	got chan struct{}
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, fmt.Sprintf(format, args...))
	select {
	case e.got <- struct{}{}:
	default:
	}
}

// wait returns once an event with the text has come.
func (e *events) wait(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		e.mu.Lock()
		found := slices.ContainsFunc(e.log, func(s string) bool { return strings.Contains(s, text) })
		log := strings.Join(e.log, "\n")
		e.mu.Unlock()
		if found {
			return
		}
		select {
		case <-e.got:
		case <-deadline:
			t.Fatalf("no event %q in:\n%s", text, log)
		}
	}
}

func observed() (*events, Observer) {
	e := &events{got: make(chan struct{}, 1)}
	return e, Observer{
		OnConnect:    func(node string) { e.add("connect %s", node) },
		OnDisconnect: func(node string) { e.add("disconnect %s", node) },
		OnAck:        func(node string, g uint64) { e.add("ack %s %d", node, g) },
		OnNack:       func(n Nack) { e.add("nack %s %s: %s", n.Node, n.TypeURL, n.Detail) },
	}
}

func TestNothingIsSentBeforeTheFirstPublish(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	early := dial(t, conn, "early")
	if err := pool(s).Acked(t.Context(), 1); err != nil {
		t.Errorf("Acked with nobody connected: %v", err)
	}
	if g := publish(t, s, "10.0.0.1"); g != 1 {
		t.Errorf("first generation %d, want 1", g)
	}
	// What comes first is the cluster; an answer before Publish would be empty.
	if r := early.recv(resource.ClusterType); len(r.GetResources()) != 1 || len(r.GetRemovedResources()) != 0 {
		t.Errorf("first answer %v, want the one cluster", r)
	}
}

func TestPublishedEndpointsArrive(t *testing.T) {
	ev, obs := observed()
	s := newServer(t, obs)
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p, r := join(t, conn, s, "a")
	if got := addresses(t, r); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("endpoints %v", got)
	}
	waitAcked(t, s, 1)
	ev.wait(t, "ack a 1")

	g := publish(t, s, "10.0.0.1", "10.0.0.2")
	if again := publish(t, s, "10.0.0.2", "10.0.0.1"); again != g || g != 2 {
		t.Errorf("generations %d and %d, want 2 for equal sets", g, again)
	}
	r = p.recv(resource.EndpointType)
	if err := behind(t, s, g); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("Acked before the ACK = %v, want an error that names a", err)
	}
	p.ack(r)
	waitAcked(t, s, g)
	want := Status{Generation: 2, Clients: []Client{{Node: "a", Subscribed: true, Acked: 2}}}
	if st := pool(s).Status(); st.Generation != 2 || !slices.Equal(st.Clients, want.Clients) || st.Nacks != 0 {
		t.Errorf("Status = %+v, want %+v", st, want)
	}
	// A third set comes next: had the equal one been sent, it would come here.
	publish(t, s, "10.0.0.3")
	if got := addresses(t, p.recv(resource.EndpointType)); !slices.Equal(got, []string{"10.0.0.3"}) {
		t.Errorf("endpoints %v, want 10.0.0.3 alone", got)
	}
	p.close()
	ev.wait(t, "disconnect a")
	if err := behind(t, s, 3); err != nil {
		t.Errorf("Acked after the disconnect: %v", err)
	}
}

func TestRefusalIsReportedAndHoldsUpNobody(t *testing.T) {
	ev, obs := observed()
	s := newServer(t, obs)
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	bad, _ := join(t, conn, s, "bad")
	good, _ := join(t, conn, s, "good")
	waitAcked(t, s, 1)

	g := publish(t, s, "10.0.0.2")
	bad.nack(bad.recv(resource.EndpointType), strings.Repeat("malformed ", 1000))
	ev.wait(t, "nack bad "+resource.EndpointType+": malformed")
	if err := behind(t, s, g); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("Acked = %v while good is behind", err)
	}
	good.ack(good.recv(resource.EndpointType))
	ev.wait(t, "ack good 2")
	err := behind(t, s, g)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"bad"`) || strings.Contains(err.Error(), `"good"`) {
		t.Errorf("Acked = %v, want ErrRefused by bad alone", err)
	}
	st := pool(s).Status()
	if st.Nacks != 1 || st.LastNack.Node != "bad" || len(st.LastNack.Detail) != 2048 {
		t.Errorf("Status has %d refusals, last by %q with %d bytes", st.Nacks, st.LastNack.Node, len(st.LastNack.Detail))
	}
	if c := st.Clients[0]; c.Node != "bad" || c.Acked != 1 || c.Refused != 2 {
		t.Errorf("client %+v, want bad at 1, having refused 2", c)
	}

	g = publish(t, s, "10.0.0.3")
	for _, p := range []*peer{bad, good} {
		p.ack(p.recv(resource.EndpointType))
	}
	waitAcked(t, s, g)
	if c := pool(s).Status().Clients[0]; c.Acked != 3 || c.Refused != 0 {
		t.Errorf("client %+v, want bad at 3 with no refusal left", c)
	}
}

// TestFrozenClientHoldsUpNobody publishes a thousand times beside an Envoy that
// reads nothing.
func TestFrozenClientHoldsUpNobody(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	frozen, _ := join(t, conn, s, "frozen")
	live, _ := join(t, conn, s, "live")
	waitAcked(t, s, 1)

	var last uint64
	for i := range 1000 {
		address := fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
		last = publish(t, s, address)
		r := live.recv(resource.EndpointType)
		if got := addresses(t, r); !slices.Equal(got, []string{address}) {
			t.Fatalf("update %d: endpoints %v, want %s", i, got, address)
		}
		live.ack(r)
	}
	if err := behind(t, s, last); err == nil || !strings.Contains(err.Error(), "frozen") {
		t.Errorf("Acked = %v, want frozen named", err)
	}
	// Thawed, it gets what was under way and then the newest, nothing between.
	first := frozen.recv(resource.EndpointType)
	frozen.ack(first)
	second := frozen.recv(resource.EndpointType)
	frozen.ack(second)
	if a, b := addresses(t, first), addresses(t, second); a[0] != "10.1.0.1" || b[0] != "10.1.3.250" {
		t.Errorf("after the thaw %v and %v, want 10.1.0.1 and 10.1.3.250", a, b)
	}
	waitAcked(t, s, last)
}

// TestReconnect: an Envoy that comes back says what it holds; it gets just what
// has changed, and it counts as served when nothing has.
func TestReconnect(t *testing.T) {
	first := newServer(t, Observer{})
	publish(t, first, "10.0.0.1")
	_, before := join(t, serve(t, first), first, "a")
	held := map[string]string{serviceName(pool(first).cluster): before.GetResources()[0].GetVersion()}

	t.Run("same content", func(t *testing.T) {
		s := newServer(t, Observer{})
		conn := serve(t, s)
		g := publish(t, s, "10.0.0.1")
		p := dial(t, conn, "a")
		p.ack(p.recv(resource.ClusterType))
		p.subscribe(serviceName(pool(s).cluster), held)
		waitSubscribed(t, s)
		waitAcked(t, s, g)
		publish(t, s, "10.0.0.2")
		if got := addresses(t, p.recv(resource.EndpointType)); !slices.Equal(got, []string{"10.0.0.2"}) {
			t.Errorf("endpoints %v: the unchanged ones were sent again", got)
		}
	})
	t.Run("other content", func(t *testing.T) {
		s := newServer(t, Observer{})
		conn := serve(t, s)
		g := publish(t, s, "10.0.0.2") // the same generation number as before
		p := dial(t, conn, "a")
		p.ack(p.recv(resource.ClusterType))
		p.subscribe(serviceName(pool(s).cluster), held)
		r := p.recv(resource.EndpointType)
		if got := addresses(t, r); !slices.Equal(got, []string{"10.0.0.2"}) {
			t.Errorf("endpoints %v, want 10.0.0.2", got)
		}
		if err := behind(t, s, g); err == nil {
			t.Error("Acked holds before the ACK")
		}
		p.ack(r)
		waitAcked(t, s, g)
	})
}

func waitSubscribed(t *testing.T, s *Server) {
	t.Helper()
	deadline := time.After(patience)
	for {
		settled := s.clients.settled(pool(s), 0)
		if st := pool(s).Status(); len(st.Clients) == 1 && st.Clients[0].Subscribed {
			return
		}
		select {
		case <-settled.changed:
		case <-deadline:
			t.Fatal("nobody subscribes")
		}
	}
}

// TestReturnToAnEarlierSet: an Envoy that is slow to answer the first set never
// sees the second and already has the third, which equals the first.
func TestReturnToAnEarlierSet(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p := dial(t, conn, "slow")
	p.ack(p.recv(resource.ClusterType))
	p.subscribe(serviceName(pool(s).cluster), nil)
	r := p.recv(resource.EndpointType)
	publish(t, s, "10.0.0.2")
	g := publish(t, s, "10.0.0.1")
	p.ack(r)
	waitAcked(t, s, g)
}

// TestReturnWhileAnotherSetIsUnderWay is the opposite: the earlier set is held,
// but the one between is on its way.
func TestReturnWhileAnotherSetIsUnderWay(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p, _ := join(t, conn, s, "a")
	waitAcked(t, s, 1)
	publish(t, s, "10.0.0.2")
	between := p.recv(resource.EndpointType)
	g := publish(t, s, "10.0.0.1")
	if err := behind(t, s, g); err == nil {
		t.Error("Acked holds although the Envoy is about to use 10.0.0.2")
	}
	p.ack(between)
	p.ack(p.recv(resource.EndpointType))
	waitAcked(t, s, g)
}

func reconfigure(t *testing.T, s *Server, timeout time.Duration) (service string) {
	t.Helper()
	o := Options{ConnectTimeout: timeout}
	g, err := pool(s).Reconfigure(o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pool(s).Reconfigure(o); again != g || err != nil {
		t.Errorf("Reconfigure with equal options = %d, %v; want %d again", again, err, g)
	}
	return serviceName(pool(s).cluster)
}

func served(s *Server) []string {
	return slices.Sorted(maps.Keys(s.endpoints.GetResources()))
}

func sorted(names ...string) []string { return slices.Sorted(slices.Values(names)) }

func TestReconfigureBeforePublish(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	name := reconfigure(t, s, 2*time.Second)
	publish(t, s, "10.0.0.1")
	if got := served(s); !slices.Equal(got, []string{name}) {
		t.Errorf("served %v, want %s alone", got, name)
	}
	join(t, conn, s, "a")
	waitAcked(t, s, 1)
	if _, err := pool(s).Reconfigure(Options{ConnectTimeout: -1}); err == nil {
		t.Error("Reconfigure takes a negative timeout")
	}
}

// TestReconfigure follows an Envoy that is slow to leave the first cluster.
func TestReconfigure(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p, _ := join(t, conn, s, "a")
	waitAcked(t, s, 1)
	first := serviceName(pool(s).cluster)

	var names []string
	for i := range 3 {
		names = append(names, reconfigure(t, s, time.Duration(i+2)*time.Second))
		p.ack(p.recv(resource.ClusterType))
	}
	if got := served(s); !slices.Equal(got, sorted(first, names[2])) {
		t.Errorf("served %v, want the first, which is in use, and the last of %v", got, names)
	}
	// The members follow under the name that is in use.
	g := publish(t, s, "10.0.0.2")
	r := p.recv(resource.EndpointType)
	if got := addresses(t, r); !slices.Equal(got, []string{"10.0.0.2"}) || r.GetResources()[0].GetName() != first {
		t.Errorf("endpoints %v of %s", got, r.GetResources()[0].GetName())
	}
	p.ack(r)
	waitAcked(t, s, g)

	// A name that was forgotten before the Envoy got to it is served when asked for.
	p.subscribe(names[0], nil)
	r = p.recv(resource.EndpointType)
	if got := addresses(t, r); !slices.Equal(got, []string{"10.0.0.2"}) || r.GetResources()[0].GetName() != names[0] {
		t.Errorf("endpoints %v of %s", got, r.GetResources()[0].GetName())
	}
	p.ack(r)
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesUnsubscribe: []string{names[0]}})

	// Warm at last: the new name comes, the old one goes.
	p.subscribe(names[2], nil)
	r = p.recv(resource.EndpointType)
	if got := addresses(t, r); !slices.Equal(got, []string{"10.0.0.2"}) || r.GetResources()[0].GetName() != names[2] {
		t.Errorf("endpoints %v of %s", got, r.GetResources()[0].GetName())
	}
	p.ack(r)
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesUnsubscribe: []string{first}})
	wantDropped(t, s, first)
	wantDropped(t, s, names[0])
	last := reconfigure(t, s, 9*time.Second)
	p.ack(p.recv(resource.ClusterType))
	if got := served(s); !slices.Equal(got, sorted(names[2], last)) {
		t.Errorf("served %v, want %v", got, sorted(names[2], last))
	}
}

func wantDropped(t *testing.T, s *Server, service string) {
	t.Helper()
	eventually(t, "nobody wants "+service, func() bool { return !s.clients.want(service) })
}

// TestReconfigureBack returns to an earlier cluster, whose name must not be
// among those that are forgotten.
func TestReconfigureBack(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	a := reconfigure(t, s, 2*time.Second)
	join(t, conn, s, "a") // stays with the first
	waitAcked(t, s, pool(s).generation)
	for range 3 {
		b := reconfigure(t, s, 3*time.Second)
		if got := served(s); !slices.Equal(got, sorted(a, b)) {
			t.Errorf("served %v, want %v", got, sorted(a, b))
		}
		reconfigure(t, s, 2*time.Second)
		if got := served(s); !slices.Equal(got, []string{a}) {
			t.Errorf("served %v, want %s alone", got, a)
		}
	}
}

// TestOldNamesAreBounded: a client cannot make the server keep just anything.
func TestOldNamesAreBounded(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p, _ := join(t, conn, s, "a")
	p.subscribe("another-pool", nil)
	for i := range 3 * maxOldServices {
		p.subscribe(fmt.Sprintf("warmpath_pool/%016x", i), nil)
	}
	eventually(t, "all are asked for", func() bool {
		return s.clients.want(fmt.Sprintf("warmpath_pool/%016x", 3*maxOldServices-1))
	})
	publish(t, s, "10.0.0.2")
	if n := len(served(s)); n != maxOldServices+1 {
		t.Errorf("%d names served, want %d", n, maxOldServices+1)
	}
	if slices.Contains(served(s), "another-pool") {
		t.Error("a name that was never issued is served")
	}
}

func TestRenamingTheClusterRemovesTheOldOne(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	publish(t, s, "10.0.0.1")
	p, _ := join(t, conn, s, "a")
	if _, err := pool(s).Reconfigure(Options{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	r := p.recv(resource.ClusterType)
	if len(r.GetResources()) != 1 || r.GetResources()[0].GetName() != "other" || !slices.Equal(r.GetRemovedResources(), []string{"warmpath_pool"}) {
		t.Errorf("got %v, want other in the place of warmpath_pool", r)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := newServer(t, Observer{})
	conn := serve(t, s)
	waiting := dial(t, conn, "waiting")
	s.Close()
	if _, err := waiting.stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("before the first Publish: %v, want Unavailable", err)
	}

	s = newServer(t, Observer{})
	conn = serve(t, s)
	publish(t, s, "10.0.0.1")
	p, _ := join(t, conn, s, "a")
	waitAcked(t, s, 1)
	result := make(chan error)
	go func() { result <- pool(s).Acked(t.Context(), 2) }()
	publish(t, s, "10.0.0.2")
	p.recv(resource.EndpointType)
	s.Close()
	if err := <-result; err != nil && !strings.Contains(err.Error(), "closed") {
		t.Errorf("Acked = %v", err)
	}
	if _, err := p.stream.Recv(); err == nil {
		t.Error("the stream goes on after Close")
	}
}

func TestStateOfTheWorldIsRefused(t *testing.T) {
	s := newServer(t, Observer{})
	publish(t, s, "10.0.0.1")
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(serve(t, s)).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v, want Unimplemented", err)
	}
}

// TestVersionsOfTwoProcessesDiffer: what is never equal by accident are the
// versions of different contents; equal contents have equal ones.
func TestVersionsOfTwoProcessesDiffer(t *testing.T) {
	var versions, systems []string
	for _, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.1"} {
		s := newServer(t, Observer{})
		publish(t, s, address)
		_, r := join(t, serve(t, s), s, "a")
		versions = append(versions, r.GetResources()[0].GetVersion())
		systems = append(systems, r.GetSystemVersionInfo())
	}
	if versions[0] == versions[1] || versions[0] != versions[2] {
		t.Errorf("resource versions %v, want the first and the last equal", versions)
	}
	if systems[0] == systems[1] || systems[0] == systems[2] {
		t.Errorf("system versions %v, want all different", systems)
	}
}

// TestUnboundedHistoryIsForgotten: the record of contents stays small.
func TestUnboundedHistoryIsForgotten(t *testing.T) {
	s := newServer(t, Observer{})
	for i := range 3 * remembered {
		publish(t, s, fmt.Sprintf("10.2.%d.%d", i/250, i%250+1))
	}
	if n := len(s.clients.generations); n > remembered+1 {
		t.Errorf("%d contents remembered, want at most %d", n, remembered+1)
	}
	s.Close()
}
