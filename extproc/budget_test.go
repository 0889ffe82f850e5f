package extproc

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/route"
)

// open begins a stream that stays open until the function it returns is called.
func open(t *testing.T, server *Server) (*slowStream, func()) {
	t.Helper()
	s := &slowStream{ctx: t.Context(), messages: make(chan *extprocv3.ProcessingRequest), answers: make(chan *extprocv3.ProcessingResponse, 8)}
	done := make(chan error)
	go func() { done <- server.Process(s) }()
	return s, func() {
		close(s.messages)
		if err := <-done; err != nil {
			t.Errorf("Process returned %v", err)
		}
	}
}

const chatOf60 = "headers :method=POST :path=/v1/chat/completions content-type=application/json content-length=60 mode:"

// Bodies are asked for as long as all that were and did not come yet fit into the
// budget. Further requests are routed without theirs, and the next one has room
// again when one was decided or has gone away.
func TestBodiesShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := testSettings
		settings.TotalBodies = 130
		observer := new(recorder)
		server := New(newRouter(t, prefixAware(), 3), settings, observer, one)
		asks := func(mode string) (asked bool, end func()) {
			t.Helper()
			s, end := open(t, server)
			s.messages <- message(t, chatOf60+mode)
			synctest.Wait()
			answer := <-s.answers
			return answer.GetModeOverride().GetRequestBodyMode() == modeBuffered, end
		}
		first, endFirst := asks("NONE")
		second, endSecond := asks("NONE")
		third, endThird := asks("NONE")
		if !first || !second || third {
			t.Errorf("asked for the bodies of %v, %v and %v, want the first two", first, second, third)
		}
		if n := len(observer.records); n != 1 || len(observer.records[0].Problems) != 1 || observer.records[0].Problems[0] != Overloaded {
			t.Errorf("decided %+v", observer.records)
		}
		endFirst()
		fourth, endFourth := asks("NONE")
		if !fourth {
			t.Error("the budget of a client that left was not given back")
		}
		endSecond()
		endThird()
		endFourth()
		atRest(t, server)
	})
}

// A body that is asked for the recorder alone, and is not sent, as where Envoy may not, is
// not waited for longer than until the request is answered.
func TestBodyThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := recording(&notebook{none: true})
		settings.TotalBodies = 70
		server := New(newRouter(t, route.Policy{}, 3), settings, new(recorder), one)
		for _, answered := range []bool{true, true, false} {
			s, end := open(t, server)
			s.messages <- message(t, chatOf60+"NONE")
			synctest.Wait()
			if a := <-s.answers; a.GetModeOverride().GetRequestBodyMode() != modeBuffered {
				t.Error("the body is not asked for")
			}
			if answered {
				s.messages <- message(t, "response 200 from=10.0.0.1:80 attempts=1")
				synctest.Wait()
				<-s.answers
			}
			defer end() // it runs meanwhile
		}
		s, end := open(t, server)
		s.messages <- message(t, chatOf60+"NONE")
		synctest.Wait()
		if a := <-s.answers; a.GetModeOverride().GetRequestBodyMode() == modeBuffered {
			t.Error("a body is asked for while that of another is awaited")
		}
		end()
	})
}

// Bodies that come unasked are waited for as long as there is room.
func TestUnaskedBodiesShareTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := testSettings
		settings.TotalBodies = 70
		observer := new(recorder)
		server := New(newRouter(t, prefixAware(), 3), settings, observer, one)
		held, endHeld := open(t, server)
		held.messages <- message(t, chatOf60+"FULL_DUPLEX_STREAMED")
		held.messages <- message(t, `body more {"model":"m","messages":[{"role":"user","content":"`)
		synctest.Wait()
		if len(held.answers) != 0 {
			t.Error("it did not wait for the rest")
		}
		next, endNext := open(t, server)
		next.messages <- message(t, chatOf60+"FULL_DUPLEX_STREAMED")
		next.messages <- message(t, `body more {"model":"m","messages":[{"role":"user","content":"`)
		synctest.Wait()
		if len(next.answers) != 2 || len(observer.records) != 1 || observer.records[0].Problems[0] != Overloaded {
			t.Errorf("%d answers, decided %+v", len(next.answers), observer.records)
		}
		endHeld()
		endNext()
		atRest(t, server)
	})
}

