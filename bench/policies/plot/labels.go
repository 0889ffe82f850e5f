package main

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labels writes names beside points so that none lies on another or on a point.
type labels struct {
	points plotter.XYs
	names  []string
	colors []color.Color
	// avoid are other points to keep clear of: those of a line.
	avoid plotter.XYs
}

// box is where a text or a point is.
type box struct{ left, right, bottom, top vg.Length }

func (b box) overlap(a box) bool {
	return b.left < a.right && a.left < b.right && b.bottom < a.top && a.bottom < b.top
}

func (b box) within(r vg.Rectangle) bool {
	return b.left >= r.Min.X && b.right <= r.Max.X && b.bottom >= r.Min.Y && b.top <= r.Max.Y
}

// The place of a label is searched in rings around its point.
const (
	firstRing = 6 // points
	nextRing  = 5
	rings     = 14
	angles    = 16
	dotSize   = 3
)

// Plot implements plot.Plotter.
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := p.X.Tick.Label
	style.Font.Size = 7.5
	style.XAlign, style.YAlign, style.Rotation = draw.XLeft, draw.YBottom, 0
	var taken []box
	at := make([]vg.Point, len(l.points))
	for i, q := range l.points {
		at[i] = vg.Point{X: x(q.X), Y: y(q.Y)}
		taken = append(taken, box{at[i].X - dotSize, at[i].X + dotSize, at[i].Y - dotSize, at[i].Y + dotSize})
	}
	for _, q := range l.avoid {
		v := vg.Point{X: x(q.X), Y: y(q.Y)}
		taken = append(taken, box{v.X - 1, v.X + 1, v.Y - 1, v.Y + 1})
	}
	for i, name := range l.names {
		width, height := style.Width(name), style.Height(name)
		b, near := place(at[i], width, height, taken, c.Rectangle)
		taken = append(taken, b)
		style.Color = l.colors[i]
		if !near {
			middle := vg.Point{X: min(max(at[i].X, b.left), b.right), Y: min(max(at[i].Y, b.bottom), b.top)}
			c.StrokeLine2(draw.LineStyle{Color: style.Color, Width: 0.4}, at[i].X, at[i].Y, middle.X, middle.Y)
		}
		c.FillText(style, vg.Point{X: b.left, Y: b.bottom}, name)
	}
}

// place finds room for a text next to a point, and tells if it is so near that it
// needs no line to it. Without any room it is right of the point.
func place(at vg.Point, width, height vg.Length, taken []box, inside vg.Rectangle) (b box, near bool) {
	for ring := range rings {
		r := vg.Length(firstRing + ring*nextRing)
		for k := range angles {
			sin, cos := math.Sincos(2 * math.Pi * float64(k) / angles)
			middle := vg.Point{X: at.X + vg.Length(cos)*(r+width/2), Y: at.Y + vg.Length(sin)*(r+height/2)}
			b = box{middle.X - width/2, middle.X + width/2, middle.Y - height/2, middle.Y + height/2}
			if b.within(inside) && !overlapsAny(b, taken) {
				return b, ring < 2
			}
		}
	}
	return box{at.X + firstRing, at.X + firstRing + width, at.Y - height/2, at.Y + height/2}, true
}

func overlapsAny(b box, taken []box) bool {
	for _, t := range taken {
		if b.overlap(t) {
			return true
		}
	}
	return false
}
