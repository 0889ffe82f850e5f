package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warmpath/warmpath/internal/discovery"
	"github.com/warmpath/warmpath/internal/endpointslice"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/testenv/authority"
	"github.com/warmpath/warmpath/internal/testenv/kubeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// following is a source that runs against a stand-in.
type following struct {
	*kubeapi.Server
	t       *testing.T
	updates chan discovery.Update
	token   string // path of the token file
	options Options
}

// hurried are times at which a test does not wait long. What is to answer has long enough
// for a busy machine.
func hurried() times {
	return times{watch: time.Second, grace: 10 * time.Second, ping: 10 * time.Second, retry: time.Millisecond, retryMost: 20 * time.Millisecond}
}

// silence is the grace of tests that wait until it is over.
const silence = 2 * time.Second

// prepare starts a server with two slices, and does not follow it yet.
func prepare(t *testing.T) *following {
	f := &following{Server: kubeapi.Start(t, "first"), t: t, updates: make(chan discovery.Update, 100)}
	f.token = filepath.Join(t.TempDir(), "token")
	f.writeToken("first\n")
	f.Put("a", kubeapi.Endpoint{Address: "10.0.0.1:8000", Zone: "eu-1a"}, kubeapi.Endpoint{Address: "10.0.0.2:8000", NotReady: true})
	f.Put("b", kubeapi.Endpoint{Address: "10.0.0.3:8000"})
	f.options = Options{
		Server: f.URL, TokenFile: f.token, CAFile: f.CAFile, Namespace: f.Namespace, Service: f.Service,
		Slices: endpointslice.Options{Port: endpointslice.PortRef{Name: "http"}},
	}
	return f
}

// writeToken replaces the token at one stroke, as the kubelet does: nobody reads half.
func (f *following) writeToken(text string) {
	f.t.Helper()
	authority.Replace(f.t, f.token, []byte(text))
}

// run follows until the test ends.
func (f *following) run(w times) {
	f.t.Helper()
	source, err := newSource(f.options, w)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, func(u discovery.Update) { f.updates <- u }) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			f.t.Errorf("Run returned %v", err)
		}
	})
}

// words are the members of an update, short: the last byte of the address, and
// the state if it is not healthy.
func words(u discovery.Update) string {
	var list []string
	for _, e := range u.Set.Endpoints() {
		w := strings.TrimSuffix(strings.TrimPrefix(e.Address, "10.0.0."), ":8000")
		if e.State != fleet.Healthy {
			w += " " + e.State.String()
		}
		list = append(list, w)
	}
	return strings.Join(list, ", ")
}

// want takes the next update, which has these members and an error that contains
// failure, or none if that is empty.
func (f *following) want(members, failure string) discovery.Update {
	f.t.Helper()
	u := f.next()
	f.check(u, members, failure)
	return u
}

// next waits for an update.
func (f *following) next() discovery.Update {
	f.t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case u := <-f.updates:
		return u
	case <-timer.C:
		f.t.Fatal("no update")
	}
	return discovery.Update{}
}

func (f *following) check(u discovery.Update, members, failure string) {
	f.t.Helper()
	if got := words(u); got != members || (u.Err == nil) != (failure == "") || !strings.Contains(text(u.Err), failure) {
		f.t.Fatalf("update with %q and error %v, want %q and %q", got, u.Err, members, failure)
	}
}

// eventually polls for what a server shows.
func (f *following) eventually(what string, done func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			f.t.Fatalf("never: %s", what)
		}
	}
}

const all = "1, 2 unhealthy, 3"

