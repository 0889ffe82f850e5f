package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/doctor"
)

const doctorUsage = `usage: warmpath doctor [-config warmpath.yaml] [--envoy FILE] [--admin URL] [--live URL]

Finds what is wrong or risky in an Envoy that is to have its servers chosen by
warmpath, and says how to mend it:

  --envoy FILE  in its configuration, YAML or JSON, or a file with /config_dump
  --admin URL   in the configuration that it runs with, asked of its admin listener
  --live URL    by a few small requests through the gateway, which are marked
                (user-agent: warmpath-doctor): were they decided by warmpath, did
                they go where it decided, and does the engine's cache work

With -config it knows what warmpath expects; without it takes the defaults.
docs/DOCTOR.md lists what it finds. Exit code: 0 nothing but notes, 1 errors or
warnings (with --fail-on error: errors), 2 the command line or a file is wrong.

`

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	config, envoy, admin, live string
	engine, failOn             string
	json                       bool
	probe                      probeOptions
	server                     clientOptions
}

func examine(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o doctorOptions
	flags := flag.NewFlagSet("warmpath doctor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.config, "config", "", "configuration `file` of warmpath")
	flags.StringVar(&o.envoy, "envoy", "", "`file` with Envoy's configuration; - is standard input")
	flags.StringVar(&o.admin, "admin", "", "`address` of Envoy's admin listener: http://host:port or unix:/path")
	flags.StringVar(&o.live, "live", "", "`address` of the gateway, for probes: http://host:port")
	flags.StringVar(&o.engine, "engine", "", "`name` of the engine: llama.cpp closes connections without a word, vllm and sglang do not (--live sees llama.cpp itself)")
	flags.StringVar(&o.failOn, "fail-on", "warning", "the least `severity` that makes the exit code 1: warning or error")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	o.probe.register(flags)
	o.server.register(flags, "", "warmpath, asked by --live (default listen.admin of the configuration)")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, doctorUsage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return usageError{fmt.Errorf("doctor: %w", err)}
	}
	if err := o.check(flags.Args()); err != nil {
		return usageError{fmt.Errorf("doctor: %w", err)}
	}
	report, failure := o.examine(ctx)
	if len(report.Examined) > 0 {
		if err := report.print(stdout, o.json); err != nil {
			return err
		}
	}
	if failure != nil {
		return fmt.Errorf("doctor: %w", failure)
	}
	return report.verdict(o.failOn)
}

// check looks at the flags.
func (o *doctorOptions) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("%.80q: want flags only", args[0])
	case o.envoy == "" && o.admin == "" && o.live == "":
		return errors.New("want --envoy FILE, --admin URL or --live URL")
	case !strings.HasPrefix(o.probe.path, "/"):
		return fmt.Errorf("--path %.80q: want a path that begins with /", o.probe.path)
	case o.failOn != "warning" && o.failOn != "error":
		return fmt.Errorf("--fail-on %.40q: want warning or error", o.failOn)
	case o.engine != "" && o.engine != "llama.cpp" && o.engine != "vllm" && o.engine != "sglang":
		return fmt.Errorf("--engine %.40q: want llama.cpp, vllm or sglang", o.engine)
	}
	return nil
}

// examine looks at everything that it is to look at. The error is of what could not be
// asked; the rest is in the report all the same.
func (o *doctorOptions) examine(ctx context.Context) (examination, error) {
	report := examination{Findings: []doctor.Finding{}}
	c, setup, err := o.setup()
	if err != nil {
		return report, usageError{err}
	}
	if o.live != "" && o.server.from == "" {
		if o.server.from, err = adminOf(c); err != nil {
			return report, usageError{err}
		}
	}
	documents, failure := o.documents(ctx)
	if wrong := new(usageError); errors.As(failure, wrong) {
		return report, failure
	}
	if o.live != "" {
		findings, counts, err := o.probe.run(ctx, o.live, o.server)
		if err != nil {
			failure = errors.Join(failure, err)
		} else {
			setup.ClosingEngine = setup.ClosingEngine || counts.closing
			report.Findings, report.Probes, report.Examined = append(report.Findings, findings...), counts, append(report.Examined, o.live)
		}
	}
	for _, d := range documents {
		findings, err := doctor.Examine(d, setup)
		if err != nil {
			failure = errors.Join(failure, usageError{err})
			continue
		}
		report.Findings = append(report.Findings, findings...)
		report.Examined = append(report.Examined, d.Name())
	}
	return report, failure
}

// setup is what warmpath's configuration says that matters to Envoy's.
func (o *doctorOptions) setup() (config.Config, doctor.Setup, error) {
	c, known := config.Default(), o.config != ""
	if known {
		var err error
		if c, err = config.Load(o.config); err != nil {
			return c, doctor.Setup{}, err
		}
	}
	s := doctor.Setup{
		Known: known, BodyLimit: c.Limits.RequestBodyBytes, Pools: []string{c.Cluster.Name}, TenantHeader: c.Tenant.Header,
		Inspection: c.Inspection.Share > 0, Retries: c.Retry.Attempts > 0 && len(c.Retry.Conditions) > 0,
		ControlPlane: c.Listen.XDS != "", ClosingEngine: o.engine == "llama.cpp" || c.Cluster.MaxRequestsPerConnection == 1,
	}
	for _, p := range c.Pools {
		s.Pools = append(s.Pools, p.Cluster.Name)
	}
	s.TLSExtProc, s.TLSXDS = c.TLS.ExtProc.On(), c.TLS.XDS.On()
	if at, err := reachable(c.Listen.ExtProc); known && err == nil {
		s.ExtProc = at
	}
	if at, err := reachable(c.Listen.XDS); known && err == nil {
		s.XDS = at
	}
	if m := c.Membership; known && (m.Static != nil || m.File != "") {
		set, err := loadMembership(m, o.config)
		if err != nil {
			return c, s, err
		}
		for _, e := range set.Endpoints() {
			s.Members = append(s.Members, e.Address)
		}
	}
	return c, s, nil
}

// adminOf is where warmpath's admin listener is found.
func adminOf(c config.Config) (string, error) {
	switch {
	case c.Listen.Admin == "":
		return "", errors.New("--live asks warmpath what it has decided: listen.admin is \"\"")
	case strings.HasPrefix(c.Listen.Admin, "unix:"):
		return c.Listen.Admin, nil
	}
	at, err := reachable(c.Listen.Admin)
	if err != nil {
		return "", fmt.Errorf("listen.admin: %w: say with --from where it is", err)
	}
	if c.TLS.Admin.On() {
		return "https://" + at, nil
	}
	return "http://" + at, nil
}
