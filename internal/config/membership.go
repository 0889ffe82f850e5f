package config

import (
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
)

// maxDrainTimeout is the longest that a removed endpoint is waited for.
const maxDrainTimeout = 24 * time.Hour

const noSource = "no endpoints: want one of static (a list), file (a path), dns (a name), api (they come over HTTP) and kubernetes (a Service)"

func (m *Membership) decode(v strict.Value) {
	var sources []string
	source := func(name string, decode func(strict.Value)) strict.Field {
		return strict.Field{Name: name, Decode: func(v strict.Value) {
			sources = append(sources, name)
			decode(v)
		}}
	}
	isMapping := v.Fields(
		source("static", func(v strict.Value) {
			list := decodeList(v)
			m.Static = list.Endpoints
			v.Pass(list.Problems)
		}),
		source("file", func(v strict.Value) {
			if word, ok := v.Word(); ok && word == "" {
				v.Reject("is not the path of a membership file")
				return
			}
			strict.Path(&m.File)(v)
		}),
		source("kubernetes", func(v strict.Value) { m.Kubernetes.decode(v) }),
		source("dns", func(v strict.Value) {
			m.DNS = defaultDNS()
			m.DNS.decode(v)
		}),
		source("api", func(v strict.Value) {
			m.API = &API{}
			m.API.decode(v)
		}),
		strict.Field{Name: "drainTimeout", Decode: strict.Duration(&m.DrainTimeout, 0, maxDrainTimeout)},
	)
	switch {
	case !isMapping:
	case len(sources) > 1:
		v.Report("", "%s exclude each other: want exactly one source of endpoints", strings.Join(sources, " and "))
	case len(sources) == 0:
		v.Report("", noSource)
	}
}

// EndpointList is what a list of endpoints holds, entry by entry.
type EndpointList struct {
	// Endpoints are the good entries in the order of the list, each address once.
	Endpoints []fleet.Endpoint
	// Refused are the addresses of entries that say which endpoint they mean but
	// have another fault, such as a weight out of range.
	Refused []string
	// Problems has at least one for every entry that is not in Endpoints.
	Problems Problems
}

// DecodeEndpoints reads the text of a membership file; name stands in messages.
// The second result is why the file as a whole says nothing about the
// membership; the faults of single entries are in the list.
func DecodeEndpoints(name string, data []byte) (EndpointList, Problems) {
	var problems Problems
	var list EndpointList
	found := false
	root := strict.Parse(name, data, watch.MaxBytes, &problems)
	isMapping := root.Fields(strict.Field{Name: "endpoints", Decode: func(v strict.Value) {
		found = true
		list = decodeList(v)
	}})
	if isMapping && !found {
		root.Report("endpoints", "the list of endpoints is missing (write endpoints: [] for none)")
	}
	return list, problems
}

// DecodeEndpoint reads one entry of a membership file; name stands in messages.
func DecodeEndpoint(name string, data []byte) (fleet.Endpoint, Problems) {
	var problems Problems
	root := strict.Parse(name, data, maxConfigBytes, &problems)
	if !root.OK() {
		return fleet.Endpoint{}, problems
	}
	return decodeEndpoint(root), problems
}

// decodeList reads entries and keeps the first good one of each address, as
// Envoy does.
func decodeList(v strict.Value) EndpointList {
	list := EndpointList{Endpoints: []fleet.Endpoint{}}
	kept := make(map[string]int)
	refused := make(map[string]bool)
	v.Each(func(i int, item strict.Value) {
		var faults Problems
		e := decodeEndpoint(item.Into(&faults))
		if first, again := kept[e.Address]; again {
			item.Into(&faults).Report("address", "%s is in the list already, as entry %d: the first is kept", e.Address, first)
		}
		switch {
		case len(faults) == 0:
			kept[e.Address] = i
			list.Endpoints = append(list.Endpoints, e)
		case e.Address != "" && !refused[e.Address]:
			refused[e.Address] = true
			list.Refused = append(list.Refused, e.Address)
		}
		list.Problems = append(list.Problems, faults...)
	})
	return list
}

// decodeEndpoint reads one entry. Its address is empty unless it is usable.
func decodeEndpoint(v strict.Value) fleet.Endpoint {
	e := fleet.Endpoint{Weight: fleet.MinWeight}
	hasAddress := false
	isMapping := v.Fields(
		strict.Field{Name: "address", Decode: func(v strict.Value) {
			hasAddress = true
			decodeEndpointAddress(v, &e.Address)
		}},
		strict.Field{Name: "weight", Decode: strict.Int(&e.Weight, fleet.MinWeight, fleet.MaxWeight)},
		strict.Field{Name: "state", Decode: func(v strict.Value) { decodeState(v, &e.State) }},
		strict.Field{Name: "zone", Decode: func(v strict.Value) { decodePlace(v, "a zone", &e.Zone) }},
		strict.Field{Name: "priority", Decode: strict.Int(&e.Priority, 0, fleet.MaxPriority)},
		strict.Field{Name: "instance", Decode: func(v strict.Value) { decodePlace(v, "an instance", &e.Instance) }},
		strict.Field{Name: "adapters", Decode: func(v strict.Value) {
			var names []string
			decodeNames(v, &names, "adapter", claims{})
			e.Adapters = fleet.NewNames(names...)
		}},
	)
	if isMapping && !hasAddress {
		v.Report("address", "the address is missing (want ip:port or [ip]:port)")
	}
	return e
}

// hostName matches what somebody meant as a DNS name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_.-]*[G-Zg-z_-][A-Za-z0-9_.-]*$`)

func decodeEndpointAddress(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", "an address (want ip:port or [ip]:port)")
	if !ok {
		return
	}
	canonical, err := fleet.ParseAddress(s)
	if err == nil {
		*dst = canonical
		return
	}
	if host, _, splitErr := net.SplitHostPort(s); splitErr == nil && hostName.MatchString(host) {
		v.Reject("is a host name, which makes Envoy refuse the whole list (want ip:port or [ip]:port)")
		return
	}
	_, reason, _ := strings.Cut(err.Error(), `": `)
	v.Reject("is not the address of an endpoint: %s", reason)
}

func decodeState(v strict.Value, dst *fleet.State) {
	names := []string{fleet.Healthy.String(), fleet.Unhealthy.String(), fleet.Draining.String()}
	name := dst.String()
	strict.Enum(&name, names...)(v)
	if state, err := fleet.ParseState(name); err == nil {
		*dst = state
	}
}

// placeName is printable ASCII without blanks.
var placeName = regexp.MustCompile(`^[!-~]{0,128}$`)

// decodePlace reads the name of a zone or an instance.
func decodePlace(v strict.Value, what string, dst *string) {
	s, ok := v.Scalar("!!str", what+" (quote it)")
	if !ok {
		return
	}
	if !placeName.MatchString(s) {
		v.Reject("is not %s (want at most 128 characters, no blanks)", what)
		return
	}
	*dst = s
}
