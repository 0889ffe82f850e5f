package xds

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/warmpath/warmpath/internal/fleet"
)

// wireSeparator stands between two requests of FuzzRequests, and publication in
// the place of one makes the control plane publish another membership.
var (
	wireSeparator = []byte("\xff\xfe\xfd\xfc")
	publication   = []byte("publish")
)

// FuzzRequests lets an Envoy say anything on its stream. It is sent the present
// members under names that were issued, what is known of it stays bounded and
// never ahead of what it was sent, and nothing is left of it at the end.
func FuzzRequests(f *testing.F) {
	o := Options{}
	cluster, err := NewCluster(o)
	if err != nil {
		f.Fatal(err)
	}
	service := serviceName(cluster)
	clusters := &discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: "envoy-1"}}
	ack := func(typeURL, nonce string) *discovery.DeltaDiscoveryRequest {
		return &discovery.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: nonce}
	}
	nack := ack(resource.EndpointType, "2")
	nack.ErrorDetail = &rpcstatus.Status{Code: 13, Message: "cannot"}
	subscribe := &discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{service, "old/0123456789abcdef", "*"},
		ResourceNamesUnsubscribe: []string{"gone"}, InitialResourceVersions: map[string]string{service: "1", "old": ""},
	}
	for _, requests := range [][]*discovery.DeltaDiscoveryRequest{
		{clusters, ack(resource.ClusterType, "1"), subscribe, ack(resource.EndpointType, "2"), nil, ack(resource.EndpointType, "3")},
		{clusters, subscribe, nack, nil, nil, nack, {TypeUrl: resource.EndpointType, ResourceNamesUnsubscribe: []string{service}}},
		{{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"*"}}, {TypeUrl: resource.ListenerType}, {}},
	} {
		var wire [][]byte
		for _, r := range requests {
			if r == nil {
				wire = append(wire, publication)
				continue
			}
			b, err := proto.Marshal(r)
			if err != nil {
				f.Fatal(err)
			}
			wire = append(wire, b)
		}
		f.Add(bytes.Join(wire, wireSeparator))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		if len(wire) > 64<<10 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			p := &anyEnvoy{t: t, requests: bytes.SplitN(wire, wireSeparator, 32), told: make(map[string]bool)}
			p.server = newServer(t, Observer{OnAck: p.acked})
			defer p.server.Close()
			p.publish()
			ctx, cancel := context.WithCancel(t.Context())
			p.ctx = ctx
			_ = p.server.DeltaAggregatedResources(p)
			cancel()
			p.checkEnd()
		})
	})
}

// anyEnvoy is the other end of a stream. It sends a request when all that the one
// before has caused is over.
type anyEnvoy struct {
	grpc.ServerStream
	t        *testing.T
	ctx      context.Context
	server   *Server
	requests [][]byte
	members  []string
	// generation is the latest that was published, told the names that an Envoy has
	// asked for.
	generation uint64
	told       map[string]bool
	nonces     []string
	nacked     bool
}

func (p *anyEnvoy) Context() context.Context { return p.ctx }

func (p *anyEnvoy) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	for {
		synctest.Wait()
		p.check()
		if len(p.requests) == 0 {
			return nil, io.EOF
		}
		wire := p.requests[0]
		p.requests = p.requests[1:]
		if bytes.Equal(wire, publication) {
			p.publish()
			continue
		}
		r := new(discovery.DeltaDiscoveryRequest)
		if proto.Unmarshal(wire, r) != nil {
			continue
		}
		p.nacked = p.nacked || r.GetErrorDetail() != nil
		for _, name := range r.GetResourceNamesSubscribe() {
			p.told[name] = true
		}
		return r, nil
	}
}

func (p *anyEnvoy) publish() {
	all := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	p.members = all[:(len(p.members)+1)%(len(all)+1)]
	endpoints := make([]fleet.Endpoint, len(p.members))
	for i, m := range p.members {
		endpoints[i] = host(m + ":80")
	}
	g, err := pool(p.server).Publish(setOf(p.t, endpoints...))
	if err != nil {
		p.t.Fatal(err)
	}
	p.generation = g
}

