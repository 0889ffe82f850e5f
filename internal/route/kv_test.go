package route

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/load"
	"pgregory.net/rapid"
)

func kvRouter(threshold int, list ...fleet.Endpoint) *Router {
	router := NewRouter(Policy{Strategy: KVAware, ConcurrencyThreshold: threshold})
	router.SetMembership(setOf(list...))
	return router
}

// Conversations come back to where they are warm; of several that are, the one
// that has most of the prompt.
func TestKVAwareFindsTheLongestMatch(t *testing.T) {
	router := kvRouter(AutoConcurrencyThreshold, endpoints(8)...)
	table, now := router.Table(), int64(0)
	send := func(levels []uint64) Decision {
		now += 1e9
		d, slot := table.Pick(ask(levels, now))
		slot.Release()
		return d
	}
	was := make(map[int]string)
	used := make(map[string]bool)
	for talk := range 40 {
		d := send(prompt(fmt.Sprint("talk", talk), 8))
		if d.Reason != ByLeastOutstanding || d.Warm != 0 || d.HomeCount != 0 || len(d.Homes()) != 0 || d.Rank != NoRank {
			t.Fatalf("nobody is warm: %+v", d)
		}
		was[talk] = d.Chosen
		used[d.Chosen] = true
	}
	if len(used) < 6 {
		t.Errorf("40 new conversations on an idle fleet went to %d endpoints of 8", len(used))
	}
	for talk, address := range was {
		d := send(prompt(fmt.Sprint("talk", talk), 8, "turn", 8))
		if d.Chosen != address || d.Reason != Warm || d.Warm != 8*LevelChars || len(d.Choices()) != MaxChoices {
			t.Errorf("talk %d is warm at %s: %+v", talk, address, d)
		}
	}
	// The longer the match the better: a fork of a conversation at another endpoint.
	long := prompt("talk0", 8, "turn", 8)
	holder := was[0]
	for _, c := range table.candidates {
		if c.address != holder { // it served the beginning alone
			table.memory.Lock()
			table.memory.Remember(long[3], c.id)
			table.memory.Unlock()
			break
		}
	}
	if d := send(long); d.Chosen != holder || d.Warm != len(long)*LevelChars {
		t.Errorf("the longest match is at %s: %+v", holder, d)
	}
}

// A holder without room, or with much to do, is passed over for the least loaded.
func TestKVAwareLeavesBusyHolders(t *testing.T) {
	router := kvRouter(2, endpoints(4)...)
	table := router.Table()
	levels := prompt("hot", 16)
	first, _ := table.Pick(ask(levels, 1))
	second, _ := table.Pick(ask(levels, 2))
	third, _ := table.Pick(ask(levels, 3))
	if second.Chosen != first.Chosen || second.Reason != Warm {
		t.Errorf("warm and not full: %+v", second)
	}
	if third.Chosen == first.Chosen || third.Reason != ByLeastOutstanding || third.Load != 0 {
		t.Errorf("its holder is at the bound: %+v", third)
	}

	table = kvRouter(AutoConcurrencyThreshold, endpoints(4)...).Table()
	holder, _ := table.Pick(ask(prompt("short", 4), 1))
	table.memory.Give(table.candidates[table.candidateOf(table.memory.ID(holder.Chosen))].id, 1, 60e9)
	if d, _ := table.Pick(ask(prompt("short", 4), 2)); d.Chosen == holder.Chosen || d.Reason != ByLeastOutstanding {
		t.Errorf("its holder is busy for a minute: %+v", d)
	}
}

// Against a twin that remembers everything: no endpoint runs more than the
// threshold while another has room, warm means served before, and cold means the
// least loaded of those with room.
func TestKVAwareAgreesWithTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "endpoints")
		list := endpoints(n)
		for i := range list {
			list[i].Weight = rapid.SampledFrom([]uint32{1, 1, 4}).Draw(t, "weight")
		}
		threshold := rapid.IntRange(1, 4).Draw(t, "threshold")
		router := kvRouter(threshold, list...)
		served := make(map[string]map[uint64]bool)
		loads := make(map[string]int)
		var running []load.Reservation
		var where []string
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(running) > 0 && rapid.Bool().Draw(t, "release") {
				running[0].Release()
				loads[where[0]]--
				running, where = running[1:], where[1:]
			}
			levels := prompt(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "talk")), rapid.IntRange(1, 6).Draw(t, "length"))
			r := ask(levels, int64(step)*1e9)
			r.Random = rapid.Uint64().Draw(t, "random")
			d, slot := router.Table().Pick(r)
			room := false
			for _, e := range list {
				room = room || loads[e.Address] < threshold
			}
			warm := 0
			for i, key := range levels {
				if !served[d.Chosen][key] {
					break
				}
				warm = (i + 1) * LevelChars
			}
			switch {
			case d.Load != int64(loads[d.Chosen]):
				t.Fatalf("load %d, twin counts %d", d.Load, loads[d.Chosen])
			case (d.Reason == Saturated) == room:
				t.Fatalf("%s, but room is %v: %v", d.Reason, room, loads)
			case d.Reason != Saturated && loads[d.Chosen] >= threshold:
				t.Fatalf("%s over the bound: %v", d.Chosen, loads)
			case d.Warm != warm || d.Reason == Warm && warm == 0:
				t.Fatalf("%s with %d warm, twin has %d", d.Reason, d.Warm, warm)
			}
			if d.Reason == ByLeastOutstanding {
				for _, e := range list {
					other, _ := set(list, d.Chosen)
					if loads[e.Address] < threshold && float64(loads[e.Address]+1)/float64(e.Weight) < float64(loads[d.Chosen]+1)/float64(other.Weight) {
						t.Fatalf("%s is not the least loaded: %v", d.Chosen, loads)
					}
				}
			}
			if served[d.Chosen] == nil {
				served[d.Chosen] = make(map[uint64]bool)
			}
			for _, key := range levels {
				served[d.Chosen][key] = true
			}
			loads[d.Chosen]++
			running, where = append(running, slot), append(where, d.Chosen)
		}
	})
}

func set(list []fleet.Endpoint, address string) (fleet.Endpoint, bool) {
	for _, e := range list {
		if e.Address == address {
			return e, true
		}
	}
	return fleet.Endpoint{}, false
}

func TestKVAwareDoesNotAllocate(t *testing.T) {
	allocatesNothing(t, kvRouter(AutoConcurrencyThreshold, endpoints(16)...).Table())
}

// An endpoint that was away may have lost its cache: it comes back cold. Those that
// stayed keep what they have.
func TestWhoWasAwayIsCold(t *testing.T) {
	list := endpoints(3)
	router := kvRouter(AutoConcurrencyThreshold, list...)
	now := int64(0)
	send := func(levels []uint64) Decision {
		now += 1e9
		d, slot := router.Table().Pick(ask(levels, now))
		slot.Release()
		return d
	}
	was := make(map[int]string)
	for talk := range 12 {
		was[talk] = send(prompt(fmt.Sprint("talk", talk), 8)).Chosen
	}
	list[1].State = fleet.Unhealthy
	router.SetMembership(setOf(list...))
	list[1].State = fleet.Healthy
	router.SetMembership(setOf(list...))
	for talk, address := range was {
		d := send(prompt(fmt.Sprint("talk", talk), 8))
		if stayed := address != list[1].Address; (d.Reason == Warm) != stayed || stayed && d.Chosen != address {
			t.Errorf("talk %d was at %s: %+v", talk, address, d)
		}
	}
}
