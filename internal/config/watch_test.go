package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/config/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A change is reported decoded, a fault as its problems, and the content that
// was in use at the start not at all.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		contents := []string{sample, strings.Replace(sample, "2048", "512", 1), strings.Replace(sample, "2048", "8192", 1), "!"}
		read := func(string) ([]byte, error) {
			text := contents[min(int(time.Since(start)/time.Minute), len(contents)-1)]
			if text == "!" {
				return nil, errors.New("gone")
			}
			return []byte(text), nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var got []string
		err := Watch(ctx, watch.File{Path: "w.yaml", Read: read}, []byte(sample), func(c Config, err error) {
			got = append(got, fmt.Sprint(c.RoutingConfig.PrefixAware.PrefixLength, " ", err))
		})
		want := []string{
			"-1 w.yaml:4: routingConfig.prefixAwareRoutingConfig.prefixLength: 512 is below the minimum 1024 (want 1024..65536)",
			"8192 <nil>",
			"0 gone",
		}
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(got, want) {
			t.Errorf("Run returned %v, reported\n%s", err, strings.Join(got, "\n"))
		}
	})
}

// BenchmarkDecodeEndpoints reads a membership file of 10,000 endpoints, which
// the watcher does once a change.
func BenchmarkDecodeEndpoints(b *testing.B) {
	var text strings.Builder
	text.WriteString("endpoints:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "- {address: 10.0.%d.%d:8000, weight: 1, zone: a}\n", i/250, i%250+1)
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if list, problems := DecodeEndpoints("b", data); len(list.Endpoints) != 10_000 || problems != nil {
			b.Fatal(len(list.Endpoints), problems, list.Problems[:1])
		}
	}
}
