package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/modelserver"
)

// decided asks warmpath about a probe, and returns who served it; "" if it was not
// decided.
func (p *probing) decided(ctx context.Context, a probe) (served string, err error) {
	d, err := p.decision(ctx, a.id)
	switch {
	case err != nil:
		return "", err
	case d == nil:
		p.report("probe-unseen", "warmpath has no decision of the probe %s", a.requestID)
		return "", nil
	}
	p.counts.Decided++
	switch {
	case d.Served == "":
		p.report("probe-elsewhere", "decided for %s; Envoy does not tell who served it", d.Chosen)
	case d.Served != d.Chosen && d.Attempts <= 1:
		p.report("probe-elsewhere", "decided for %s, served by %s", d.Chosen, d.Served)
	default:
		p.counts.Served++
	}
	return d.Served, nil
}

// decision waits until warmpath has seen the end of a probe.
func (p *probing) decision(ctx context.Context, id string) (last *view.Decision, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeSeen)
	defer cancel()
	tick := time.NewTicker(probeTick)
	defer tick.Stop()
	for looked := 0; ; looked++ {
		var s view.Snapshot
		if err := p.warmpath.ask(ctx, http.MethodGet, "/api/live?seconds=0&decisions=0&probe="+id, nil, &s); err != nil {
			if ctx.Err() != nil {
				return last, nil
			}
			return nil, err
		}
		for _, d := range s.Decisions {
			if d.Probe == id {
				last = &d
			}
		}
		if last == nil && looked == 10 || last != nil && (last.Ended || last.Served != "") {
			return last, nil // a decision is there before the answer is
		}
		select {
		case <-ctx.Done():
			return last, nil
		case <-tick.C:
		}
	}
}

// earlier is the first of two equal probes.
type earlier struct {
	served string              // by whom, "" if that is not known
	engine *modelserver.Engine // what it counted by then, nil if it does not say
}

func earlierAt(ctx context.Context, served string) earlier {
	if served == "" {
		return earlier{}
	}
	engine, err := engineOf(ctx, served)
	if err != nil {
		return earlier{served: served}
	}
	return earlier{served, &engine}
}

// judge says whether the second of two equal probes found the first's prompt in the
// cache of their server: by the answer, or else by the engine's own counters.
func (p *probing) judge(ctx context.Context, a probe, first earlier) {
	p.counts.Same++
	served, found, told := first.served, 0.0, a.cached != nil
	if told {
		found = float64(*a.cached)
	} else if was := first.engine; was != nil {
		now, err := engineOf(ctx, served)
		told = err == nil && now.Queries > was.Queries // NaN is not
		found = now.Hits - was.Hits
	}
	switch {
	case !told:
		p.report("cache-untold", "%s tells in neither its answer nor its metrics", served)
	case found > 0:
		p.counts.Cached++
	default:
		p.report("probe-cold", "%s had none of it in its cache", served)
	}
}

// engineOf asks a model server for its metrics.
func engineOf(ctx context.Context, address string) (modelserver.Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, probeSeen)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+modelserver.MetricsPath, nil)
	if err != nil {
		return modelserver.Engine{}, err
	}
	r.Header.Set("User-Agent", probeAgent)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: stay}
	answer, err := client.Do(r)
	if err != nil {
		return modelserver.Engine{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return modelserver.Engine{}, errors.New(statusOf(answer))
	}
	return modelserver.ParseMetrics(answer.Body)
}
