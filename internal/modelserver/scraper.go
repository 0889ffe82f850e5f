package modelserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/internal/fleet"
)

// Scraper reads the metrics of a pool's endpoints: GET /metrics of each, once an
// interval.
type Scraper struct {
	interval time.Duration
	told     func(address string, e Engine, err error)
	client   *http.Client

	mu      sync.Mutex
	members fleet.Set
}

// NewScraper returns a scraper that tells of what each endpoint has answered, or why
// that cannot be used. told is called concurrently.
func NewScraper(interval time.Duration, told func(address string, e Engine, err error)) *Scraper {
	return &Scraper{
		interval: interval, told: told,
		client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}, Timeout: min(timeout, interval),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// SetMembers replaces the endpoints that are asked, from the next interval on.
func (s *Scraper) SetMembers(set fleet.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = set
}

// Run asks until ctx ends.
func (s *Scraper) Run(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.askAll(ctx)
		}
	}
}

func (s *Scraper) askAll(ctx context.Context) {
	s.mu.Lock()
	members := s.members
	s.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, e := range members.Endpoints() {
		group.Go(func() error {
			if metrics, err := s.ask(ctx, e.Address); ctx.Err() == nil {
				s.told(e.Address, metrics, err)
			}
			return nil
		})
	}
	_ = group.Wait() // no function of it returns an error
}

func (s *Scraper) ask(ctx context.Context, address string) (Engine, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+MetricsPath, http.NoBody)
	if err != nil {
		return Engine{}, err
	}
	request.Header.Set("User-Agent", "warmpath-metrics")
	response, err := s.client.Do(request)
	if err != nil {
		return Engine{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Engine{}, fmt.Errorf("GET %s: status %d, want 200", MetricsPath, response.StatusCode)
	}
	return readEngine(response.Body)
}