func TestFollow(t *testing.T) {
	f := prepare(t)
	f.run(hurried())
	if u := f.want(all, ""); u.Set.At(0).Zone != "eu-1a" || u.LastGood.IsZero() || len(u.Problems) > 0 || u.Warning != "" {
		t.Errorf("update %+v", u)
	}
	f.Put("a", kubeapi.Endpoint{Address: "10.0.0.1:8000"}, kubeapi.Endpoint{Address: "10.0.0.2:8000"})
	f.want("1, 2, 3", "")
	f.Put("a", kubeapi.Endpoint{Address: "10.0.0.1:8000", Terminating: true}, kubeapi.Endpoint{Address: "10.0.0.2:8000"})
	f.want("1 draining, 2, 3", "")
	f.Put("c", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
	f.want("1 draining, 2, 3, 4", "")
	f.Put("c", kubeapi.Endpoint{Address: "10.0.0.4:8000"}) // nothing new, so nothing is reported
	f.Delete("a")
	f.want("3, 4", "")
	f.Delete("b")
	f.want("4", "")
	f.Delete("c")
	if u := f.want("", ""); !strings.Contains(u.Warning, "Service llm/llama has no endpoints") {
		t.Errorf("warning %q", u.Warning)
	}
	f.Put("d", kubeapi.Endpoint{Address: "10.0.0.5:8000"})
	f.want("5", "")
	if n := f.Count("list"); n != 1 {
		t.Errorf("%d lists, want one", n)
	}
}

// A watch that ends in its time goes on where it was, after a bookmark from there.
func TestWatchEnds(t *testing.T) {
	f := prepare(t)
	w := hurried()
	w.retryMost = 100 * time.Millisecond
	f.run(w)
	f.want(all, "")
	f.Bookmark()
	f.eventually("a second watch", func() bool { return f.Count("watch") >= 2 })
	f.Compact() // only who has heard the bookmark can go on
	f.eventually("four watches", func() bool { return f.Count("watch") >= 4 })
	f.Put("b", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
	f.want("1, 2 unhealthy, 4", "")
	if n := f.Count("list"); n != 1 {
		t.Errorf("%d lists, want one", n)
	}
}

// A version that the server has forgotten, in a watch and before one: all is listed again.
func TestExpired(t *testing.T) {
	f := prepare(t)
	f.run(hurried())
	f.want(all, "")
	f.eventually("a watch", func() bool { return f.Watches() == 1 })
	f.Forget()
	f.eventually("a second list", func() bool { return f.Count("list") == 2 })
	f.Put("b", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
	f.want("1, 2 unhealthy, 4", "")
	// 410 as a status of the answer, for longer than a restart takes.
	f.Refuse(http.StatusGone)
	f.Cut()
	if u := f.nextWith("answers 410"); words(u) != "1, 2 unhealthy, 4" {
		t.Errorf("members %q", words(u))
	}
	f.Refuse(0)
	f.want("1, 2 unhealthy, 4", "")
}

// Whatever the server answers, the membership stays, and each cause is told once.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		fault      func(f *following)
		mend       func(f *following)
	}{
		{"forbidden", "examples/kubernetes/rbac.yaml", func(f *following) { f.Refuse(403) }, func(f *following) { f.Refuse(0) }},
		{"not found", `answers 404: "told to refuse"`, func(f *following) { f.Refuse(404) }, func(f *following) { f.Refuse(0) }},
		{"internal error", "answers 500", func(f *following) { f.Refuse(500) }, func(f *following) { f.Refuse(0) }},
		{"too many", "answers 429", func(f *following) { f.Refuse(429) }, func(f *following) { f.Refuse(0) }},
		{"another token", "does not take the token", func(f *following) { f.SetToken("second") }, func(f *following) { f.writeToken("second") }},
		{"no token", "token file", func(f *following) { os.Remove(f.token) }, func(f *following) { f.writeToken("first") }},
		{"an empty token", "0 bytes that are not one word", func(f *following) { f.writeToken("") }, func(f *following) { f.writeToken("first") }},
		{"no authorities", "authorities", func(f *following) { os.Rename(f.CAFile, f.CAFile+".away") }, func(f *following) { os.Rename(f.CAFile+".away", f.CAFile) }},
		{"other authorities", "certificate", func(f *following) {
			os.Rename(f.CAFile, f.CAFile+".away")
			authority.Replace(t, f.CAFile, authority.New(t, "other").PEM())
		}, func(f *following) { os.Rename(f.CAFile+".away", f.CAFile) }},
		{"silence", "no answer in 2s", func(f *following) { f.Silence(true) }, func(f *following) { f.Silence(false) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := prepare(t)
			w := hurried()
			w.watch = time.Hour // so that nothing is read while the fault is made
			if tc.name == "silence" {
				w.grace = silence
			}
			f.run(w)
			f.want(all, "")
			f.eventually("a watch", func() bool { return f.Watches() == 1 })
			tc.fault(f)
			f.Cut()
			u := f.nextWith(tc.want)
			if words(u) != all || u.LastGood.IsZero() || strings.Contains(u.Err.Error(), "first") || strings.Contains(u.Err.Error(), "second") {
				t.Errorf("%q, %v", words(u), u.Err)
			}
			before := f.Count("refused")
			if before > 0 {
				f.eventually("more tries", func() bool { return f.Count("refused") > before+2 || tc.name == "too many" })
			}
			for len(f.updates) > 0 {
				t.Errorf("told again: %v", (<-f.updates).Err)
			}
			tc.mend(f)
			if u := f.want(all, ""); u.Err != nil {
				t.Error(u.Err)
			}
			f.Put("b", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
			f.want("1, 2 unhealthy, 4", "")
		})
	}
}

// nextWith takes updates until one has an error of this text. The cut itself is told too.
func (f *following) nextWith(failure string) discovery.Update {
	f.t.Helper()
	for range 5 {
		timer := time.NewTimer(20 * time.Second)
		select {
		case u := <-f.updates:
			timer.Stop()
			if strings.Contains(text(u.Err), failure) {
				return u
			}
		case <-timer.C:
			f.t.Fatalf("no error %q", failure)
		}
	}
	f.t.Fatalf("five updates and no error %q", failure)
	return discovery.Update{}
}

// A connection on which nothing comes any more, although it is open.
func TestSilentWatch(t *testing.T) {
	f := prepare(t)
	w := hurried()
	w.grace = silence
	f.run(w)
	f.want(all, "")
	f.eventually("a watch", func() bool { return f.Watches() == 1 })
	f.Silence(true)
	f.Put("b", kubeapi.Endpoint{Address: "10.0.0.4:8000"})
	f.nextWith("no answer in 2s") // of the next request: the server ends the watch itself
	f.Silence(false)
	for range 10 { // a busy machine may be silent once more
		if u := f.next(); u.Err == nil {
			f.check(u, "1, 2 unhealthy, 4", "")
			return
		}
	}
	t.Error("ten updates and none without an error")
}

// The server is not there at the start, then it is.
func TestServerComesLate(t *testing.T) {
	f := prepare(t)
	f.Refuse(503)
	f.run(hurried())
	if u := f.want("", "answers 503"); !u.LastGood.IsZero() {
		t.Errorf("last good %v", u.LastGood)
	}
	f.Refuse(0)
	f.want(all, "")
}

// Many slices come in pages; an empty page is no empty Service.
func TestPages(t *testing.T) {
	f := prepare(t)
	var want []string
	f.Delete("a")
	f.Delete("b")
	for i := range 2*pageSlices + 3 {
		f.Put(fmt.Sprintf("s%02d", i), kubeapi.Endpoint{Address: fmt.Sprintf("10.0.0.%d:8000", i+10)})
		want = append(want, fmt.Sprint(i+10))
	}
	f.run(hurried())
	u := f.want(strings.Join(want, ", "), "")
	if n := f.Count("list"); n != 3 || u.Set.Len() != 2*pageSlices+3 {
		t.Errorf("%d pages, %d endpoints", n, u.Set.Len())
	}
}

func TestRead(t *testing.T) {
	f := prepare(t)
	source, err := New(f.options)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := source.Read(t.Context()); err != nil || words(u) != all {
		t.Errorf("%q, %v", words(u), err)
	}
	f.Refuse(403)
	if _, err := source.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("refused: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for server, want := range map[string]string{
		"10.0.0.1:6443":        "want https://host:port",
		"ftp://10.0.0.1":       "want https://host:port",
		"http://10.0.0.1:8001": "a token is not sent over plain http",
	} {
		if _, err := New(Options{Server: server, TokenFile: "t"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", server, err)
		}
	}
}

func TestBackoff(t *testing.T) {
	w := defaultTimes()
	for _, tc := range []struct {
		failures  int
		asked     time.Duration
		low, high time.Duration
	}{
		{1, 0, 50 * time.Millisecond, 100 * time.Millisecond},
		{2, 0, 100 * time.Millisecond, 200 * time.Millisecond},
		{6, 0, 1600 * time.Millisecond, 3200 * time.Millisecond},
		{7, 0, 2500 * time.Millisecond, 5 * time.Second},
		{1 << 40, 0, 2500 * time.Millisecond, 5 * time.Second},
		{1, 20 * time.Second, 10 * time.Second, 20 * time.Second},
		{1, time.Hour, 15 * time.Second, 30 * time.Second},
	} {
		if low, high := backoff(w, tc.failures, tc.asked, 0), backoff(w, tc.failures, tc.asked, 1); low != tc.low || high != tc.high {
			t.Errorf("%+v: %v..%v", tc, low, high)
		}
	}
}
