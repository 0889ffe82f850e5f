package main

import (
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// added is one arm's row of a table: µs over Envoy alone, the median of the rounds
// and their range.
type added struct {
	arm               string
	median, low, high float64
}

// The sections of docs/BENCHMARKS.md that are drawn: the first of each name.
func addedSections() []string {
	return []string{"4 KiB, model after messages", "64 KiB, model after messages", "1 MiB, model after messages"}
}

// addedColumn is the table's column that is drawn.
const addedColumn = "added P50"

func drawAdded(text []byte) (picture, error) {
	v := picture{title: "What routing adds to a request's P50: the median of six rounds, and their range", width: 11 * vg.Inch, height: 3.2 * vg.Inch}
	for _, section := range addedSections() {
		rows, err := addedOf(string(text), section)
		if err != nil {
			return v, err
		}
		p, err := addedPanel(section, rows)
		if err != nil {
			return v, err
		}
		v.panels = append(v.panels, p)
	}
	return v, nil
}

// addedOf reads the arms with a router from the first table of a section.
func addedOf(text, section string) (rows []added, err error) {
	_, after, ok := strings.Cut(text, "\n### "+section+"\n")
	if !ok {
		return nil, fmt.Errorf("there is no section %q", section)
	}
	column := -1
	for line := range strings.Lines(after) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			if column >= 0 {
				return rows, nil
			}
			continue
		case column < 0:
			for i, c := range cells {
				if strings.TrimSpace(c) == addedColumn {
					column = i
				}
			}
			if column < 0 {
				return nil, fmt.Errorf("the table of section %q has no column %q", section, addedColumn)
			}
			continue
		case len(cells) <= column || strings.HasPrefix(cells[0], "--") || strings.Contains(cells[0], "envoy-"):
			continue
		}
		r := added{arm: strings.TrimSpace(cells[0])}
		if r.median, r.low, r.high, err = spread(strings.TrimSpace(cells[column])); err != nil {
			return nil, fmt.Errorf("section %q, %s: %w", section, r.arm, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// spread reads "855 (749..1012)".
func spread(text string) (median, low, high float64, err error) {
	fields := strings.FieldsFunc(strings.ReplaceAll(text, "..", " "), func(r rune) bool { return r == ' ' || r == '(' || r == ')' })
	if len(fields) != 3 {
		return 0, 0, 0, fmt.Errorf("%q: want a median and a range", text)
	}
	for i, to := range []*float64{&median, &low, &high} {
		if *to, err = strconv.ParseFloat(fields[i], 64); err != nil {
			return 0, 0, 0, err
		}
	}
	return median, low, high, nil
}

func addedPanel(title string, rows []added) (*plot.Plot, error) {
	p := newPanel(title, "ms", "")
	names := make([]string, len(rows))
	for i, r := range rows {
		y := float64(len(rows) - 1 - i)
		names[len(rows)-1-i] = r.arm
		c := grey
		if strings.HasPrefix(r.arm, "warmpath") {
			c = orange
		}
		if _, err := line(p, plotter.XYs{{X: r.low / 1000, Y: y}, {X: r.high / 1000, Y: y}}, c, 1.2); err != nil {
			return nil, err
		}
		if err := dots(p, plotter.XYs{{X: r.median / 1000, Y: y}}, c, draw.CircleGlyph{}, 3.5); err != nil {
			return nil, err
		}
	}
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = 8
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	p.X.Min = 0
	p.X.Max *= 1.05
	return p, nil
}
