package main

import (
	"fmt"
	"slices"
	"strings"
)

// arm is one way to route, measured side by side with the others.
type arm struct {
	name string
	// policy is lb_policy of the arm's cluster; empty for the shipped cluster, in
	// which the router's choice decides.
	policy string
	// router is what Envoy asks, if anything.
	router router
	// lean: the no-op is made like warmpath, and not with gRPC's defaults.
	lean bool
	// strategy is warmpath's, length its prefix length if that is not prefixLength.
	strategy, length string
	// module is a peer's Python module.
	module string
	// twin is the arm that gets the same messages from Envoy and does nothing.
	twin string
	// silent: everything that only tells is off: metrics, the live page, inspection.
	silent bool
	// quiet is the arm that is the same but silent.
	quiet string
}

// router is a kind of program that decides.
type router int

const (
	nothing     router = iota
	noop               // asks for the body
	noopHeaders        // answers to the headers
	warmpath
	peer // in the place of Envoy: clients send to it
)

// Names that the report looks for.
const (
	baseline = "envoy-round-robin"
	aware    = "warmpath-prefix-aware"
)

// arms are all ways, in the order of the report. The peers route by prefix too, with
// a tree of what they sent where (cache_aware).
var arms = []arm{
	{name: baseline, policy: "ROUND_ROBIN"},
	{name: "envoy-ring-hash", policy: "RING_HASH"},
	{name: "envoy-maglev", policy: "MAGLEV"},
	{name: "noop-headers", router: noopHeaders},
	{name: "noop", router: noop},
	{name: "noop-again", router: noop, twin: "noop"}, // how far two arms are apart that are the same
	{name: "noop-lean", router: noop, lean: true, twin: "noop"},
	{name: "warmpath-random", router: warmpath, strategy: "RANDOM", twin: "noop-headers"},
	{name: "warmpath-least", router: warmpath, strategy: "LEAST_OUTSTANDING_REQUESTS", twin: "noop-headers"},
	{name: aware, router: warmpath, strategy: "PREFIX_AWARE", twin: "noop"},
	{name: "warmpath-auto", router: warmpath, strategy: "PREFIX_AWARE", length: "auto", twin: "noop", quiet: "warmpath-auto-silent"},
	{name: "warmpath-auto-silent", router: warmpath, strategy: "PREFIX_AWARE", length: "auto", twin: "noop", silent: true},
	{name: "warmpath-kv-aware", router: warmpath, strategy: "KV_AWARE", twin: "noop"},
	{name: "sglang-router", router: peer, module: "sglang_router"},
	{name: "smg", router: peer, module: "smg"},
	{name: "vllm-router", router: peer, module: "vllm_router"},
}

// ownArms are what is measured unless something else is asked for: all but the
// peers, which have to be installed.
func ownArms() string {
	var names []string
	for _, a := range arms {
		if a.router != peer {
			names = append(names, a.name)
		}
	}
	return strings.Join(names, ",")
}

func armNames() []string {
	names := make([]string, len(arms))
	for i, a := range arms {
		names[i] = a.name
	}
	return names
}

// chosenArms returns the arms of a comma-separated list in the order of the
// report, and always the one that the others are compared with.
func chosenArms(list string) ([]arm, error) {
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.Contains(armNames(), name) {
			return nil, fmt.Errorf("arm %q: want some of %s", name, strings.Join(armNames(), ","))
		}
	}
	return slices.DeleteFunc(slices.Clone(arms), func(a arm) bool {
		return a.name != baseline && !slices.Contains(wanted, a.name)
	}), nil
}
