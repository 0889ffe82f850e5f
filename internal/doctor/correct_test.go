package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/envoy"
	"github.com/warmpath/warmpath/internal/doctor"
)

// setup is warmpath with its defaults.
func setup() doctor.Setup {
	return doctor.Setup{
		BodyLimit: envoy.BodyLimit, Pools: []string{envoy.PoolCluster}, TenantHeader: "x-amzn-sagemaker-prefix-aware-id",
		Inspection: true, Retries: true, ControlPlane: true,
	}
}

func examine(t *testing.T, name string, config []byte, s doctor.Setup) []doctor.Finding {
	t.Helper()
	d, err := doctor.Read(name, config)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := doctor.Examine(d, s)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// What is shipped has nothing wrong with it, whatever it is asked for; what is asked for
// and has a drawback is told of it.
func TestNothingInWhatIsShipped(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/envoy.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "before" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range examine(t, file, data, setup()) {
			t.Errorf("%s: %s: %s", f.Where(), f.ID, f.Found)
		}
	}
	two := []string{"10.0.0.1:8000", "[fd00::2]:8000"}
	tls := &envoy.TLS{ServerName: "warmpath", CA: "c/ca.pem", Cert: "c/a.pem", Key: "c/a.key", CASecret: "./ca.yaml", CertSecret: "./a.yaml"}
	for _, tt := range []struct {
		o      envoy.Options
		change func(*doctor.Setup)
		want   string
	}{
		{o: envoy.Options{}},
		{o: envoy.Options{TLS: tls, Collector: "otel:4317", Sampling: 1}},
		{o: envoy.Options{Addresses: envoy.Addresses{ExtProc: "unix:/run/a.sock", XDS: "unix:/run/b.sock"}}},
		{o: envoy.Options{Endpoints: two}, change: func(s *doctor.Setup) { s.Known, s.ControlPlane, s.Members = true, false, two }},
		{o: envoy.Options{Endpoints: two, HeaderSteering: true}},
		{o: envoy.Options{Pool: "llm", TenantHeader: "x-tenant", BodyLimit: 1 << 20}, change: func(s *doctor.Setup) {
			s.Known, s.Pools, s.TenantHeader, s.BodyLimit = true, []string{"llm"}, "x-tenant", 1<<20
		}},
		{o: envoy.Options{WithoutInspection: true}, change: func(s *doctor.Setup) { s.Inspection = false }},
		{o: envoy.Options{WithoutInspection: true}, want: "no-inspection"},
		{o: envoy.Options{Body: envoy.BodyBuffered}},
		{o: envoy.Options{Body: envoy.BodyNone}, want: "body-never"},
		{o: envoy.Options{Body: envoy.BodyFullDuplex}, want: "body-full-duplex"},
	} {
		config, err := envoy.Render(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		s := setup()
		if tt.change != nil {
			tt.change(&s)
		}
		got := ""
		for _, f := range examine(t, "envoy.yaml", config, s) {
			got += f.ID + " "
		}
		if got != "" && got != tt.want+" " || got == "" && tt.want != "" {
			t.Errorf("%s: found %q, want %q", fmt.Sprintf("%+v", tt.o), got, tt.want)
		}
	}
}
