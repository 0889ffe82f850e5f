package sim

import (
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/bench/replica/engine"
	"github.com/warmpath/warmpath/internal/route"
)

// Named makes a policy by its name.
func Named(name string, p engine.Params) Maker {
	cache := p.KVTokens
	switch {
	case name == "own":
		return NewOwn(route.Policy{Strategy: route.PrefixAware})
	case strings.HasPrefix(name, "prefix:"):
		n, _ := strconv.Atoi(name[7:])
		return NewOwn(route.Policy{Strategy: route.PrefixAware, PrefixLength: n})
	case name == "random":
		return NewRandom
	case name == "rr":
		return NewRoundRobin
	case name == "least":
		return NewLeast
	case name == "p2c":
		return NewTwoChoices
	case name == "sgl":
		return NewSGLang(cache)
	case name == "sticky":
		return NewSticky(cache, 1/p.PrefillToken.Seconds(), 2)
	case name == "lmetric":
		return NewLMetric(cache)
	case name == "oracle":
		return NewOracle(0)
	case name == "oracleb":
		return NewOracle(1.25)
	case strings.HasPrefix(name, "auto"):
		return func(_, routers int) Policy {
			cache := cache
			o := protoOptions{alpha: 2, window: 500, maxLvl: 512, rate: 1 / p.PrefillToken.Seconds(), a: 10, eps: 0.02, spill: 0.5, rho: 1, routers: routers}
			if routers > 1 {
				o.spill = 2
			}
			for _, f := range strings.Split(name, ":")[1:] {
				k, v, _ := strings.Cut(f, "=")
				x, _ := strconv.ParseFloat(v, 64)
				switch k {
				case "a":
					o.alpha = x
				case "w":
					o.window = x
				case "cost":
					o.cost, o.table = true, true
				case "flat":
					o.flat = true
				case "spill":
					o.spill = x
				case "eps":
					o.eps = x
				case "leave":
					o.leave = x
				case "A":
					o.a = x
				case "nobound":
					o.nobound = true
				case "nokset":
					o.nokset = true
				case "floor":
					o.floor = x
				case "leaky":
					o.leaky = true
				case "tab":
					cache = int(float64(cache) * x)
				case "b1":
					o.b1 = x
				case "b2":
					o.b2 = x
				case "hot":
					o.hot = true
				case "rho":
					o.rho = x
				case "rate":
					o.rate *= x
				}
			}
			if o.b1 == 0 {
				o.b1, o.b2 = 2, 32
			}
			return newProto(o, cache/ChunkTokens*9/10)
		}
	case strings.HasPrefix(name, "hb"):
		n, _ := strconv.Atoi(name[2:])
		return NewHash(n*16, 1.25)
	case strings.HasPrefix(name, "h"):
		n, _ := strconv.Atoi(name[1:])
		return NewHash(n*16, 0)
	}
	return nil
}
