package prefix

import (
	"fmt"
	"strings"
	"testing"
)

// prose is text as prompts are: lines with an escape now and then.
func prose(n int) string {
	const line = `Rule 7: keep each answer under four lines, name the shelf and the \"frame code\", and use metric units.\n`
	s := strings.Repeat(line, n/len(line)+1)[:n]
	return strings.TrimRight(s, `\`)
}

// bodies are the shapes that the benchmarks sweep over.
var bodies = []struct {
	name string
	make func(n int) string
}{
	{"model-first", func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":"` + prose(n) + `"}]}`
	}},
	{"model-last", func(n int) string {
		return `{"messages":[{"role":"user","content":"` + prose(n) + `"}],"stream":true,"model":"m"}`
	}},
	{"parts", func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"` + prose(n) + `"}]}]}`
	}},
	{"turns", func(n int) string {
		turn := `{"role":"user","content":"` + prose(300) + `"},`
		return `{"model":"m","messages":[` + strings.Repeat(turn, n/len(turn)) + `{"role":"user","content":"end"}]}`
	}},
	{"tools-first", func(n int) string {
		tool := `{"type":"function","function":{"name":"lookup","parameters":{"type":"object","properties":{"code":{"type":"string"}}}}},`
		return `{"tools":[` + strings.Repeat(tool, n/len(tool)) + `{}],"model":"m","messages":[{"role":"user","content":"` + prose(4096) + `"}]}`
	}},
	{"image-first", func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			strings.Repeat("iVBORw0KGgo+AAAA/NSUhEUg", n/24) + `"}},{"type":"text","text":"` + prose(4096) + `"}]}]}`
	}},
	{"cjk", func(n int) string {
		return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("店内配件目录请用公制单位回答。", n/45) + `"}]}`
	}},
}

// BenchmarkScan measures scanning and hashing a body with a prefix length of
// 4096, in chunks of 64 KiB. To compare two versions:
//
//	go test -run xxx -bench BenchmarkScan -count 10 ./internal/prefix > old.txt
//	... > new.txt; go run golang.org/x/perf/cmd/benchstat old.txt new.txt
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		for _, body := range bodies {
			b.Run(fmt.Sprintf("%s/%dKiB", body.name, size>>10), func(b *testing.B) {
				benchmarkBody(b, []byte(body.make(size)), 64<<10)
			})
		}
	}
}

func benchmarkBody(b *testing.B, body []byte, chunk int) {
	h := Head{Path: "/v1/chat/completions", ContentType: "application/json"}
	var s Scanner
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(h, Options{PrefixLength: 4096})
		for rest := body; len(rest) > 0; {
			n := min(chunk, len(rest))
			s.Feed(rest[:n])
			rest = rest[n:]
		}
		if r := s.Finish(true); r.Kind != Text || r.Model != "m" {
			b.Fatalf("%+v", r)
		}
	}
}

// TestNoAllocations: the steady state allocates nothing, whatever the body.
func TestNoAllocations(t *testing.T) {
	var pool Pool
	zipped := Head{Path: "/v1/chat/completions", ContentEncoding: "gzip"}
	// compress/flate allocates the larger tables of each of its blocks anew.
	check := func(name string, h Head, body []byte, most float64) {
		s := pool.Get(h, Options{})
		defer pool.Put(s)
		n := testing.AllocsPerRun(50, func() {
			s.Reset(h, Options{PrefixLength: 4096})
			for rest := body; len(rest) > 0; {
				n := min(1000, len(rest))
				s.Feed(rest[:n])
				rest = rest[n:]
			}
			s.Finish(true)
		})
		if n > most {
			t.Errorf("%s: %v allocations a request, want %v at most", name, n, most)
		}
	}
	for _, c := range readCases(t) {
		check(c.file, c.head, c.body, 0)
		check(c.file+".gz", zipped, compress(t, c.body), 16)
	}
	for _, body := range bodies {
		check(body.name, Head{Path: "/v1/chat/completions"}, []byte(body.make(64<<10)), 0)
	}
}
