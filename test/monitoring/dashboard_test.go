package monitoring

import (
	"strings"
	"testing"
)

// The dashboard is one that Grafana can show: its own data source, panels with queries
// and titles that do not lie on each other.
func TestDashboard(t *testing.T) {
	d := board(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 30 {
		t.Errorf("uid %q, title %q, schemaVersion %d", d.UID, d.Title, d.SchemaVersion)
	}
	list := d.Templating.List
	if len(list) != 2 || list[0].Name != "datasource" || list[0].Type != "datasource" || string(list[0].Query) != `"prometheus"` || list[1].Name != "pool" {
		t.Fatalf("variables %+v", list)
	}
	own := func(where string, s *source) {
		t.Helper()
		if s == nil || s.Type != "prometheus" || s.UID != "${datasource}" {
			t.Errorf("%s: data source %+v", where, s)
		}
	}
	own("variable pool", list[1].Datasource)
	metrics, _ := exposed(t)
	if name, ok := strings.CutPrefix(list[1].Definition, "label_values("); !ok || !metrics[strings.Split(name, ",")[0]].labels["pool"] {
		t.Errorf("variable pool: %s", list[1].Definition)
	}
	ids, titles, taken := make(map[int]bool), make(map[string]bool), make(map[[2]int]string)
	section, below := "", 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			section = p.Title
		}
		where := section + " / " + p.Title
		if ids[p.ID] || titles[where] || p.ID < 1 || p.Title == "" {
			t.Errorf("%s: id %d and title must be its own", where, p.ID)
		}
		ids[p.ID], titles[where] = true, true
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 || g.Y < below && p.Type == "row" {
			t.Errorf("%s: at %+v", where, g)
		}
		below = max(below, g.Y+g.H)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s at %d, %d", where, other, x, y)
				}
				taken[[2]int{x, y}] = where
			}
		}
		if p.Type == "row" {
			continue
		}
		own(where, p.Datasource)
		if len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s: %d queries, unit %q", where, len(p.Targets), p.FieldConfig.Defaults.Unit)
		}
		refs := make(map[string]bool)
		for _, q := range p.Targets {
			own(where, q.Datasource)
			if refs[q.RefID] || q.RefID == "" || q.Expr == "" {
				t.Errorf("%s: query %q: %s", where, q.RefID, q.Expr)
			}
			refs[q.RefID] = true
		}
	}
	if len(d.Panels) < 40 {
		t.Errorf("only %d panels", len(d.Panels))
	}
}
