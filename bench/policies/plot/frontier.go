package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// policiesReport is what is drawn of the JSON of bench/policies.
type policiesReport struct {
	Seed   uint64 `json:"seed"`
	Traces []struct {
		Name   string      `json:"name"`
		Loaded bool        `json:"loaded"`
		Rows   []policyRow `json:"rows"`
	} `json:"traces"`
	Frontiers []struct {
		Workload   string      `json:"workload"`
		Thresholds []int       `json:"thresholds"`
		Rows       []policyRow `json:"rows"`
	} `json:"frontiers"`
	SageMaker []struct {
		Name  string      `json:"name"`
		Speed float64     `json:"speed"`
		Rows  []policyRow `json:"rows"`
	} `json:"sagemaker"`
}

type policyRow struct {
	Policy      string    `json:"policy"`
	HitRate     float64   `json:"hit_rate"`
	Busiest     float64   `json:"busiest_over_mean_requests"`
	Percentiles []float64 `json:"ttft_percentiles_ms"`
}

func (r policyRow) point() plotter.XY { return plotter.XY{X: r.Busiest, Y: 100 * r.HitRate} }

// maxPoints is how many are legible in a panel.
const maxPoints = 60

func drawFrontiers(text []byte) (picture, error) {
	var r policiesReport
	if err := json.Unmarshal(text, &r); err != nil {
		return picture{}, err
	}
	v := picture{title: fmt.Sprintf("Hits against balance where sessions are few and long (8 replicas, simulated, seed %d)", r.Seed), width: 10.5 * vg.Inch, height: 4.8 * vg.Inch}
	for _, f := range r.Frontiers {
		for _, t := range r.Traces {
			if t.Name != f.Workload || !t.Loaded || len(t.Rows) > maxPoints || len(f.Rows) == 0 || len(f.Rows) > maxPoints {
				continue
			}
			p, err := frontierPanel(t.Name, t.Rows, f.Rows)
			if err != nil {
				return v, err
			}
			v.panels = append(v.panels, p)
		}
	}
	if len(v.panels) == 0 || len(v.panels) > 3 {
		return v, fmt.Errorf("%d workloads with a frontier: want 1..3", len(v.panels))
	}
	return v, nil
}

func frontierPanel(name string, rows, thresholds []policyRow) (*plot.Plot, error) {
	rows, below := near(rows)
	if below > 0 {
		name += fmt.Sprintf(" (%d with fewer hits are left out)", below)
	}
	p := newPanel(name, "busiest replica over the mean, by requests", "hit rate %")
	var forced plotter.XYs
	for _, r := range thresholds {
		forced = append(forced, r.point())
	}
	l, err := line(p, forced, orange, 1)
	if err != nil {
		return nil, err
	}
	if err := dots(p, forced, orange, draw.CircleGlyph{}, 1.5); err != nil {
		return nil, err
	}
	p.Legend.Add("auto with a concurrencyThreshold of 1..32", l)
	names := labels{avoid: along(forced)}
	for _, r := range rows {
		c, radius := colorOf(r.Policy), vg.Length(2.5)
		if r.Policy == "auto" {
			radius = 4.5
		}
		if err := dots(p, plotter.XYs{r.point()}, c, draw.CircleGlyph{}, radius); err != nil {
			return nil, err
		}
		names.points, names.names, names.colors = append(names.points, r.point()), append(names.names, r.Policy), append(names.colors, c)
	}
	p.Add(names)
	widen(p)
	p.Legend.Top, p.Legend.Left = false, false
	return p, nil
}

// near leaves out the policies below all fixed lengths, which would press the others
// together.
func near(rows []policyRow) (kept []policyRow, below int) {
	lowest := 1.0
	for _, r := range rows {
		if strings.Contains(r.Policy, ":") {
			lowest = min(lowest, r.HitRate)
		}
	}
	for _, r := range rows {
		if r.HitRate < lowest && r.Policy != "auto" {
			below++
			continue
		}
		kept = append(kept, r)
	}
	return kept, below
}

// along are points of the line, close enough that no text fits between.
func along(line plotter.XYs) (points plotter.XYs) {
	const parts = 30
	for i := 1; i < len(line); i++ {
		for k := range parts {
			f := float64(k) / parts
			points = append(points, plotter.XY{X: line[i-1].X + f*(line[i].X-line[i-1].X), Y: line[i-1].Y + f*(line[i].Y-line[i-1].Y)})
		}
	}
	return points
}

// drawDistributions shows which share of the requests had their first token by when.
func drawDistributions(text []byte) (picture, error) {
	var r policiesReport
	if err := json.Unmarshal(text, &r); err != nil {
		return picture{}, err
	}
	v := picture{title: fmt.Sprintf("Times to the first token on SageMaker's workloads (7 replicas, simulated, seed %d)", r.Seed), width: 10 * vg.Inch, height: 4 * vg.Inch}
	for _, s := range r.SageMaker {
		p := newPanel(fmt.Sprintf("%s, %g requests/s", s.Name, s.Speed), "ms", "requests that have it, %")
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
		for _, row := range s.Rows {
			if err := distribution(p, row); err != nil {
				return v, err
			}
		}
		p.Y.Min, p.Y.Max = 0, 100
		p.Legend.Left, p.Legend.Top = false, false
		p.Legend.YOffs, p.Legend.XOffs = 4, -4
		v.panels = append(v.panels, p)
	}
	if len(v.panels) == 0 || len(v.panels) > 3 {
		return v, fmt.Errorf("%d workloads of SageMaker's: want 1..3", len(v.panels))
	}
	return v, nil
}

// distribution draws the policies of the announcement and auto, in colours of their
// own.
func distribution(p *plot.Plot, r policyRow) error {
	c, ok := map[string]color.Color{
		"random": grey, "least_outstanding": violet, "prefix:1024": blue, "prefix:4096": green, "auto": orange,
	}[r.Policy]
	if !ok {
		return nil
	}
	if len(r.Percentiles) == 0 || len(r.Percentiles) > 1000 {
		return errors.New("no distribution of " + r.Policy)
	}
	points := make(plotter.XYs, len(r.Percentiles))
	for i, t := range r.Percentiles {
		points[i] = plotter.XY{X: max(t, 0.1), Y: 100 * float64(i+1) / float64(len(r.Percentiles)+1)}
	}
	l, err := line(p, points, c, 1.2)
	if err == nil {
		p.Legend.Add(r.Policy, l)
	}
	return err
}
