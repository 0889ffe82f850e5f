package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/warmpath/warmpath/internal/modelserver"
	"github.com/warmpath/warmpath/internal/telemetry"
)

// newScraper returns who reads the metrics of all pools' engines, nil if the
// configuration does not want that. The series are the endpoints', so one that is in
// several pools is asked once.
func (p *program) newScraper() *modelserver.Scraper {
	interval := p.config.EngineMetrics.Interval
	if interval == 0 {
		return nil
	}
	return modelserver.NewScraper(interval, func(address string, e modelserver.Engine, err error) {
		if err != nil {
			p.metrics.ForgetEngine(address)
			p.log.Debug("an endpoint's metrics were not read", "endpoint", address, "error", err)
			return
		}
		p.metrics.SetEngine(address, telemetry.Engine(e))
	})
}

// scrape reads the metrics until ctx ends.
func (p *program) scrape(ctx context.Context, work *errgroup.Group) {
	if p.scraper != nil {
		work.Go(func() error {
			p.scraper.Run(ctx)
			return nil
		})
	}
}
