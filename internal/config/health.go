package config

import (
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config/strict"
)

func (h *Health) decode(v strict.Value) {
	v.Fields(
		strict.Field{Name: "path", Decode: func(v strict.Value) {
			strict.Text(&h.Path)(v)
			if h.Path != "" && !strings.HasPrefix(h.Path, "/") {
				v.Reject("is not a path (want one that begins with /, or \"\" for no probes)")
			}
		}},
		strict.Field{Name: "interval", Decode: strict.Duration(&h.Interval, 100*time.Millisecond, time.Hour)},
		strict.Field{Name: "timeout", Decode: strict.Duration(&h.Timeout, 10*time.Millisecond, time.Minute)},
		strict.Field{Name: "failedProbes", Decode: strict.Int(&h.FailedProbes, 1, 100)},
		strict.Field{Name: "goodProbes", Decode: strict.Int(&h.GoodProbes, 1, 100)},
		strict.Field{Name: "failedRequests", Decode: strict.Int(&h.FailedRequests, 0, 100)},
		strict.Field{Name: "slowStart", Decode: strict.Duration(&h.SlowStart, 0, time.Hour)},
	)
}
