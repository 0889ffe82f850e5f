package engine_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/bench/replica/engine"
)

// conversations are requests of the size of Mooncake's conversation trace:
// 12,031 of about 12,000 and 343 tokens, in blocks of 512, of conversations that
// grow by some blocks a turn.
func conversations() []arrival {
	random := rand.New(rand.NewPCG(1, 2))
	var live [100][]uint64
	arrivals := make([]arrival, 12_031)
	for i := range arrivals {
		c := random.IntN(len(live))
		if len(live[c]) > 42 {
			live[c] = nil
		}
		for range 1 + random.IntN(5) {
			live[c] = append(live[c], random.Uint64())
		}
		arrivals[i] = arrival{
			at: time.Duration(i) * 75 * time.Millisecond,
			r: engine.Request{
				PromptTokens: 512*len(live[c]) + random.IntN(512), OutputTokens: 1 + random.IntN(686), Blocks: slices.Clone(live[c]),
			},
		}
	}
	return arrivals
}

// BenchmarkFleet simulates them on 8 replicas, in turn:
//
//	go test ./bench/replica/engine -run - -bench Fleet -benchmem
func BenchmarkFleet(b *testing.B) {
	params := engine.Llama70B()
	params.BlockTokens = 512
	trace := conversations()
	for _, leaping := range []bool{false, true} {
		name := map[bool]string{false: "stepping", true: "leaping"}[leaping]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				steps := 0
				for replica := range 8 {
					steps += serve(b, params, trace, replica, leaping)
				}
				b.ReportMetric(float64(steps), "steps/op")
			}
		})
	}
}

// serve simulates every eighth arrival, and returns the number of steps.
func serve(b *testing.B, p engine.Params, trace []arrival, first int, leaping bool) (steps int) {
	s, err := engine.NewScheduler(p)
	if err != nil {
		b.Fatal(err)
	}
	for now, next := time.Duration(0), first; ; steps++ {
		for ; next < len(trace) && trace[next].at <= now; next += 8 {
			r := trace[next].r
			if err := s.Submit(&r); err != nil {
				b.Fatal(err)
			}
		}
		until := time.Duration(math.MaxInt64)
		if next < len(trace) {
			until = trace[next].at
		}
		leap := time.Duration(0)
		if leaping {
			leap = until - now
		}
		d, ok := s.Begin(leap)
		switch {
		case ok:
			now += d
			s.End()
		case next >= len(trace):
			return steps
		default:
			now = until
		}
	}
}

// A step allocates nothing once its slices have their size.
func TestStepsDoNotAllocate(t *testing.T) {
	s := scheduler(t, engine.Llama70B())
	for range 100 {
		submit(t, s, 1000, 1_000, nil)
	}
	for range 20 {
		s.Begin(0)
		s.End()
	}
	if n := testing.AllocsPerRun(100, func() { s.Begin(0); s.End() }); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}
