package trace

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden statistics of the samples anew")

// samples has a file with a few real lines of each format.
var samples = map[string]string{
	"azure": "azure.csv", "copilot": "copilot.jsonl", "miniswe": "miniswe.jsonl", "mooncake": "mooncake.jsonl",
	"ragpulse": "ragpulse.jsonl", "realhumaneval": "realhumaneval.csv", "text": "text.jsonl", "weka": "weka.jsonl",
}

func sample(tb testing.TB, format string) []byte {
	tb.Helper()
	if samples[format] == "" {
		tb.Fatalf("no sample of the format %s", format)
	}
	data, err := os.ReadFile("testdata/" + samples[format])
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// TestGoldenSamples pins what is read from each sample: a request's times,
// lengths and names, and its chunks by the number of the request that had each first.
func TestGoldenSamples(t *testing.T) {
	const golden = "testdata/samples.golden"
	var b strings.Builder
	for _, format := range Formats() {
		got, err := Open("testdata/"+samples[format], format, Options{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		describe(&b, format, got)
	}
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("run with -rewrite if this is meant (-want +got):\n%s", diff)
	}
}

func describe(b *strings.Builder, format string, t Trace) {
	fmt.Fprintf(b, "%s: block of %d\n%+v ideal %.3f\n", format, t.BlockTokens, t.Stats(), t.Stats().Ideal())
	owner := make(map[uint64]int)
	for i, r := range t.Requests {
		fmt.Fprintf(b, "%d: %v in %d out %d session %q model %q tenant %q chunks", i, r.Arrival, r.Input, r.Output, r.Session, r.Model, r.Tenant)
		runs := make([]int, len(t.Requests))
		for _, c := range r.Chunks {
			if _, ok := owner[c]; !ok {
				owner[c] = i
			}
			runs[owner[c]]++
		}
		for from, n := range runs {
			if n > 0 {
				fmt.Fprintf(b, " %d of %d", n, from)
			}
		}
		var all xxhash.Digest
		all.Reset()
		for _, c := range r.Chunks {
			fmt.Fprintf(&all, "%x ", c)
		}
		fmt.Fprintf(b, " (%016x)\n", all.Sum64())
	}
	for _, n := range t.Notes {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	b.WriteByte('\n')
}

// Neither compression nor a byte order mark nor an empty line in the end changes anything.
func TestEncodingsOfAFile(t *testing.T) {
	for _, format := range Formats() {
		data := sample(t, format)
		want, err := Read(bytes.NewReader(data), format, Options{})
		if err != nil {
			t.Fatal(err)
		}
		marked := append([]byte("\uFEFF"), data...)
		for name, variant := range map[string][]byte{
			"gzip": zipped(data), "mark": marked, "both": zipped(marked),
			"gzip in parts": append(zipped(data[:len(data)/2]), zipped(data[len(data)/2:])...),
			"empty lines":   append(bytes.Clone(data), "\n\r\n"...),
		} {
			got, err := Read(bytes.NewReader(variant), format, Options{})
			if err != nil {
				t.Errorf("%s, %s: %v", format, name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", format, name, diff)
			}
		}
	}
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}