func (p *anyEnvoy) Send(r *discovery.DeltaDiscoveryResponse) error {
	if slices.Contains(p.nonces, r.GetNonce()) {
		p.t.Errorf("the nonce %q was sent twice", r.GetNonce())
	}
	p.nonces = append(p.nonces, r.GetNonce())
	for _, res := range r.GetResources() {
		if r.GetTypeUrl() != resource.EndpointType {
			continue
		}
		name := res.GetName()
		if !p.told[name] && !p.told["*"] && len(p.told) > 0 || !issued.MatchString(name) {
			p.t.Errorf("sent %q, which was not asked for or not issued", name)
		}
		cla := new(endpointv3.ClusterLoadAssignment)
		if err := res.GetResource().UnmarshalTo(cla); err != nil || cla.GetClusterName() != name {
			p.t.Errorf("%q is named %q: %v", name, cla.GetClusterName(), err)
		}
	}
	if got := addresses(p.t, &discovery.DeltaDiscoveryResponse{Resources: endpointsOf(r)}); len(endpointsOf(r)) == 1 && !slices.Equal(got, p.members) {
		p.t.Errorf("sent %v, want %v", got, p.members)
	}
	return nil
}

func endpointsOf(r *discovery.DeltaDiscoveryResponse) []*discovery.Resource {
	if r.GetTypeUrl() != resource.EndpointType {
		return nil
	}
	return r.GetResources()
}

func (p *anyEnvoy) acked(_ string, generation uint64) {
	if generation > p.generation {
		p.t.Errorf("generation %d was acknowledged, the latest is %d", generation, p.generation)
	}
}

// check looks at what the server knows while the stream is open.
func (p *anyEnvoy) check() {
	st := pool(p.server).Status()
	if len(st.Clients) > 1 || len(st.LastNack.Detail) > 2048 || st.Nacks > 0 && !p.nacked {
		p.t.Errorf("status %+v", st)
	}
	for _, c := range st.Clients {
		if c.Acked > p.generation || c.Refused > p.generation || c.Refused > 0 && !p.nacked || len(c.Node) > maxNodeID {
			p.t.Errorf("client %+v, the latest generation is %d", c, p.generation)
		}
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if n := len(pool(p.server).oldServices); n > maxOldServices {
		p.t.Errorf("%d names beside the present one", n)
	}
}

func (p *anyEnvoy) checkEnd() {
	p.server.clients.mu.Lock()
	defer p.server.clients.mu.Unlock()
	if n := len(p.server.clients.streams); n != 0 {
		p.t.Errorf("%d streams are left", n)
	}
}

// What one stream makes the server keep is bounded: it is ended instead.
func TestStreamIsBounded(t *testing.T) {
	many := make([]string, maxNames+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	versions := make(map[string]string)
	for _, name := range many {
		versions[name] = "1"
	}
	for name, c := range map[string]struct {
		requests []*discovery.DeltaDiscoveryRequest
		want     string
	}{
		"names":             {[]*discovery.DeltaDiscoveryRequest{{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: many}}, "asks for 1025 resources, want at most 1024"},
		"names, one by one": {[]*discovery.DeltaDiscoveryRequest{{ResourceNamesSubscribe: many[1:]}, {ResourceNamesSubscribe: many[:1]}}, "1025"},
		"versions":          {[]*discovery.DeltaDiscoveryRequest{{TypeUrl: resource.EndpointType, InitialResourceVersions: versions}}, "1025"},
		"as many as allowed": {[]*discovery.DeltaDiscoveryRequest{
			{ResourceNamesSubscribe: many[1:]},
			{ResourceNamesUnsubscribe: many[1:]},
			{ResourceNamesSubscribe: many[1:]},
		}, ""},
	} {
		clients := newClients(Observer{})
		clients.open(1)
		var err error
		for _, r := range c.requests {
			err = clients.request(1, r)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Responses that are never answered end the stream too.
func TestUnansweredResponsesAreBounded(t *testing.T) {
	clients := newClients(Observer{})
	clients.open(1)
	r := &discovery.DeltaDiscoveryResponse{TypeUrl: resource.EndpointType}
	for i := range maxUnanswered + 1 {
		if err := clients.request(1, &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType}); err != nil {
			t.Fatalf("after %d responses: %v", i, err)
		}
		r.Nonce = strings.Repeat("n", i+1)
		clients.sending(1, r)
	}
	err := clients.request(1, &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType})
	if err == nil || !strings.Contains(err.Error(), "1025 responses unanswered, want at most 1024") {
		t.Errorf("after %d responses: %v", maxUnanswered+1, err)
	}
}

// An id of any length is kept in part.
func TestNodeIDIsCut(t *testing.T) {
	clients := newClients(Observer{})
	clients.open(1)
	if err := clients.request(1, &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: strings.Repeat("n", 5000)}}); err != nil {
		t.Fatal(err)
	}
	if got := clients.status(nil, 0).Clients[0].Node; len(got) != maxNodeID {
		t.Errorf("an id of %d bytes is kept", len(got))
	}
	if got := cut("xé", 2); got != "x" {
		t.Errorf("half a letter is kept: %q", got)
	}
}
