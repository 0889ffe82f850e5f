package modelserver

import (
	"context"
	"sync"
	"time"

	"github.com/warmpath/warmpath/internal/fleet"
)

// Scraper reads the metrics of endpoints: GET /metrics of each, when it comes and once an
// interval. An endpoint that several pools have is asked once.
type Scraper struct {
	rounds *rounds
	told   func(address string, e Engine, err error)

	mu    sync.Mutex
	pools map[string]fleet.Set
}

// NewScraper returns a scraper that tells of what each endpoint has answered, or why
// that cannot be used. told is called concurrently.
func NewScraper(interval time.Duration, told func(address string, e Engine, err error)) *Scraper {
	return &Scraper{rounds: newRounds(interval), told: told, pools: make(map[string]fleet.Set)}
}

// SetPool replaces a pool's endpoints. Those that no pool had are asked at once.
func (s *Scraper) SetPool(name string, set fleet.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[name] = set
	var all []fleet.Endpoint
	for _, pool := range s.pools {
		for _, e := range pool.Endpoints() {
			all = append(all, fleet.Endpoint{Address: e.Address, Weight: 1})
		}
	}
	union, _ := fleet.NewSet(all) // who is in several is in it once
	s.rounds.set(union)
}

// Run asks until ctx ends.
func (s *Scraper) Run(ctx context.Context) {
	s.rounds.run(ctx, func(ctx context.Context, address string) {
		if metrics, err := s.ask(ctx, address); ctx.Err() == nil {
			s.told(address, metrics, err)
		}
	}, func(fleet.Set, bool) {})
}

func (s *Scraper) ask(ctx context.Context, address string) (Engine, error) {
	answer, err := s.rounds.get(ctx, address, MetricsPath, "warmpath-metrics")
	if err != nil {
		return Engine{}, err
	}
	defer answer.Close()
	return ParseMetrics(answer)
}
