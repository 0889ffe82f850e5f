package main

import (
	"fmt"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// written returns the path of a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func simulatedText(policies ...string) string {
	var results []string
	for i, p := range policies {
		results = append(results, fmt.Sprintf(`{"policy":%q,"routers":1,"hit_rate":0.%d,"ttft_ms":{"p50":%d,"p90":200,"p99":900},"busiest_over_mean":{"requests":1.%d}}`, p, i+1, 20+i, i))
	}
	return `{"trace":"talk.jsonl","requests":10,"replicas":8,"cache_tokens":1000,"model":"m","speed":4,"seed":1,"results":[` + strings.Join(results, ",") + `]}`
}

const rowsText = `[{"policy":"auto","hit_rate":0.9,"busiest_over_mean_requests":1.5,"ttft_percentiles_ms":[1,2,3]},
	{"policy":"hash:1024","hit_rate":0.8,"busiest_over_mean_requests":1.2},{"policy":"random","hit_rate":0.7,"busiest_over_mean_requests":1.2,"ttft_percentiles_ms":[2,30,50]}]`

var policiesText = `{"seed":1,"traces":[{"name":"a ×4","loaded":true,"rows":` + rowsText + `}],"frontiers":[{"workload":"a ×4","thresholds":[1,2],"rows":` + rowsText + `}],
	"sagemaker":[{"name":"long","speed":12,"rows":` + rowsText + `}]}`

func TestPictures(t *testing.T) {
	for kind, from := range map[string]string{
		"simulate":  written(t, simulatedText("auto", "prefix:4096", "hash:1024", "oracle", "random", "x")),
		"frontier":  written(t, policiesText),
		"sagemaker": written(t, policiesText),
		"added":     "../../../docs/BENCHMARKS.md",
	} {
		out := filepath.Join(t.TempDir(), "picture.png")
		o, err := parse([]string{"-from", from, "-out", out, kind}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), o, io.Discard, io.Discard); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		checkPicture(t, kind, out)
	}
}

// checkPicture wants a small PNG that is neither empty nor full.
func checkPicture(t *testing.T, kind, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() > 60<<10 {
		t.Errorf("%s: %d bytes, want at most 60 KiB (%v)", kind, info.Size(), err)
	}
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	b := picture.Bounds()
	ink, ours := 0, 0
	for y := range b.Dy() {
		for x := range b.Dx() {
			switch color.RGBAModel.Convert(picture.At(x, y)) {
			case color.RGBA{255, 255, 255, 255}:
			case orange:
				ours++
				fallthrough
			default:
				ink++
			}
		}
	}
	if all := b.Dx() * b.Dy(); b.Dx() < 500 || b.Dx() > 1500 || ink < all/200 || ink > all/4 || ours == 0 {
		t.Errorf("%s: %d×%d, %d dots of ink, %d of ours", kind, b.Dx(), b.Dy(), ink, ours)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"simulate", "{", "draw simulate of"},
		{"simulate", `{"results":[]}`, "0 results: want 1..60"},
		{"simulate", simulatedText(make([]string, 61)...), "61 results: want 1..60"},
		{"frontier", `{}`, "0 workloads with a frontier: want 1..3"},
		{"sagemaker", `{}`, "0 workloads of SageMaker's: want 1..3"},
		{"sagemaker", `{"sagemaker":[{"rows":[{"policy":"auto"}]}]}`, "no distribution of auto"},
		{"added", "# Nothing\n", `no section "4 KiB, model after messages"`},
		{"added", "\n### 4 KiB, model after messages\n\n| arm | P50 |\n", `no column "added P50"`},
		{"added", "\n### 4 KiB, model after messages\n\n| arm | added P50 |\n|---|---|\n| noop | 5 |\n", `"5": want a median and a range`},
		{"other", "", `kind "other": want one of simulate, frontier, sagemaker, added`},
	} {
		o, err := parse([]string{"-from", written(t, c.text), "-out", filepath.Join(t.TempDir(), "x.png"), c.kind}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %.40q: %v, want %q in it", c.kind, c.text, err, c.want)
		}
		if _, err := os.Stat(o.out); err == nil {
			t.Errorf("%s of %.40q: there is a picture", c.kind, c.text)
		}
	}
	for _, args := range [][]string{nil, {"simulate"}, {"-from", "x", "-out", "y"}, {"-from", "x", "simulate"}, {"-bad"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// Labels lie beside each other and inside, as long as there is room.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inside := vg.Rectangle{Max: vg.Point{X: 400, Y: 300}}
		var taken []box
		for range rapid.IntRange(1, 5).Draw(t, "labels") {
			at := vg.Point{X: vg.Length(rapid.Float64Range(0, 400).Draw(t, "x")), Y: vg.Length(rapid.Float64Range(0, 300).Draw(t, "y"))}
			b, _ := place(at, 40, 8, taken, inside)
			if overlapsAny(b, taken) || !b.within(inside) {
				t.Fatalf("label %d at %v: %v", len(taken), at, b)
			}
			taken = append(taken, b)
		}
	})
}
