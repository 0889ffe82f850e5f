package main

import (
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// picture is panels side by side under a title.
type picture struct {
	title  string
	panels []*plot.Plot
	width  vg.Length
	height vg.Length
}

const (
	dotsPerInch = 100
	titleSpace  = 0.32 * vg.Inch
	margin      = 0.08 * vg.Inch
)

// write draws the picture into a PNG file.
func (p picture) write(path string) (err error) {
	pixels := vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(dotsPerInch))
	canvas := draw.New(pixels)
	style := p.panels[0].Title.TextStyle
	style.Font.Size = 12
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	canvas.FillText(style, vg.Point{X: p.width / 2, Y: p.height - margin}, p.title)
	tiles := draw.Tiles{
		Rows: 1, Cols: len(p.panels), PadX: 0.25 * vg.Inch,
		PadTop: titleSpace, PadBottom: margin, PadLeft: margin, PadRight: 2 * margin,
	}
	for i, c := range plot.Align([][]*plot.Plot{p.panels}, tiles, canvas)[0] {
		p.panels[i].Draw(c)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	return png.Encode(file, fewColors(pixels.Image()))
}

// fewColors makes a picture a third as large: its own colours and their shades on
// white are all there is.
func fewColors(from image.Image) image.Image {
	const shades = 14
	all := color.Palette{color.White}
	for _, c := range []color.RGBA{light, grey, black, orange, blue, green, violet, {0, 0, 0, 255}} {
		for k := 1; k <= shades; k++ {
			mix := func(v uint8) uint8 { return uint8(255 - (255-int(v))*k/shades) }
			all = append(all, color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255})
		}
	}
	to := image.NewPaletted(from.Bounds(), all)
	imagedraw.Draw(to, to.Rect, from, from.Bounds().Min, imagedraw.Src)
	return to
}

// logTicks are at 1, 2 and 5 times the powers of ten.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	if !(low > 0) {
		return nil
	}
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high && len(ticks) < 100; power *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if v := times * power; v >= low*0.999 && v <= high*1.001 {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
			}
		}
	}
	return ticks
}

// newPanel has a light grid.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = 10, 4
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = light, light
	p.Add(grid)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = 9, 8
	}
	p.Legend.TextStyle.Font.Size = 8
	p.Legend.Padding = 2
	return p
}

var (
	light  = color.RGBA{225, 225, 225, 255}
	grey   = color.RGBA{120, 120, 120, 255}
	black  = color.RGBA{30, 30, 30, 255}
	orange = color.RGBA{213, 94, 0, 255}
	blue   = color.RGBA{0, 114, 178, 255}
	green  = color.RGBA{0, 140, 105, 255}
	violet = color.RGBA{150, 90, 150, 255}
)

// colorOf is a policy's in every picture: ours stands out.
func colorOf(policy string) color.Color {
	switch {
	case policy == "auto":
		return orange
	case len(policy) > 4 && policy[:4] == "hash":
		return blue
	case len(policy) > 6 && (policy[:6] == "prefix" || policy[:7] == "bounded"):
		return green
	case len(policy) > 5 && policy[:6] == "oracle":
		return violet
	}
	return grey
}

// dots draws points of one colour.
func dots(p *plot.Plot, points plotter.XYs, c color.Color, shape draw.GlyphDrawer, radius vg.Length) error {
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: radius, Shape: shape}
	p.Add(s)
	return nil
}

// line draws a line of one colour and returns it for a legend.
func line(p *plot.Plot, points plotter.XYs, c color.Color, width vg.Length) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.Color, l.Width = c, width
	p.Add(l)
	return l, nil
}
