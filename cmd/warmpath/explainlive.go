package main

import (
	"math/rand/v2"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/live/web"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
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
	d := pool.Router.Preview(route.Request{
		Key: result.Key, Keyed: result.Kind != prefix.None, Levels: result.Levels, Chars: read(result, pool, q.Body),
		Model: result.Model, Adapter: result.Adapter, Now: p.extproc.Now(), Random: rand.Uint64(),
	})
	cached := -1
	if d.WarmKnown() {
		cached = d.Warm
	}
	x.Decision = live.ViewDecision(pool.Name, &d, cached, max(result.Chars, d.Warm))
	x.Homes = append(x.Homes, homeLoads(pool.Router, &d)...)
	return x, nil
}

// read is how many characters a prompt has, or about as many as its body has bytes if it
// goes on behind what was read.
func read(result prefix.Result, pool *extproc.Pool, body []byte) int {
	if result.Chars < pool.Router.Table().Policy().ReadLength() {
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
