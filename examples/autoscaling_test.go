package examples

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/warmpath/warmpath/internal/load"
	"github.com/warmpath/warmpath/internal/telemetry"
)

const autoscalingFolder = "autoscaling/"

// behavior is how an autoscaler goes up and down.
type behavior struct {
	ScaleUp   direction `yaml:"scaleUp"`
	ScaleDown direction `yaml:"scaleDown"`
}

type direction struct {
	Window   *int `yaml:"stabilizationWindowSeconds"`
	Policies []struct {
		Type          string
		Value         int
		PeriodSeconds int `yaml:"periodSeconds"`
	}
}

// object is what objects of the API have in common.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
}

type scaledObject struct {
	object `yaml:",inline"`
	Spec   struct {
		ScaleTargetRef  struct{ Name string } `yaml:"scaleTargetRef"`
		MinReplicaCount int                   `yaml:"minReplicaCount"`
		MaxReplicaCount int                   `yaml:"maxReplicaCount"`
		PollingInterval int                   `yaml:"pollingInterval"`
		Triggers        []struct {
			Type       string
			MetricType string `yaml:"metricType"`
			Metadata   struct {
				ServerAddress    string `yaml:"serverAddress"`
				Query, Threshold string
			}
		}
		Advanced struct {
			HPA struct{ Behavior behavior } `yaml:"horizontalPodAutoscalerConfig"`
		}
	}
}

type podAutoscaler struct {
	object `yaml:",inline"`
	Spec   struct {
		ScaleTargetRef struct {
			APIVersion string `yaml:"apiVersion"`
			Kind, Name string
		} `yaml:"scaleTargetRef"`
		MinReplicas int `yaml:"minReplicas"`
		MaxReplicas int `yaml:"maxReplicas"`
		Metrics     []struct {
			Type     string
			External struct {
				Metric struct {
					Name     string
					Selector struct {
						MatchLabels map[string]string `yaml:"matchLabels"`
					}
				}
				Target struct {
					Type         string
					AverageValue string `yaml:"averageValue"`
				}
			}
		}
		Behavior behavior
	}
}

type adapterRules struct {
	ExternalRules []struct {
		SeriesQuery  string `yaml:"seriesQuery"`
		Resources    struct{ Namespaced bool }
		MetricsQuery string `yaml:"metricsQuery"`
	} `yaml:"externalRules"`
}

// readStrictly reads the one document of a file; a key that is not known is an error.
func readStrictly(t *testing.T, name string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, autoscalingFolder+name))))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("%s: more than one document (%v)", name, err)
	}
}

// The two autoscalers do the same by the same number, which they are told to divide
// by one.
func TestAutoscalers(t *testing.T) {
	var keda scaledObject
	var hpa podAutoscaler
	var rules adapterRules
	readStrictly(t, "keda.yaml", &keda)
	readStrictly(t, "hpa.yaml", &hpa)
	readStrictly(t, "adapter.yaml", &rules)
	if keda.APIVersion != "keda.sh/v1alpha1" || keda.Kind != "ScaledObject" || hpa.APIVersion != "autoscaling/v2" || hpa.Kind != "HorizontalPodAutoscaler" || keda.Metadata != hpa.Metadata {
		t.Errorf("%+v and %+v", keda.object, hpa.object)
	}
	if len(keda.Spec.Triggers) != 1 || len(hpa.Spec.Metrics) != 1 || len(rules.ExternalRules) != 1 {
		t.Fatalf("%+v, %+v, %+v: want one trigger, one metric and one rule", keda.Spec, hpa.Spec, rules)
	}
	trigger, metric, rule := keda.Spec.Triggers[0], hpa.Spec.Metrics[0].External, rules.ExternalRules[0]
	if keda.Spec.MinReplicaCount != hpa.Spec.MinReplicas || keda.Spec.MaxReplicaCount != hpa.Spec.MaxReplicas || keda.Spec.ScaleTargetRef.Name != hpa.Spec.ScaleTargetRef.Name ||
		!slices.Equal(keda.Spec.Advanced.HPA.Behavior.ScaleDown.Policies, hpa.Spec.Behavior.ScaleDown.Policies) {
		t.Errorf("KEDA has %+v, the other %+v", keda.Spec, hpa.Spec)
	}
	if trigger.Type != "prometheus" || trigger.MetricType != metric.Target.Type || trigger.Metadata.Threshold != "1" || metric.Target.AverageValue != "1" || metric.Target.Type != "AverageValue" {
		t.Errorf("trigger %+v, metric %+v: want an average value of 1", trigger, metric)
	}
	query := strings.NewReplacer("<<.Series>>", rule.SeriesQuery, "<<.LabelMatchers>>", `pool="default"`).Replace(rule.MetricsQuery)
	if query != trigger.Metadata.Query || metric.Metric.Name != rule.SeriesQuery || !maps.Equal(metric.Metric.Selector.MatchLabels, map[string]string{"pool": "default"}) {
		t.Errorf("KEDA asks for %q, the adapter for %q, the other for %+v", trigger.Metadata.Query, query, metric.Metric)
	}
}

// Every metric that the files name is one of the program's, so that none scales by
// nothing after one was renamed.
func TestAutoscalersNameMetrics(t *testing.T) {
	entries, err := os.ReadDir(autoscalingFolder)
	if err != nil {
		t.Fatal(err)
	}
	known := metricNames()
	name := regexp.MustCompile(`warmpath_[a-z_]+`)
	for _, e := range entries {
		named := name.FindAllString(read(t, autoscalingFolder+e.Name()), -1)
		if len(named) == 0 {
			t.Errorf("%s names no metric", e.Name())
		}
		for _, n := range named {
			if !slices.Contains(known, n) {
				t.Errorf("%s names %s, which is no metric of warmpath", e.Name(), n)
			}
		}
	}
}

// metricNames takes them from the text form of descriptors, the only form in which
// the library gives them away.
func metricNames() (names []string) {
	descriptions := make(chan *prometheus.Desc)
	m := telemetry.NewMetrics(load.NewTracker())
	go func() {
		defer close(descriptions)
		m.Registry().Describe(descriptions)
	}()
	pattern := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	for d := range descriptions {
		if match := pattern.FindStringSubmatch(d.String()); match != nil {
			names = append(names, match[1])
		}
	}
	return names
}
