package main

import (
	"testing"
	"time"
)

// A thousand endpoints, of which ten leave and ten come each second: those that the
// requests go to. None is lost, none goes elsewhere than decided.
func TestThousandEndpointsChurn(t *testing.T) {
	const endpoints, changes, away = 1000, 50, 10
	s, c := startInStandIn(t, endpoints, noHealth)
	tr := startTraffic(t, s, 4)
	tr.more(t, s, 200)
	var used []int // of the endpoints
	for i, address := range s.Replicas.Addresses() {
		if s.Replicas.Replica(address).Stats().Started > 0 {
			used = append(used, i)
		}
	}
	if len(used) <= away {
		t.Fatalf("requests go to %d endpoints only", len(used))
	}
	begin, sent := time.Now(), tr.sent.Load()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for i := range changes + away {
		<-ticker.C
		if i < changes {
			c.remove(used[i%len(used)])
		}
		if i >= away {
			c.add(used[(i-away)%len(used)])
		}
	}
	t.Logf("%d changes in %v, %d requests meanwhile, to %d endpoints at first", changes, time.Since(begin), tr.sent.Load()-sent, len(used))
	tr.more(t, s, 200) // on a busy machine the changes have piled up
	tr.end()
	envoyHas(t, s, endpoints)
	noMisses(t, s)
	atRest(t, s)
}
