package main

import (
	"net/http"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/live"
	"github.com/warmpath/warmpath/internal/live/view"
	"github.com/warmpath/warmpath/internal/live/web"
)

// effective is a configuration in use and which one it is, counted from the start.
type effective struct {
	config     config.Config
	generation int
}

// watched is an observer beside which the live store is told of the same requests.
type watched struct {
	extproc.Observer
	live *live.Store
}

// Decided implements extproc.Observer.
func (w watched) Decided(r *extproc.Record) {
	w.Observer.Decided(r)
	w.live.Decided(r)
}

// Served implements extproc.Observer.
func (w watched) Served(r *extproc.Record) {
	w.Observer.Served(r)
	w.live.Served(r)
}

// Ended implements extproc.Observer.
func (w watched) Ended(r *extproc.Record) {
	w.Observer.Ended(r)
	w.live.Ended(r)
}

// servePage serves the live page where nobody but operators can reach it.
func (p *program) servePage(mux *http.ServeMux) {
	p.page = web.New(web.Options{
		Version: version(), Store: p.live, Pools: p.livePools(),
		Config: func() (string, int) {
			now := p.effective.Load()
			return now.config.String(), now.generation
		},
		Explain: p.explainLive,
	})
	if exposed(p.config) {
		web.Refuse(mux, "the live page and /api are served on the loopback, on a Unix socket, or to clients with certificates (tls.admin.clientCA), and listen.admin is none of these")
		return
	}
	p.page.Register(mux)
}

func (p *program) livePools() []live.Pool {
	var list []live.Pool
	for _, one := range p.pools {
		list = append(list, live.Pool{Name: one.name, Router: one.router, Trials: one.trials, Members: one.shown})
	}
	return list
}

// shown lists the pool's endpoints as the live page has them.
func (o *pool) shown() []view.Endpoint {
	o.status.mu.Lock()
	defer o.status.mu.Unlock()
	list := o.endpoints()
	shown := make([]view.Endpoint, 0, len(list))
	for _, e := range list {
		shown = append(shown, view.Endpoint{
			Address: e.Address, State: e.State, Cause: e.Cause, Zone: e.Zone, Weight: e.Weight,
			Outstanding: e.Outstanding, Others: e.Others,
		})
	}
	return shown
}
