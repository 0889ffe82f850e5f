package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/gossip"
	"github.com/warmpath/warmpath/internal/route"
)

// startGossip takes part, if the configuration wants that.
func (p *program) startGossip() error {
	c := p.config.Gossip
	if c.Listen == "" {
		return nil
	}
	key, err := gossipKey(c, p.path)
	if err != nil {
		return usageError{err}
	}
	m := p.metrics.Gossip
	p.gossip, err = gossip.Start(gossip.Options{
		Listen: c.Listen, Advertise: c.Advertise, Join: c.Join, Key: key, Router: rand.Uint64N(1<<64-1) + 1,
		Fleet: shared{p}, Log: p.log,
		Observer: gossip.Observer{Sent: m.Sent.Inc, Received: m.Received.Inc, Failed: m.Failed.Inc},
	})
	if err != nil {
		return fmt.Errorf("gossip.listen: %w", err)
	}
	p.eachRouter(func(r *route.Router) { r.Share(true) })
	p.metrics.WatchGossip(p.gossipState)
	if gossipExposed(c) {
		p.log.Warn("gossip.listen " + gossipExposure)
	}
	return nil
}

// gossipState is how many others are heard, and how long ago, at most, they spoke.
func (p *program) gossipState() (peers int, age time.Duration) {
	for _, one := range p.gossip.Peers() {
		if !one.Silent {
			peers, age = peers+1, max(age, one.Age)
		}
	}
	return peers, age
}

// gossipExposed reports whether others than this machine's processes may tell
// counts without a key.
func gossipExposed(c config.Gossip) bool { return config.Exposed(c.Listen) && c.KeyFile == "" }

const gossipExposure = "hears everybody on the network, and gossip.keyFile is not set: whoever reaches it can feign loads"

// maxKeyFile bounds what is read of a key file, in bytes.
const maxKeyFile = 1024

// gossipKey reads the key that the configuration names, nil if none.
func gossipKey(c config.Gossip, configPath string) ([]byte, error) {
	path := c.KeyPath(configPath)
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gossip.keyFile: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("gossip.keyFile: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	switch {
	case err != nil: // which would quote some of it
		return nil, fmt.Errorf("gossip.keyFile: %s is no base64, as openssl rand -base64 32 writes it", path)
	case !slices.Contains([]int{16, 24, 32}, len(key)):
		return nil, fmt.Errorf("gossip.keyFile: %s has a key of %d bytes, want 16, 24 or 32", path, len(key))
	}
	return key, nil
}

// checkGossip says what serve would refuse, and what it would warn of.
func checkGossip(c config.Gossip, path string) (warnings []string, err error) {
	if gossipExposed(c) {
		warnings = append(warnings, fmt.Sprintf("gossip.listen: %q %s", c.Listen, gossipExposure))
	}
	_, err = gossipKey(c, path)
	if info, statErr := os.Stat(c.KeyPath(path)); c.KeyFile != "" && statErr == nil && info.Mode().Perm()&0o004 != 0 {
		warnings = append(warnings, "gossip.keyFile: everybody on this machine can read "+c.KeyPath(path))
	}
	return warnings, err
}

// shared is the program's endpoints as gossip sees them: those of all pools.
type shared struct{ p *program }

// Endpoints implements gossip.Fleet.
func (s shared) Endpoints(f func(address string, outstanding int64, given time.Duration)) {
	outstanding := make(map[string]int64)
	for _, c := range s.p.loads.Snapshot() {
		outstanding[c.Address] = c.Outstanding
	}
	given := make(map[string]int64)
	s.p.eachRouter(func(r *route.Router) {
		r.Given(func(address string, work int64) { given[address] += work })
	})
	told := make(map[string]bool)
	s.p.eachRouter(func(r *route.Router) {
		set := r.Membership()
		for i := range set.Len() {
			if address := set.At(i).Address; !told[address] {
				told[address] = true
				f(address, outstanding[address], time.Duration(given[address]))
			}
		}
	})
}

// Placed implements gossip.Fleet.
func (s shared) Placed(f func(address string, levels []uint64)) {
	s.p.eachRouter(func(r *route.Router) { r.Placed(f) })
}

// SetOthers implements gossip.Fleet.
func (s shared) SetOthers(of func(address string) int64) { s.p.loads.SetOthers(of) }

// GiveElsewhere implements gossip.Fleet.
func (s shared) GiveElsewhere(address string, work time.Duration) {
	now := s.p.extproc.Now()
	s.p.eachRouter(func(r *route.Router) { r.GiveElsewhere(address, now, int64(work)) })
}

// PlaceElsewhere implements gossip.Fleet.
func (s shared) PlaceElsewhere(address string, levels []uint64) {
	s.p.eachRouter(func(r *route.Router) { r.PlaceElsewhere(address, levels) })
}

// SetRouters implements gossip.Fleet. What the configuration says is the least there
// are: a process that has never heard the others counts them too.
func (s shared) SetRouters(n int, heard bool) {
	n = max(n, int(s.p.routers.Load()))
	s.p.eachRouter(func(r *route.Router) { r.SetRouters(n, heard) })
}

func (p *program) eachRouter(f func(*route.Router)) {
	for _, one := range p.pools {
		f(one.router)
	}
}

// peerStatus is another router in /status.
type peerStatus struct {
	Router string `json:"router"`
	// AgeSeconds is the time since it last spoke. Its counts do not count while it is
	// silent.
	AgeSeconds  float64 `json:"ageSeconds"`
	Silent      bool    `json:"silent,omitempty"`
	Outstanding int64   `json:"outstanding"`
}

// peers lists the other routers in the order of their numbers, nil without gossip.
func (p *program) peers() []peerStatus {
	if p.gossip == nil {
		return nil
	}
	list := []peerStatus{}
	for _, one := range p.gossip.Peers() {
		list = append(list, peerStatus{fmt.Sprintf("%016x", one.Router), one.Age.Seconds(), one.Silent, one.Outstanding})
	}
	slices.SortFunc(list, func(a, b peerStatus) int { return strings.Compare(a.Router, b.Router) })
	return list
}
