package gossip

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/gossip/merge"
)

// BenchmarkTell is one router's work for a round, without the network: of 1,000
// endpoints one in ten has changed, and 15 others have told the same. There are 20
// rounds a second.
func BenchmarkTell(b *testing.B) {
	f, teller, peers := newFake(), newTeller(16), merge.New()
	for i := range 1000 {
		f.outstanding[fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250)] = 1
	}
	teller.round(0, f)
	keys, _ := teller.members()
	peers.SetMembers(keys)
	bytes := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := 0
		for a := range f.outstanding {
			if n++; n > 100 {
				break
			}
			f.outstanding[a]++
		}
		now := time.Duration(i) * tellEvery
		for _, m := range teller.round(now, f) {
			data := must(encode(m, now))
			bytes += len(data)
			for router := range uint64(15) {
				got, err := decode(data)
				if err != nil {
					b.Fatal(err)
				}
				got.Router = router + 1
				peers.Hear(int64(now), got)
			}
		}
		sum := peers.Sum(int64(now))
		f.SetOthers(func(address string) int64 { key, _ := teller.key(address); return sum[key] })
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/round")
}
