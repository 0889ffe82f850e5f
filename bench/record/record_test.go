package record

import "testing"

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{4, 1, 2}, Spread{2, 1, 4}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1, 4}},
	} {
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

func TestMachine(t *testing.T) {
	if got := envoyVersion("/x/envoy  version: 9e558093/1.40.0/Clean/RELEASE/BoringSSL\n"); got != "1.40.0" {
		t.Errorf("Envoy %q", got)
	}
	if got := cpuModel("processor\t: 0\nmodel name\t: AMD EPYC\nstepping: 1\n"); got != "AMD EPYC" {
		t.Errorf("CPU %q", got)
	}
	if got := loadAverage("0.20 1.21 2.97 1/163 4242\n"); got != "0.20 1.21 2.97" {
		t.Errorf("load %q", got)
	}
}
