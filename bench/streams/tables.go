package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/recording"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/telemetry"
)

// tableRow is what millions of prompts, tenants and models leave behind, none of
// which comes twice.
type tableRow struct {
	Strategy string  `json:"strategy"`
	Keys     int     `json:"keys"`
	Seconds  float64 `json:"seconds"`
	// Filled is the live heap after a tenth of them, Most the largest of the tenths
	// after it, Last that at the end; in bytes.
	Filled int `json:"filled"`
	Most   int `json:"most"`
	Last   int `json:"last"`
	// Series is how many series the metrics have, after a tenth and at the end.
	Series [2]int `json:"series"`
	// Forgotten is warmpath_prefixes_forgotten_total, Unrecorded
	// warmpath_recording_dropped_total, Decided warmpath_decisions_total.
	Forgotten  float64 `json:"forgotten"`
	Unrecorded float64 `json:"unrecorded"`
	Decided    float64 `json:"decided"`
}

const (
	// tableEndpoints is the fleet; the memory of what was served where has 2 MiB for
	// each, in powers of two.
	tableEndpoints = 7
	// maxTables is how much may live on the heap in the end, in bytes: 16 MiB of that
	// memory, and half as much for all else.
	maxTables = 24 << 20
	// moreTables is how much more that may be than after a tenth of the prompts.
	moreTables = 1 << 20
)

func (r *tableRow) wrong() error {
	var errs []error
	if r.Most > maxTables || r.Most > r.Filled+moreTables {
		errs = append(errs, fmt.Errorf("%.1f MiB alive, at most %d and no more than %d above the %.1f after a tenth", mebibytes(r.Most), maxTables>>20, moreTables>>20, mebibytes(r.Filled)))
	}
	if r.Series[0] != r.Series[1] {
		errs = append(errs, fmt.Errorf("%d series of metrics became %d", r.Series[0], r.Series[1]))
	}
	if r.Decided != float64(r.Keys) || r.Forgotten == 0 {
		errs = append(errs, fmt.Errorf("%v of %d were decided, %v levels forgotten", r.Decided, r.Keys, r.Forgotten))
	}
	return errors.Join(errs...)
}

// measureTables sends distinct prompts through all that warmpath has between gRPC
// and the choice, in this process and without waiting.
func measureTables(ctx context.Context, o options, r *report) error {
	for _, policy := range []route.Policy{
		{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength},
		{Strategy: route.KVAware},
	} {
		row, err := fill(ctx, o, policy)
		if err != nil {
			return fmt.Errorf("%s: %w", policy.Strategy, err)
		}
		r.Tables = append(r.Tables, row)
		if err := row.wrong(); err != nil {
			r.wrong("tables, %s: %v", policy.Strategy, err)
		}
	}
	return nil
}

// assembled is a warmpath without its listeners.
type assembled struct {
	server   *extproc.Server
	metrics  *telemetry.Metrics
	recorder *recording.Recorder
	folder   string
}

func assemble(policy route.Policy) (a assembled, err error) {
	endpoints := make([]fleet.Endpoint, tableEndpoints)
	for i := range endpoints {
		endpoints[i] = fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Weight: 1}
	}
	set, duplicates := fleet.NewSet(endpoints)
	if len(duplicates) > 0 {
		return a, fmt.Errorf("endpoints twice: %v", duplicates)
	}
	router := route.NewRouter(policy)
	router.SetMembership(set)
	a.metrics = telemetry.NewMetrics(router.Loads())
	if a.folder, err = os.MkdirTemp("", "warmpath-streams-"); err != nil {
		return a, err
	}
	a.recorder = recording.New(recording.Options{
		Folder: a.folder, Ratio: 0.1, FileBytes: 1 << 20, Files: 2, Salt: recording.NewSalt(),
		Written: func(n int) { a.metrics.Recorded.Add(float64(n)) },
		Dropped: func(why recording.Reason, n int) { a.metrics.Unrecorded.WithLabelValues(string(why)).Add(float64(n)) },
		Failing: func(error) {}, // what is dropped is counted
	})
	for _, why := range recording.Reasons() {
		a.metrics.Unrecorded.WithLabelValues(string(why))
	}
	a.recorder.Start()
	a.server = extproc.New(router, extproc.Settings{
		TenantHeader: tenantHeader, BodyLimit: 4 << 20, InflateLimit: 4 << 20, Recorder: a.recorder,
		RetryConditions: []string{"reset"}, RetryAttempts: 2,
	}, telemetry.NewObserver(a.metrics, nil), rand.Uint64)
	a.metrics.CountRefused(a.server.Refused)
	a.metrics.CountForgotten(router.Forgotten)
	return a, nil
}

func (a assembled) close() error {
	a.recorder.Close()
	return os.RemoveAll(a.folder)
}

// fill sends all prompts, and looks at the heap after each tenth of them.
func fill(ctx context.Context, o options, policy route.Policy) (row tableRow, err error) {
	row = tableRow{Strategy: policy.Strategy.String(), Keys: o.keys / 10 * 10}
	before := liveHeap()
	a, err := assemble(policy)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	begin := time.Now()
	for tenth := range 10 {
		if err := a.serve(ctx, o.seed, tenth*row.Keys/10, row.Keys/10); err != nil {
			return row, err
		}
		row.Last = liveHeap() - before
		series, sums, err := a.scrape()
		if err != nil {
			return row, err
		}
		if tenth == 0 {
			row.Filled, row.Series[0] = row.Last, series
		}
		row.Most, row.Series[1] = max(row.Most, row.Last), series
		row.Forgotten, row.Unrecorded, row.Decided = sums["warmpath_prefixes_forgotten_total"], sums["warmpath_recording_dropped_total"], sums["warmpath_decisions_total"]
	}
	row.Seconds = time.Since(begin).Seconds()
	return row, nil
}

// serve sends so many requests, from a number on, as fast as they are served.
func (a assembled) serve(ctx context.Context, seed uint64, from, count int) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			p := newPassing(ctx, seed)
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				p.next(from + i)
				_ = a.server.Process(p) // it never returns an error
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// scrape gathers all metrics: how many series there are, and the sum of each name's.
func (a assembled) scrape() (series int, sums map[string]float64, err error) {
	families, err := a.metrics.Registry().Gather()
	sums = make(map[string]float64)
	for _, f := range families {
		series += len(f.GetMetric())
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetCounter().GetValue()
		}
	}
	return series, sums, err
}

// liveHeap is what lives on the heap of this process.
func liveHeap() int {
	for range 3 { // what is in pools lives for two more
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func (r *report) tableTable(b *strings.Builder) {
	if len(r.Tables) == 0 {
		return
	}
	b.WriteString("\n| strategy | distinct prompts, tenants and models | s | live heap after a tenth, MiB | largest after that | at the end | series of metrics | levels forgotten and counted | records dropped and counted |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.Tables {
		fmt.Fprintf(b, "| %s | %d | %.0f | %.1f | %.1f | %.1f | %d | %.0f | %.0f |\n", row.Strategy, row.Keys, row.Seconds,
			mebibytes(row.Filled), mebibytes(row.Most), mebibytes(row.Last), row.Series[1], row.Forgotten, row.Unrecorded)
	}
}
