package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Every query of the rules and the dashboard asks for what the program exposes.
func TestQueriesAskForWhatThereIs(t *testing.T) {
	c := newChecker(t)
	for _, r := range rules(t) {
		for _, problem := range c.problems(r.Expr) {
			t.Errorf("%s: %s", r.Alert, problem)
		}
	}
	for _, p := range board(t).Panels {
		for _, target := range p.Targets {
			for _, problem := range append(c.problems(plain(target.Expr)), c.legend(target)...) {
				t.Errorf("%s, %s: %s", p.Title, target.RefID, problem)
			}
		}
	}
	if len(c.used) < 50 {
		t.Errorf("only %d metrics are used: is everything read?", len(c.used))
	}
	for name := range c.metrics {
		base := name
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, part)
		}
		if !c.used[name] && !c.used[base+"_bucket"] && !c.used[base+"_sum"] {
			t.Errorf("%s is in no panel and no rule", name)
		}
	}
}

// Each fault is found.
func TestChecker(t *testing.T) {
	c := newChecker(t)
	for query, want := range map[string]string{
		`sum(`:                          "parse error",
		`sum(warmpath_nothing)`:         "no metric warmpath_nothing",
		`warmpath_xds_envoys{pool="a"}`: "warmpath_xds_envoys has no label pool",
		`warmpath_endpoints{state=~"healthy|broken"}`: `"broken" is no value`,
		`sum by (zone) (warmpath_endpoints)`:          "nothing in it has the label zone",
		`rate(warmpath_endpoints[5m])`:                "rate of warmpath_endpoints, a gauge",
		`{pool="a"}`:                                  "a selector without a name",
		`warmpath_refused_total`:                      "",
	} {
		got := strings.Join(c.problems(query), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: problems %q, want %q", query, got, want)
		}
	}
	if got := c.legend(target{Expr: "warmpath_xds_envoys", LegendFormat: "{{instance}} {{pool}}"}); len(got) != 1 {
		t.Errorf("problems of a legend: %q", got)
	}
}

// checker knows what a Prometheus has of warmpath.
type checker struct {
	metrics map[string]metric
	words   map[string]bool
	used    map[string]bool
}

func newChecker(t *testing.T) *checker {
	c := &checker{used: make(map[string]bool)}
	c.metrics, c.words = exposed(t)
	return c
}

func (c *checker) problems(query string) (found []string) {
	expr, err := newParser().ParseExpr(query)
	if err != nil {
		return []string{fmt.Sprintf("parse error: %v", err)}
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			found = append(found, c.selector(n, path)...)
		case *parser.AggregateExpr:
			has := c.labelsIn(n)
			for _, l := range n.Grouping {
				if !has[l] {
					found = append(found, fmt.Sprintf("by (%s): nothing in it has the label %s", strings.Join(n.Grouping, ", "), l))
				}
			}
		}
		return nil
	})
	return found
}

func (c *checker) selector(s *parser.VectorSelector, path []parser.Node) (found []string) {
	m, ok := c.metrics[s.Name]
	switch {
	case s.Name == "":
		return []string{"a selector without a name"}
	case !ok:
		return []string{"no metric " + s.Name}
	}
	c.used[s.Name] = true
	for _, match := range s.LabelMatchers {
		switch {
		case match.Name == model.MetricNameLabel:
		case !m.labels[match.Name]:
			found = append(found, fmt.Sprintf("%s has no label %s", s.Name, match.Name))
		case match.Name != "pool" && match.Name != "instance" && match.Name != "job" && match.Name != "le":
			for value := range strings.SplitSeq(match.Value, "|") {
				if !c.words[value] {
					found = append(found, fmt.Sprintf("%s: %q is no value of %s that docs/METRICS.md knows", s.Name, value, match.Name))
				}
			}
		}
	}
	for _, node := range path {
		if call, ok := node.(*parser.Call); ok && slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name) && m.kind == "gauge" {
			found = append(found, fmt.Sprintf("%s of %s, a gauge", call.Func.Name, s.Name))
		}
	}
	return found
}

// labelsIn are the labels that something below a node has, or gives.
func (c *checker) labelsIn(node parser.Node) map[string]bool {
	has := make(map[string]bool)
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			for l := range c.metrics[n.Name].labels {
				has[l] = true
			}
		case *parser.AggregateExpr:
			if name, ok := n.Param.(*parser.StringLiteral); ok { // of count_values
				has[name.Val] = true
			}
		}
		return nil
	})
	return has
}

var placeholder = regexp.MustCompile(`\{\{ *([a-z_]+) *\}\}`)

// legend returns the labels of a legend that its series cannot have.
func (c *checker) legend(target target) (found []string) {
	expr, err := newParser().ParseExpr(plain(target.Expr))
	if err != nil {
		return nil // is told of elsewhere
	}
	has := c.labelsIn(expr)
	for _, match := range placeholder.FindAllStringSubmatch(target.LegendFormat, -1) {
		if !has[match[1]] {
			found = append(found, fmt.Sprintf("the legend has {{%s}}, and nothing has that label", match[1]))
		}
	}
	return found
}