// More requests than the limit are left to Envoy: their streams end at once, and
// are counted.
func TestTooManyRequestsAreLeftToEnvoy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := testSettings
		settings.Streams = 2
		server := New(newRouter(t, route.Policy{}, 3), settings, silent{}, one)
		_, end1 := open(t, server)
		_, end2 := open(t, server)
		synctest.Wait()
		retries := "headers\n  remove x-gateway-destination-endpoint\n  set x-envoy-retry-on: connect-failure,reset-before-request\n  set x-envoy-max-retries: 2"
		for i, tc := range []struct{ first, want string }{
			{chatOf60 + "NONE", retries},
			{chatOf60 + "BUFFERED", ""}, // the body would pass through here
			{chatOf60 + "STREAMED", ""},
			{"headers eos :method=GET :path=/v1/models mode:BUFFERED", retries},
			{"headers eos :method=GET :path=/v1/models observe", ""},
			{"headers eos :method=GET :path=/ x=*60000", "headers"}, // no room for more
			{"headers eos :method=GET :path=/ x-warmpath-pool=a mode:NONE", retries + "\n  remove x-warmpath-pool\n  route again"},
			{"response 200", ""},
			// Envoy keeps no copy of the body: it is handed back.
			{
				chatOf60 + "FULL_DUPLEX_STREAMED\nbody more abc\nbody eos def\nresponse 200\nresponse-body eos xyz",
				"headers\n  remove x-gateway-destination-endpoint\nbody\n  echo 3 bytes eos=false\nbody\n  echo 3 bytes eos=true\nresponse\nresponse-body\n  echo 3 bytes eos=true",
			},
		} {
			var got string
			s := &fakeStream{ctx: t.Context(), end: io.EOF, messages: messagesOf(t, strings.Split(tc.first, "\n")...)}
			s.answered = func(_ int, answers []*extprocv3.ProcessingResponse) {
				for _, r := range answers {
					got += strings.Repeat("\n", min(len(got), 1)) + describe(r)
				}
			}
			if err := server.Process(s); err != nil || server.Refused() != int64(i+1) {
				t.Errorf("%s: %v, %d refused", tc.first, err, server.Refused())
			}
			s.flush()
			if !sameLines(got, tc.want) {
				t.Errorf("%s: answered\n%s\nwant\n%s", tc.first, got, tc.want)
			}
		}
		refused := server.Refused()
		end1()
		_, end3 := open(t, server)
		synctest.Wait()
		if server.Refused() != refused {
			t.Errorf("%d refused, after one has ended", server.Refused())
		}
		end2()
		end3()
		atRest(t, server)
	})
}

// sameLines compares texts whose lines may come in any order.
func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// atRest fails the test if the server still holds anything.
func atRest(t testing.TB, s *Server) {
	t.Helper()
	idle(t, s.pools.Load().fallback.Router)
	if b, n, h := s.bodies.taken.Load(), s.streams.taken.Load(), s.Holding(); b != 0 || n != 0 || h != 0 {
		t.Errorf("%d bytes of bodies, %d streams and %d slots are held by nobody", b, n, h)
	}
}

// What is taken never exceeds the limit, whatever the order, and a take that
// fails takes nothing.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b budget
		limit := rapid.Int64Range(0, 20).Draw(t, "limit")
		var taken []int64
		sum := int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "give") {
				b.give(taken[0])
				sum, taken = sum-taken[0], taken[1:]
				continue
			}
			n := rapid.Int64Range(0, 8).Draw(t, "n")
			fits := limit == 0 || sum+n <= limit
			if b.take(n, limit) != fits {
				t.Fatalf("%d of %d taken, %d more: want %v", sum, limit, n, fits)
			}
			if fits {
				sum, taken = sum+n, append(taken, n)
			}
			if b.taken.Load() != sum {
				t.Fatalf("%d taken, want %d", b.taken.Load(), sum)
			}
		}
	})
}
