package load

import (
	"fmt"
	"io"
	"time"
)

// Progress returns an observer for [Load] that writes a line to w for every
// interval in which a request ended. total is how many requests there are; 0 is
// unknown.
func Progress(w io.Writer, total int, interval time.Duration) func(Outcome) {
	begin := time.Now()
	next := begin.Add(interval)
	done, failed := 0, 0
	return func(o Outcome) {
		done++
		if o.Err != "" {
			failed++
		}
		now := time.Now()
		if now.Before(next) {
			return
		}
		for !now.Before(next) {
			next = next.Add(interval)
		}
		of := ""
		if total > 0 {
			of = fmt.Sprintf(" of %d", total)
		}
		fmt.Fprintf(w, "%v: %d%s requests, %d failed\n", now.Sub(begin).Round(time.Second), done, of, failed)
	}
}
