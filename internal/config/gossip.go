package config

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/internal/config/strict"
)

// Gossip says how several warmpath processes tell each other of their loads.
type Gossip struct {
	// Listen is where to hear others, "ip:port"; empty switches gossip off.
	Listen string `yaml:"listen"`
	// Advertise is where others reach this process, "ip:port"; empty for Listen, or
	// the first private address if that is on all interfaces.
	Advertise string `yaml:"advertise"`
	// Join are others to begin with, "host:port"; a name may stand for several.
	Join []string `yaml:"join,flow"`
	// KeyFile has the key that encrypts and authenticates, as written; see
	// [Gossip.KeyPath]. Empty for plain text that everybody may send.
	KeyFile string `yaml:"keyFile"`
}

// maxJoin bounds Gossip.Join.
const maxJoin = 64

// KeyPath is where the key is, empty if there is none.
func (g Gossip) KeyPath(configPath string) string { return beside(configPath, g.KeyFile) }

func (g *Gossip) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "listen", Decode: func(v strict.Value) { decodeGossipAddress(v, &g.Listen) }},
		strict.Field{Name: "advertise", Decode: func(v strict.Value) { decodeGossipAddress(v, &g.Advertise) }},
		strict.Field{Name: "join", Decode: g.decodeJoin},
		strict.Field{Name: "keyFile", Decode: strict.Text(&g.KeyFile)},
	)
	if ip, err := netip.ParseAddrPort(g.Advertise); err == nil && ip.Addr().IsUnspecified() {
		v.Report("advertise", "%q is every address and none that others could reach (want ip:port)", g.Advertise)
	}
}

// decodeGossipAddress reads ip:port, or "".
func decodeGossipAddress(v strict.Value, dst *string) {
	s, ok := v.Scalar("!!str", `an address such as 10.0.0.7:9005, or ""`)
	if !ok || s == "" {
		return
	}
	*dst = s // also one that is refused: it is not missing
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 || a.Addr().Zone() != "" {
		v.Reject(`is not ip:port (port 1..65535), nor ""`)
	}
}

// gossipHost is a DNS name or an IPv4 address.
var gossipHost = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})$`)

func (g *Gossip) decodeJoin(v strict.Value) {
	join := []string{}
	isList := v.Each(func(i int, item strict.Value) {
		s, ok := item.Scalar("!!str", "host:port")
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(s)
		n, portErr := strconv.ParseUint(port, 10, 16)
		_, notIP := netip.ParseAddr(host)
		switch {
		case i == maxJoin:
			item.Reject("is one too many (want %d at most)", maxJoin)
		case i > maxJoin:
		case err != nil || portErr != nil || n == 0 || notIP != nil && !gossipHost.MatchString(host):
			item.Reject("is not the host:port of another warmpath's gossip (port 1..65535)")
		case slices.Contains(join, s):
			item.Reject("is in the list already")
		default:
			join = append(join, s)
		}
	})
	if isList {
		g.Join = join
	}
}

// check reports what does not fit together.
func (g *Gossip) check(root strict.Value, l Listen) {
	if g.Listen == "" {
		if g.Advertise != "" || len(g.Join) > 0 || g.KeyFile != "" {
			root.Report("gossip.listen", "is missing, so nothing is heard from others (want ip:port)")
		}
		return
	}
	for _, other := range []struct{ name, address string }{{"extProc", l.ExtProc}, {"xds", l.XDS}, {"admin", l.Admin}} {
		if collide(g.Listen, other.address) {
			root.Report("gossip.listen", "%q takes the port of listen.%s (%s)", g.Listen, other.name, other.address)
		}
	}
}
