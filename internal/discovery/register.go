package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/origin"
)

// uploadTimeout is how long the body of a request may take.
const uploadTimeout = 30 * time.Second

// Register serves the membership at the path, such as /membership, and below it.
// docs/CONFIG.md describes what is served. Whoever reaches it may change the
// membership, but for web pages in a browser on this machine.
func (a *API) Register(mux *http.ServeMux, path string) {
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET " + path:                 a.get,
		"PUT " + path:                 a.put,
		"POST " + path + "/endpoints": a.putEndpoint,
		"DELETE " + path + "/endpoints": a.edit(func(endpoints []fleet.Endpoint, i int) []fleet.Endpoint {
			return append(endpoints[:i], endpoints[i+1:]...)
		}),
		"POST " + path + "/drain": a.edit(func(endpoints []fleet.Endpoint, i int) []fleet.Endpoint {
			endpoints[i].State = fleet.Draining
			return endpoints
		}),
		"POST " + path + "/undrain": a.edit(func(endpoints []fleet.Endpoint, i int) []fleet.Endpoint {
			if endpoints[i].State == fleet.Draining {
				endpoints[i].State = fleet.Healthy
			}
			return endpoints
		}),
	} {
		mux.Handle(pattern, notFromBrowsers(serve))
	}
}

// notFromBrowsers refuses what a page of somebody else's site can have a browser
// send to this machine: requests that browsers mark as coming from elsewhere, and
// those to a name that such a site has made point here.
func notFromBrowsers(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, errors.New("the request comes from a web page of another origin"))
	}))
	return protection.Handler(origin.ByAddress(next))
}

func (a *API) get(w http.ResponseWriter, _ *http.Request) {
	set, known := a.Membership()
	if !known {
		fail(w, http.StatusNotFound, ErrNoMembership)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", tag(set))
	_, _ = w.Write(config.EncodeEndpoints(set.Endpoints()))
}

// put takes a whole set, all of it or nothing.
func (a *API) put(w http.ResponseWriter, r *http.Request) {
	data, ok := a.body(w, r)
	if !ok {
		return
	}
	a.decoding.Lock()
	list, problems := config.DecodeEndpoints("body", data)
	a.decoding.Unlock()
	if problems = append(problems, list.Problems...); len(problems) > 0 {
		a.reject(w, http.StatusBadRequest, problems)
		return
	}
	set, _ := fleet.NewSet(list.Endpoints) // the list has each address once
	a.answer(w, r, func(fleet.Set) (fleet.Set, error) { return set, nil })
}

// putEndpoint adds an endpoint, or replaces the one of its address.
func (a *API) putEndpoint(w http.ResponseWriter, r *http.Request) {
	data, ok := a.body(w, r)
	if !ok {
		return
	}
	endpoint, problems := config.DecodeEndpoint("body", data)
	if len(problems) > 0 {
		a.reject(w, http.StatusBadRequest, problems)
		return
	}
	a.answer(w, r, func(set fleet.Set) (fleet.Set, error) {
		next, _ := fleet.NewSet(append([]fleet.Endpoint{endpoint}, set.Endpoints()...)) // the first of an address counts
		return next, nil
	})
}

// edit returns a handler that changes the member of the query's address.
func (a *API) edit(change func(endpoints []fleet.Endpoint, i int) []fleet.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.Query()["address"]
		if len(text) != 1 || len(text[0]) > 64 {
			fail(w, http.StatusBadRequest, fmt.Errorf("%d addresses in the query %.80q, want one: ?address=ip:port", len(text), r.URL.RawQuery))
			return
		}
		address, err := fleet.ParseAddress(text[0])
		if err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		a.answer(w, r, func(set fleet.Set) (fleet.Set, error) {
			i, ok := set.Index(address)
			if !ok {
				return set, notMemberError(address)
			}
			next, _ := fleet.NewSet(change(set.Endpoints(), i))
			return next, nil
		})
	}
}

type notMemberError string

func (e notMemberError) Error() string { return "no endpoint has the address " + string(e) }

// staleError says that the membership is not the one that the client has seen.
type staleError struct{ want, have string }

func (e staleError) Error() string {
	return fmt.Sprintf("If-Match: %.80s is not the version of the membership, %s", e.want, e.have)
}

// answer makes a change, if the membership is the one that the client means.
func (a *API) answer(w http.ResponseWriter, r *http.Request, edit func(fleet.Set) (fleet.Set, error)) {
	set, err := a.change(func(set fleet.Set, known bool) (fleet.Set, error) {
		if want := r.Header.Values("If-Match"); len(want) > 0 && !matches(want, set, known) {
			have := "which is none yet"
			if known {
				have = tag(set)
			}
			return set, staleError{fmt.Sprintf("%q", want), have}
		}
		return edit(set)
	})
	var tooMany tooManyError
	var notMember notMemberError
	var stale staleError
	switch {
	case errors.As(err, &stale):
		fail(w, http.StatusPreconditionFailed, err)
	case errors.As(err, &notMember):
		fail(w, http.StatusNotFound, err)
	case errors.As(err, &tooMany):
		a.reject(w, http.StatusUnprocessableEntity, err)
	case err != nil: // reported by who found it
		fail(w, http.StatusInternalServerError, err)
	default:
		w.Header().Set("ETag", tag(set))
		w.WriteHeader(http.StatusNoContent)
	}
}

// tag is the version of a set as an entity tag.
func tag(set fleet.Set) string { return fmt.Sprintf("%q", fmt.Sprintf("%016x", set.Version())) }

// matches reports whether one of the tags is that of the set, as RFC 9110 has it:
// weak tags match nothing here.
func matches(headers []string, set fleet.Set, known bool) bool {
	for _, header := range headers {
		for want := range strings.SplitSeq(header, ",") {
			if want = strings.TrimSpace(want); known && (want == "*" || want == tag(set)) {
				return true
			}
		}
	}
	return false
}

// body reads what was sent, or answers why not.
func (a *API) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if coding := strings.Join(r.Header.Values("Content-Encoding"), ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		a.reject(w, http.StatusUnsupportedMediaType, fmt.Errorf("the body has the content-encoding %.80q, want none", coding))
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTimeout))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, watch.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		a.reject(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", large.Limit))
	case err != nil:
		fail(w, http.StatusBadRequest, fmt.Errorf("reading the body: %w", err))
	}
	return data, err == nil
}

// reject refuses a membership, and has that reported.
func (a *API) reject(w http.ResponseWriter, code int, err error) {
	a.refuse(fmt.Errorf("membership over HTTP refused, the last good one stays: %w", err))
	fail(w, code, err)
}

// fail answers with a problem of RFC 9457.
func fail(w http.ResponseWriter, code int, err error) {
	problem := struct {
		Title  string   `json:"title"`
		Status int      `json:"status"`
		Detail string   `json:"detail"`
		Faults []string `json:"faults,omitempty"`
	}{Title: http.StatusText(code), Status: code, Detail: err.Error()}
	var list config.Problems
	if errors.As(err, &list) {
		problem.Detail = fmt.Sprintf("%d faults, nothing is changed", len(list))
		for i, p := range list {
			if i == maxListed {
				break
			}
			problem.Faults = append(problem.Faults, p.String())
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(problem)
}
