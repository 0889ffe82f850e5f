package xds

import (
	"errors"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

var errUnknownStream = errors.New("request on a stream that was not opened")

// Bounds of what is kept of one stream. An Envoy asks for one cluster and, for
// some moments after a change, for the endpoints of two or three.
const (
	maxNames      = 1024 // resources that are asked for, or had from before
	maxUnanswered = 1024 // responses
	maxNodeID     = 256  // bytes
)

func (c *clients) open(stream int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[stream] = &client{
		subscribed: make(map[string]bool), held: make(map[string]string),
		refused: make(map[string]string), sent: make(map[string]map[string]string),
	}
}

func (c *clients) closed(stream int64) {
	c.mu.Lock()
	cl := c.streams[stream]
	delete(c.streams, stream)
	c.wake()
	c.mu.Unlock()
	if cl != nil && cl.connected && c.obs.OnDisconnect != nil {
		c.obs.OnDisconnect(cl.node)
	}
}

// sending notes what a nonce stands for, before the answer to it can come.
func (c *clients) sending(stream int64, r *discovery.DeltaDiscoveryResponse) {
	if r.GetTypeUrl() != resource.EndpointType {
		return
	}
	contents := make(map[string]string, len(r.GetResources()))
	for _, res := range r.GetResources() {
		contents[res.GetName()] = res.GetVersion()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.streams[stream]; cl != nil {
		cl.sent[r.GetNonce()] = contents
	}
}

// request takes a subscription, an ACK or a NACK, and tells the observer after
// the lock is released.
func (c *clients) request(stream int64, r *discovery.DeltaDiscoveryRequest) error {
	c.mu.Lock()
	cl := c.streams[stream]
	if cl == nil {
		c.mu.Unlock()
		return errUnknownStream
	}
	if err := cl.grow(r); err != nil {
		c.mu.Unlock()
		return err
	}
	var events []func()
	if node := r.GetNode(); node != nil && !cl.connected {
		events = append(events, c.connect(cl, node))
	}
	if r.GetErrorDetail() != nil {
		events = append(events, c.nack(cl, r))
	}
	if r.GetTypeUrl() == resource.EndpointType {
		cl.subscribe(r)
		events = append(events, c.answer(cl, r))
	}
	c.wake()
	c.mu.Unlock()
	for _, tell := range events {
		if tell != nil {
			tell()
		}
	}
	return nil
}

func (c *clients) connect(cl *client, node *corev3.Node) (event func()) {
	id := cut(node.GetId(), maxNodeID)
	cl.node, cl.connected = id, true
	if c.obs.OnConnect == nil {
		return nil
	}
	return func() { c.obs.OnConnect(id) }
}

// grow counts what a request makes the stream keep. The error ends the stream,
// which frees it; its client comes again with what it really needs.
func (cl *client) grow(r *discovery.DeltaDiscoveryRequest) error {
	asked := len(r.GetResourceNamesSubscribe()) + len(r.GetInitialResourceVersions())
	cl.names = max(cl.names+asked-len(r.GetResourceNamesUnsubscribe()), 0)
	switch {
	case cl.names > maxNames:
		return fmt.Errorf("a stream asks for %d resources, want at most %d", cl.names, maxNames)
	case len(cl.sent) > maxUnanswered:
		return fmt.Errorf("a stream leaves %d responses unanswered, want at most %d", len(cl.sent), maxUnanswered)
	}
	return nil
}

// cut returns the first n bytes of a text, without half a letter at the end.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:min(len(text), n)], "") }

func (c *clients) nack(cl *client, r *discovery.DeltaDiscoveryRequest) (event func()) {
	const limit = 2048
	detail := r.GetErrorDetail().GetMessage()
	c.nacks++
	c.lastNack = Nack{Node: cl.node, TypeURL: r.GetTypeUrl(), Detail: cut(detail, limit)}
	if c.obs.OnNack == nil {
		return nil
	}
	n := c.lastNack
	return func() { c.obs.OnNack(n) }
}

// subscribe follows the names that the Envoy wants, and what it says it has
// after a reconnect.
func (cl *client) subscribe(r *discovery.DeltaDiscoveryRequest) {
	for _, name := range r.GetResourceNamesSubscribe() {
		cl.subscribed[name] = true
	}
	for _, name := range r.GetResourceNamesUnsubscribe() {
		delete(cl.subscribed, name)
		delete(cl.held, name)
		delete(cl.refused, name)
	}
	for name, version := range r.GetInitialResourceVersions() {
		cl.held[name] = version
	}
}

// answer settles the response that the request answers, if any.
func (c *clients) answer(cl *client, r *discovery.DeltaDiscoveryRequest) (event func()) {
	contents, ok := cl.sent[r.GetResponseNonce()]
	if !ok {
		return nil
	}
	delete(cl.sent, r.GetResponseNonce())
	if r.GetErrorDetail() != nil {
		for service, version := range contents {
			cl.refused[service] = version
		}
		return nil
	}
	for service, version := range contents {
		if cl.subscribed[service] {
			cl.held[service] = version
			delete(cl.refused, service)
		}
	}
	if c.obs.OnAck == nil {
		return nil
	}
	var taken []uint64
	for p := range c.generations {
		if generation := c.newest(p, contents); generation > 0 {
			taken = append(taken, generation)
		}
	}
	node := cl.node
	return func() {
		for _, generation := range taken {
			c.obs.OnAck(node, generation)
		}
	}
}
