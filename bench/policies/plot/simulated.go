package main

import (
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// simulated is what is drawn of the output of warmpath simulate.
type simulated struct {
	Trace       string  `json:"trace"`
	Requests    int     `json:"requests"`
	Replicas    int     `json:"replicas"`
	CacheTokens int     `json:"cache_tokens"`
	Model       string  `json:"model"`
	Speed       float64 `json:"speed"`
	Seed        uint64  `json:"seed"`
	Results     []struct {
		Policy  string  `json:"policy"`
		Routers int     `json:"routers"`
		HitRate float64 `json:"hit_rate"`
		TTFT    struct {
			P50 float64 `json:"p50"`
			P90 float64 `json:"p90"`
			P99 float64 `json:"p99"`
		} `json:"ttft_ms"`
		BusiestOver struct {
			Requests float64 `json:"requests"`
		} `json:"busiest_over_mean"`
	} `json:"results"`
}

// maxResults is how many rows are legible.
const maxResults = 60

func drawSimulated(text []byte) (picture, error) {
	var s simulated
	if err := json.Unmarshal(text, &s); err != nil {
		return picture{}, err
	}
	if n := len(s.Results); n < 1 || n > maxResults {
		return picture{}, fmt.Errorf("%d results: want 1..%d", n, maxResults)
	}
	several := false
	for _, r := range s.Results {
		several = several || r.Routers != s.Results[0].Routers
	}
	names := make([]string, len(s.Results))
	for i, r := range s.Results {
		names[i] = r.Policy
		if several {
			names[i] = fmt.Sprintf("%s, %d routers", r.Policy, r.Routers)
		}
	}
	times, err := s.times(names)
	if err != nil {
		return picture{}, err
	}
	balance, err := s.balance(names)
	if err != nil {
		return picture{}, err
	}
	return picture{
		title: fmt.Sprintf("%s at speed %g: %d requests, %d replicas (%s, caches of %d tokens), seed %d",
			s.Trace, s.Speed, s.Requests, s.Replicas, s.Model, s.CacheTokens, s.Seed),
		panels: []*plot.Plot{times, balance}, width: 10 * vg.Inch, height: max(4*vg.Inch, vg.Length(len(names))*0.2*vg.Inch+1.2*vg.Inch),
	}, nil
}

// times has a row for each result: P50, P90 and P99.
func (s *simulated) times(names []string) (*plot.Plot, error) {
	p := newPanel("Time to the first token: P50 (circle), P90 (box), P99 (triangle)", "ms", "")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	n := len(s.Results)
	rows := make([]string, n)
	low, high := math.Inf(1), 0.0
	for i, r := range s.Results {
		y := float64(n - 1 - i) // the first on top
		rows[n-1-i] = names[i]
		at := []float64{max(r.TTFT.P50, 0.1), max(r.TTFT.P90, 0.1), max(r.TTFT.P99, 0.1)}
		if _, err := line(p, plotter.XYs{{X: at[0], Y: y}, {X: at[2], Y: y}}, colorOf(r.Policy), 1); err != nil {
			return nil, err
		}
		for k, shape := range []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}} {
			if err := dots(p, plotter.XYs{{X: at[k], Y: y}}, colorOf(r.Policy), shape, 3); err != nil {
				return nil, err
			}
		}
		low, high = min(low, at[0]), max(high, at[2])
	}
	p.NominalY(rows...)
	p.Y.Tick.Label.Font.Size = 8
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	p.X.Min, p.X.Max = low/1.2, high*1.2
	return p, nil
}

// balance is hits against the busiest replica.
func (s *simulated) balance(names []string) (*plot.Plot, error) {
	p := newPanel("Cache hits against balance", "busiest replica over the mean, by requests", "hit rate %")
	l := labels{names: names}
	for _, r := range s.Results {
		c := colorOf(r.Policy)
		point := plotter.XY{X: r.BusiestOver.Requests, Y: 100 * r.HitRate}
		l.points, l.colors = append(l.points, point), append(l.colors, c)
		if err := dots(p, plotter.XYs{point}, c, draw.CircleGlyph{}, 3); err != nil {
			return nil, err
		}
	}
	p.Add(l)
	widen(p)
	return p, nil
}

// widen leaves room for labels around the points.
func widen(p *plot.Plot) {
	x, y := max(p.X.Max-p.X.Min, 0.1), max(p.Y.Max-p.Y.Min, 1)
	p.X.Min, p.X.Max = p.X.Min-0.08*x, p.X.Max+0.2*x
	p.Y.Min, p.Y.Max = p.Y.Min-0.08*y, p.Y.Max+0.12*y
}
