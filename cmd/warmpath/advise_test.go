package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/trace"
)

// TestAdvise pins what is said about traces. Rewrite with -rewrite.
//
//	advise made=NAME [format=NAME] [args=(WORD,...)]
//	advise file=PATH ...
//
// Those that are made are below.
func TestAdvise(t *testing.T) {
	folder := t.TempDir()
	datadriven.Walk(t, "testdata/advise", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			args := []string{"advise"}
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "made":
					args = append(args, "--trace", makeTrace(t, folder, a.Vals[0]))
				case "file":
					args = append(args, "--trace", a.Vals[0])
				case "format":
					args = append(args, "--format", a.Vals[0])
				case "args":
					args = append(args, a.Vals...)
				default:
					d.Fatalf(t, "no argument %q", a.Key)
				}
			}
			var out, errs bytes.Buffer
			if code := run(t.Context(), append(args, "--json"), nil, &out, &errs); code != exitOK {
				return fmt.Sprintf("exit %d: %s", code, errs.String())
			}
			// The words are made of what the JSON has, so one simulation does for both.
			v := checkAdvice(t, out.Bytes())
			var words bytes.Buffer
			if err := v.print(&words); err != nil {
				t.Fatal(err)
			}
			return words.String()
		})
	})
}

// checkAdvice reads what advise --json has printed, and holds its block against the
// configuration's reader.
func checkAdvice(t *testing.T, text []byte) (v advised) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	c, problems := config.Decode("advised", []byte(v.Config+"membership: {file: endpoints.yaml}\n"))
	if len(problems) > 0 {
		t.Errorf("the advised block is refused: %v\n%s", problems, v.Config)
	}
	strategy := config.PrefixAware
	switch v.Advised.Setting {
	case "random":
		strategy = config.Random
	case "least_outstanding":
		strategy = config.LeastOutstandingRequests
	case "kv_aware":
		strategy = config.KVAware
	}
	if c.Routers != v.Routers {
		t.Errorf("%d routers, the block says %d", v.Routers, c.Routers)
	}
	if c.RoutingConfig.RoutingStrategy != strategy || int(c.RoutingConfig.PrefixAware.ConcurrencyThreshold) != v.Advised.Threshold {
		t.Errorf("%+v is advised, the block says %+v", v.Advised, c.RoutingConfig)
	}
	for _, w := range v.Warnings {
		if w.Kind == "" || w.Text == "" {
			t.Errorf("warning %+v", w)
		}
	}
	if strings.Contains(string(text), "SECRET") {
		t.Error("text of the prompts is in the advice")
	}
	return v
}

// makeTrace writes a trace of a kind and returns its path. All last 20 minutes.
func makeTrace(t *testing.T, folder, kind string) string {
	t.Helper()
	path := filepath.Join(folder, kind+".jsonl")
	var b bytes.Buffer
	line := map[string]func(*bytes.Buffer, *rand.Rand, int){
		"healthy":        hashedLine(1, true),
		"sampled":        hashedLine(4, true),
		"nothing-shared": hashedLine(1, false),
		"volatile": textLine(func(r *rand.Rand) string {
			return fmt.Sprintf("It is 2026-03-01T10:%02d:%02d. ", r.IntN(60), r.IntN(60))
		}, nil),
		"steady":    textLine(func(*rand.Rand) string { return "It is March. " }, nil),
		"spellings": textLine(nil, func(r *rand.Rand) string { return []string{" ", "  ", "\\n"}[r.IntN(3)] }),
	}[kind]
	if kind == "volatile-hashed" {
		line = volatileLine
	}
	if line == nil {
		t.Fatalf("no trace of the kind %q", kind)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		line(&b, r, i)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hashedLine makes lines of 20 applications with 2,048 tokens in common each, and
// 1,024 of their own behind them.
func hashedLine(standsFor int, shared bool) func(*bytes.Buffer, *rand.Rand, int) {
	return func(b *bytes.Buffer, r *rand.Rand, i int) {
		var ids []string
		app := r.IntN(20)
		for block := range 48 {
			id := 1_000_000 + i*100 + block
			if shared && block < 32 {
				id = app*100 + block
			}
			ids = append(ids, fmt.Sprint(id))
		}
		fmt.Fprintf(b, `{"timestamp":%d,"input_length":3072,"output_length":100,"hash_ids":[%s],"block_size":64,"stands_for":%d,"salt_id":"00000000"}`+"\n",
			i*1200, strings.Join(ids, ","), standsFor)
	}
}

// volatileLine makes lines of five tenants whose prompts never begin alike.
func volatileLine(b *bytes.Buffer, r *rand.Rand, i int) {
	var ids []string
	for block := range 40 {
		ids = append(ids, fmt.Sprint(i*100+block))
	}
	fmt.Fprintf(b, `{"timestamp":%d,"input_length":2560,"output_length":50,"hash_ids":[%s],"block_size":64,"tenant":"t%d"}`+"\n",
		i*1200, strings.Join(ids, ","), r.IntN(5))
}

// textLine makes lines of four applications; what is in front of their instructions
// and between their words may be another each time.
func textLine(front, between func(*rand.Rand) string) func(*bytes.Buffer, *rand.Rand, int) {
	return func(b *bytes.Buffer, r *rand.Rand, i int) {
		space, head := " ", ""
		if between != nil {
			space = between(r)
		}
		if front != nil {
			head = front(r)
		}
		app := r.IntN(4)
		var words []string
		for n := range 800 {
			words = append(words, fmt.Sprintf("SECRET%d rule%d", app, n))
		}
		fmt.Fprintf(b, `{"timestamp":%.1f,"input":[{"role":"system","content":"Hello. %s%s"},{"role":"user","content":"question %d"}],"output_length":50}`+"\n",
			1.2*float64(i), head, strings.Join(words, space), i)
	}
}

func TestAdviseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "want --trace FILE",
		"-trace no-such-file":      "no-such-file",
		"-trace x -today best":     `--today "best"`,
		"-trace x -today prefix:1": "N of 1024..65536",
		"-trace x -routers 0":      "--routers 0: want 1..100",
		"-trace x -routers 101":    "--routers 101: want 1..100",
		"-trace x -replicas 0":     "--replicas 0: want 1..1000",
		"-trace x -speed 0":        "--speed 0",
		"-trace x -model gpt":      `--model "gpt"`,
		"-trace x y":               `unexpected argument "y"`,
	} {
		err := advise(strings.Fields(args), new(bytes.Buffer), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", args, err, want)
		}
	}
}

// What is said to be missing is what is missing.
func TestSmallTrace(t *testing.T) {
	const few, short = "800 requests or more", "10 minutes or longer"
	for _, c := range []struct {
		requests   int
		span       time.Duration
		few, brief bool
	}{
		{800, shortTrace, false, false},
		{799, shortTrace, true, false},
		{800, shortTrace - 1, false, true},
		{799, shortTrace - 1, true, true},
	} {
		got := smallTrace(trace.Stats{Requests: c.requests, Span: c.span}, 800)
		if strings.Contains(got, few) != c.few || strings.Contains(got, short) != c.brief || (got == "") == (c.few || c.brief) {
			t.Errorf("%d requests in %v: %q", c.requests, c.span, got)
		}
	}
}
