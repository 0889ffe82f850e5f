package main

import (
	"math/rand/v2"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/live/web"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// explainLive tells what this process would decide on a request now: it counts nothing,
// remembers nothing, and nothing of the request is in the answer but lengths and hashes.
func (p *program) explainLive(q web.Question) (view.Explanation, error) {
	current := p.effective.Load().config
	pools, err := p.served(current)
	if err != nil {
		return view.Explanation{}, err
	}
	e := &explainer{options: explainOptions{path: q.Path, headers: q.Headers}, config: current, pools: pools}
	var scanner prefix.Scanner
	pool, unread, result := e.read(&scanner, q.Body)
	by, arm := pool.Router.Table().Policy(), trial.NoArm
	if current := pool.Trials.Current(); current != nil && current.Split != nil {
		by, arm = e.arm(&scanner, current.Split, by, q.Body, unread)
		result = e.scan(&scanner, e.head(), q.Body, unread, max(by.ReadLength(), 1))
	}
	x := view.Explanation{
		API: result.API.String(), Kind: result.Kind.String(), Pool: live.PoolName(pool.Name), TextChars: result.Chars,
		TenantSource: result.TenantSource.String(), Notes: []string{}, Homes: []view.Home{},
	}
	for name := range result.Notes.All {
		x.Notes = append(x.Notes, name)
	}
	if unread != extproc.NoProblem {
		x.Notes = append(x.Notes, unread.String())
	}
	d := pool.Router.PreviewBy(by, route.Request{
		Key: result.Key, Keyed: result.Kind != prefix.None, Levels: result.Levels, Chars: read(result, by, q.Body),
		Model: result.Model, Adapter: result.Adapter, Now: p.extproc.Now(), Random: rand.Uint64(),
	})
	cached := -1
	if d.WarmKnown() {
		cached = d.Warm
	}
	x.Decision = live.ViewDecision(pool.Name, &d, cached, max(result.Chars, d.Warm))
	x.Decision.Arm = arm.String()
	x.Homes = append(x.Homes, homeLoads(pool.Router, &d)...)
	return x, nil
}

// arm finds whose policy decides on a body while its pool is split.
func (e *explainer) arm(scanner *prefix.Scanner, split *trial.Split, main route.Policy, body []byte, unread extproc.Problem) (route.Policy, trial.Arm) {
	result := e.scan(scanner, e.head(), body, unread, split.ReadLength())
	if result.Kind == prefix.None {
		return main, trial.MainArm
	}
	arm := split.Arm(result.Levels, result.Key)
	if arm == trial.SplitArm {
		return split.Policy(), arm
	}
	return main, arm
}

// read is how many characters a prompt has, or about as many as its body has bytes if it
// goes on behind what was read.
func read(result prefix.Result, by route.Policy, body []byte) int {
	if result.Chars < by.ReadLength() {
		return result.Chars
	}
	return max(result.Chars, len(body))
}

// homeLoads are the homes of a decision and what runs there.
func homeLoads(r *route.Router, d *route.Decision) []view.Home {
	loads := make(map[string]view.Home)
	r.Bounds(func(address string, load, bound int64) {
		loads[address] = view.Home{Address: address, Load: load, Bound: bound}
	})
	var homes []view.Home
	for _, address := range d.Homes() {
		if home, ok := loads[address]; ok {
			homes = append(homes, home)
		}
	}
	return homes
}
