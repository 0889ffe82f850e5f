package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/route"
)

// rising is conversations that come faster and faster: from one to so many requests a
// second within so long, and then on for as long again.
func rising(length time.Duration, most float64) []Job {
	var jobs []Job
	turns := make(map[int]int)
	for at, i := time.Duration(0), 0; at < 2*length; i++ {
		rate := 1 + (most-1)*min(float64(at)/float64(length), 1)
		talk := (i*7919)%200 + 1000*int(at/(2*time.Minute)) // others after two minutes
		turns[talk] = min(turns[talk]+1, 30)
		j := job(at, chunks("system", 8, talk, 4*turns[talk]))
		j.Output = 300
		jobs = append(jobs, j)
		at += time.Duration(float64(time.Second) / rate)
	}
	return jobs
}

// A fleet that follows the demand grows before its requests overflow; one that stays
// as it was at the beginning does not serve them at home.
func TestFleetGrowsBeforeItOverflows(t *testing.T) {
	scale := &Scale{Every: 15 * time.Second, Delay: time.Minute, Most: 30}
	for _, policy := range []route.Policy{
		{Strategy: route.PrefixAware, PrefixLength: 8192, ConcurrencyThreshold: 8},
		{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength, ConcurrencyThreshold: 8},
		{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength, ConcurrencyThreshold: 16},
	} {
		t.Run(fmt.Sprint(policy.PrefixLength, policy.ConcurrencyThreshold), func(t *testing.T) {
			jobs := rising(10*time.Minute, float64(policy.ConcurrencyThreshold))
			share := func(jobs []Job, s *Scale) (float64, int) {
				t.Helper()
				r, err := Run(Config{Jobs: jobs, Replicas: fleetOf(2), Policy: NewOwn(policy), Seed: 1, Scale: s})
				if err != nil {
					t.Fatal(err)
				}
				return float64(r.Overflowed) / float64(r.Requests), len(r.Shares)
			}
			alone, _ := share(jobs[:len(jobs)/2], nil)
			grown, replicas := share(jobs, scale)
			t.Logf("%.2f %% overflow without scaling, %.2f %% with, at last on %d replicas", 100*alone, 100*grown, replicas)
			if alone < 0.1 || grown > 0.01 || replicas >= scale.Most {
				t.Error("the fleet should have grown before 1 % overflowed, and 10 % without")
			}
		})
	}
}
