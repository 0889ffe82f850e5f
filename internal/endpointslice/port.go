package endpointslice

import (
	"fmt"
	"strconv"
	"strings"
)

// PortRef says which port of a Service's endpoints is meant. The zero PortRef is
// the only one that they have.
type PortRef struct {
	// Name is that of a port of the Service; empty when Number says it.
	Name string
	// Number is the port on which the endpoints themselves listen.
	Number uint16
}

// maxPortName is the longest name that Kubernetes takes, a DNS label.
const maxPortName = 63

// ParsePort reads the name or the number of a port; "" is the only one.
func ParsePort(s string) (PortRef, error) {
	if s == "" {
		return PortRef{}, nil
	}
	if strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return PortRef{}, fmt.Errorf("port %q: want a number in 1..65535", s)
		}
		return PortRef{Number: uint16(n)}, nil
	}
	letters := strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-")
	if letters != "" || len(s) > maxPortName || s[0] == '-' || s[len(s)-1] == '-' {
		return PortRef{}, fmt.Errorf("port %.80q: want 1..65535 or the name of a Service's port (a-z, 0-9 and - within, at most %d)", s, maxPortName)
	}
	return PortRef{Name: s}, nil
}

// String is what [ParsePort] reads.
func (p PortRef) String() string {
	if p.Number != 0 {
		return strconv.Itoa(int(p.Number))
	}
	return p.Name
}

// of returns the number of the port in a slice, or why there is none.
func (p PortRef) of(s Slice) (number uint16, fault string) {
	var found []int64
	var offered []string
	for _, candidate := range s.Ports {
		if candidate.Port == nil || *candidate.Port < 1 || *candidate.Port > 65535 || candidate.Protocol != "" && candidate.Protocol != "TCP" {
			continue
		}
		offered = append(offered, fmt.Sprintf("%.80q %d", candidate.Name, *candidate.Port))
		if p == (PortRef{}) || p.Name != "" && p.Name == candidate.Name || p.Number != 0 && int64(p.Number) == *candidate.Port {
			found = append(found, *candidate.Port)
		}
	}
	switch {
	case len(found) == 1 || len(found) > 1 && p != (PortRef{}):
		return uint16(found[0]), ""
	case len(s.Ports) == 0 && p.Number != 0: // a headless Service need not name its ports
		return p.Number, ""
	case len(found) > 1:
		return 0, fmt.Sprintf("has %d ports (%s): say which one", len(found), list(offered))
	case len(offered) == 0:
		return 0, "has no TCP port: give the endpoints' own by its number"
	default:
		return 0, fmt.Sprintf("has no TCP port %q (it has %s)", p, list(offered))
	}
}

// list joins words for a message, the first few of them.
func list(words []string) string {
	const most = 5
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	return strings.Join(words, ", ")
}
