package main

import (
	"runtime"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/warmpath/warmpath/internal/route"
)

// tableRow is what a change of membership and a decision take in the router.
type tableRow struct {
	Endpoints int `json:"endpoints"`
	// Table is how long a new table takes, sorted, and Allocations and Bytes what is
	// allocated for one.
	Table       []time.Duration `json:"table_ns"`
	Allocations uint64          `json:"allocations"`
	Bytes       uint64          `json:"bytes"`
	// Auto and Fixed are how long a decision takes with prefixLength auto and one of
	// 4,096, in the middle.
	Auto  time.Duration `json:"auto_ns"`
	Fixed time.Duration `json:"fixed_ns"`
}

// tables is how many are built, and decisions how many are made.
const tables, decisions = 50, 2000

func measureTable(endpoints int) tableRow {
	row := tableRow{Endpoints: endpoints}
	policy := route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
	router := route.NewRouter(policy)
	router.SetMembership(members(endpoints, 0))
	var before, after runtime.MemStats
	var allocated, bytes uint64
	for i := range tables {
		set := members(endpoints, i+1)
		runtime.ReadMemStats(&before)
		begin := time.Now()
		router.SetMembership(set)
		row.Table = append(row.Table, time.Since(begin))
		runtime.ReadMemStats(&after)
		allocated, bytes = allocated+after.Mallocs-before.Mallocs, bytes+after.TotalAlloc-before.TotalAlloc
	}
	slices.Sort(row.Table)
	row.Allocations, row.Bytes = allocated/tables, bytes/tables
	row.Auto = decide(router)
	policy.PrefixLength = 4096
	router.SetPolicy(policy)
	row.Fixed = decide(router)
	return row
}

// decide returns how long a decision takes, in the middle: those of 100
// conversations with one beginning.
func decide(router *route.Router) time.Duration {
	var times []time.Duration
	for i := range decisions {
		levels := make([]uint64, 40)
		h := uint64(1)
		for l := range levels {
			if l == 8 { // here conversations differ
				h += uint64(i % 100)
			}
			h = xxhash.Sum64([]byte{byte(h), byte(h >> 8), byte(h >> 16), byte(h >> 24), byte(l)})
			levels[l] = h
		}
		r := route.Request{Key: levels[15], Keyed: true, Levels: levels, Chars: len(levels) * route.LevelChars, Now: int64(i) * 1e6}
		table := router.Table()
		begin := time.Now()
		_, slot := table.Pick(r)
		times = append(times, time.Since(begin))
		slot.Release()
	}
	slices.Sort(times)
	return times[len(times)/2]
}
