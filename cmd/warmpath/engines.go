package main

import (
	"github.com/warmpath/warmpath/internal/modelserver"
	"github.com/warmpath/warmpath/internal/telemetry"
)

// scrape starts to read the metrics of a pool's engines, if the configuration wants that.
func (p *program) scrape(o *pool) {
	interval := p.config.EngineMetrics.Interval
	if interval == 0 {
		return
	}
	o.scraper = modelserver.NewScraper(interval, func(address string, e modelserver.Engine, err error) {
		if err != nil {
			p.metrics.ForgetEngine(address)
			o.log.Debug("an endpoint's metrics were not read", "endpoint", address, "error", err)
			return
		}
		p.metrics.SetEngine(address, telemetry.Engine(e))
	})
}
