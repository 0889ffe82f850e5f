package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/warmpath/warmpath/internal/config/watch"
	"github.com/warmpath/warmpath/internal/fleet"
)

// served is an API behind a server.
type served struct {
	*API
	url string
}

func serveAPI(t *testing.T, stateFile string) served {
	t.Helper()
	mux := http.NewServeMux()
	api := NewAPI(stateFile)
	api.Register(mux, "/membership")
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return served{api, server.URL}
}

// do sends a request to /membership and what follows.
func (s served) do(t *testing.T, method, rest, body string, headers ...string) (code int, tag, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+"/membership"+rest, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("ETag"), string(text)
}

// members are the set in short: each address with what is not as usual.
func members(set fleet.Set) string {
	var parts []string
	for _, e := range set.Endpoints() {
		part := e.Address
		if e.Weight != 1 {
			part += fmt.Sprintf(" weight=%d", e.Weight)
		}
		if e.State != fleet.Healthy {
			part += " " + e.State.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func TestAPI(t *testing.T) {
	s := serveAPI(t, "")
	const two = "10.0.0.1:80, 10.0.0.2:80 weight=3"
	large := "endpoints: [" + strings.Repeat(" ", watch.MaxBytes) + "]"
	var many strings.Builder
	many.WriteString("endpoints:\n")
	for i := range MaxEndpoints + 1 {
		fmt.Fprintf(&many, "- {address: '10.0.%d.%d:80'}\n", i>>8, i&255)
	}
	for _, c := range []struct {
		name, method, rest, body string
		headers                  []string
		code                     int
		want, says               string
	}{
		{"nothing yet", "GET", "", "", nil, 404, "", "no membership has been given yet"},
		{"nothing to match", "PUT", "", "endpoints: []", []string{"If-Match", "*"}, 412, "", "none yet"},
		{"drain of nothing", "POST", "/drain?address=10.0.0.1:80", "", nil, 404, "", "no endpoint has the address 10.0.0.1:80"},
		{"a set", "PUT", "", "endpoints: [{address: '10.0.0.2:80', weight: 3}, {address: '10.0.0.1:80'}]", nil, 204, two, ""},
		{"the same as JSON", "PUT", "", `{"endpoints": [{"address": "10.0.0.1:80"}, {"address": "10.0.0.2:80", "weight": 3}]}`, nil, 204, two, ""},
		{"it is shown", "GET", "", "", nil, 200, two, `"address": "10.0.0.2:80"`},
		{"compressed", "PUT", "", "\x1f\x8b\b", []string{"Content-Encoding", "gzip"}, 415, two, `content-encoding \"gzip\", want none`},
		{"one, compressed", "POST", "/endpoints", "\x1f\x8b\b", []string{"Content-Encoding", "br"}, 415, two, `content-encoding \"br\", want none`},
		{"not compressed", "PUT", "", "endpoints: [{address: '10.0.0.2:80', weight: 3}, {address: '10.0.0.1:80'}]", []string{"Content-Encoding", "Identity"}, 204, two, ""},
		{"not YAML", "PUT", "", "endpoints: [", nil, 400, two, "not YAML"},
		{"no body", "PUT", "", "", nil, 400, two, "the file is empty"},
		{"one bad entry", "PUT", "", "endpoints: [{address: '10.0.0.9:80'}, {address: '10.0.0.1:80', weight: 1001}]", nil, 400, two, "endpoints[1].weight: 1001 is above the maximum 1000"},
		{"a name", "PUT", "", "endpoints: [{address: 'gpu-1:80'}]", nil, 400, two, "is a host name"},
		{"twice", "PUT", "", "endpoints: [{address: '10.0.0.1:80'}, {address: '10.0.0.1:80'}]", nil, 400, two, "in the list already"},
		{"too large", "PUT", "", large, nil, 413, two, "more than 16777216 bytes"},
		{"too many", "PUT", "", many.String(), nil, 422, two, "10001 endpoints, want at most 10000"},
		{"add", "POST", "/endpoints", "{address: '[fd00::0:1]:80', zone: a}", nil, 204, two + ", [fd00::1]:80", ""},
		{"replace", "POST", "/endpoints", `{"address": "[fd00::1]:80", "weight": 2}`, nil, 204, two + ", [fd00::1]:80 weight=2", ""},
		{"add without address", "POST", "/endpoints", "{weight: 2}", nil, 400, two + ", [fd00::1]:80 weight=2", "the address is missing"},
		{"add what is none", "POST", "/endpoints", "[]", nil, 400, two + ", [fd00::1]:80 weight=2", "is not a mapping"},
		{"remove", "DELETE", "/endpoints?address=%5Bfd00::1%5D:80", "", nil, 204, two, ""},
		{"remove again", "DELETE", "/endpoints?address=[fd00::1]:80", "", nil, 404, two, "[fd00::1]:80"},
		{"drain", "POST", "/drain?address=10.0.0.1:80", "", nil, 204, "10.0.0.1:80 draining, 10.0.0.2:80 weight=3", ""},
		{"drain again", "POST", "/drain?address=::ffff:10.0.0.1:80", "", nil, 400, "10.0.0.1:80 draining, 10.0.0.2:80 weight=3", "::ffff:10.0.0.1:80"},
		{"drain by another spelling", "POST", "/drain?address=[::ffff:10.0.0.1]:80", "", nil, 204, "10.0.0.1:80 draining, 10.0.0.2:80 weight=3", ""},
		{"undrain", "POST", "/undrain?address=10.0.0.1:80", "", nil, 204, two, ""},
		{"no address", "POST", "/drain", "", nil, 400, two, "0 addresses"},
		{"two addresses", "POST", "/drain?address=10.0.0.1:80&address=10.0.0.2:80", "", nil, 400, two, "2 addresses"},
		{"a long address", "POST", "/drain?address=" + strings.Repeat("1", 5000), "", nil, 400, two, "1 addresses in the query"},
		{"a stale version", "PUT", "", "endpoints: []", []string{"If-Match", `"0123456789abcdef"`}, 412, two, "is not the version of the membership"},
		{"a weak version", "PUT", "", "endpoints: []", []string{"If-Match", "W/" + tag(s.set)}, 412, two, "is not the version"},
		{"another method", "DELETE", "", "", nil, 405, two, ""},
		{"from another site", "POST", "/drain?address=10.0.0.1:80", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, two, "another origin"},
		{"from another origin", "PUT", "", "endpoints: []", []string{"Origin", "https://site.example"}, 403, two, "another origin"},
		{"to another name", "PUT", "", "endpoints: []", []string{"Host", "site.example:9004"}, 421, two, "site.example:9004"},
		{"to localhost", "GET", "", "", []string{"Host", "localhost:9004"}, 200, two, ""},
		{"to IPv6", "GET", "", "", []string{"Host", "[::1]:9004"}, 200, two, ""},
		{"any version", "PUT", "", "endpoints: []", []string{"If-Match", "*"}, 204, "", ""},
		{"none is something", "GET", "", "", nil, 200, "", `"endpoints": []`},
	} {
		code, _, answer := s.do(t, c.method, c.rest, c.body, c.headers...)
		set, _ := s.Membership()
		if code != c.code || members(set) != c.want || !strings.Contains(answer, c.says) && !strings.Contains(unquoted(answer), c.says) {
			t.Errorf("%s: %d with %q, then %s; want %d with %q, then %s", c.name, code, answer, members(set), c.code, c.says, c.want)
		}
		if code >= 400 && code != 405 && !json.Valid([]byte(answer)) {
			t.Errorf("%s: %q is not JSON", c.name, answer)
		}
	}
}

// unquoted are the texts of a problem.
func unquoted(answer string) string {
	var v struct {
		Detail string   `json:"detail"`
		Faults []string `json:"faults"`
	}
	_ = json.Unmarshal([]byte(answer), &v)
	return v.Detail + "\n" + strings.Join(v.Faults, "\n")
}

// Two scripts that each add an endpoint to what they have seen lose none.
func TestIfMatch(t *testing.T) {
	s := serveAPI(t, "")
	s.do(t, "PUT", "", "endpoints: []")
	var scripts sync.WaitGroup
	for i := range 8 {
		scripts.Go(func() {
			for {
				_, seen, text := s.do(t, "GET", "", "")
				var v struct {
					Endpoints []map[string]any `json:"endpoints"`
				}
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					t.Errorf("%v in %s", err, text)
					return
				}
				v.Endpoints = append(v.Endpoints, map[string]any{"address": fmt.Sprintf("10.0.0.%d:80", i+1)})
				body, err := json.Marshal(v)
				if err != nil {
					t.Error(err)
				}
				code, given, answer := s.do(t, "PUT", "", string(body), "If-Match", seen)
				switch {
				case code == http.StatusNoContent && given != seen:
					return
				case code != http.StatusPreconditionFailed:
					t.Errorf("%d %s", code, answer)
					return
				}
			}
		})
	}
	scripts.Wait()
	if set, _ := s.Membership(); set.Len() != 8 {
		t.Errorf("%d endpoints, want 8", set.Len())
	}
}

// Every change is reported, and every refusal after it, and nothing before there is
// something.
func TestAPIRun(t *testing.T) {
	s := serveAPI(t, "")
	if news := s.news(); len(news) > 0 {
		t.Errorf("reported %v of nothing", news)
	}
	ctx, cancel := context.WithCancel(t.Context())
	updates := make(chan Update)
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, func(u Update) { updates <- u }) }()
	expect := func(want string, refused bool) {
		t.Helper()
		if u := <-updates; members(u.Set) != want || (u.Err != nil) != refused || u.LastGood.IsZero() == (want != "") {
			t.Errorf("reported %s, %v, last good %v", members(u.Set), u.Err, u.LastGood)
		}
	}
	s.do(t, "PUT", "", "endpoints: [")
	expect("", true)
	s.do(t, "PUT", "", "endpoints: [{address: '10.0.0.1:80'}]")
	expect("10.0.0.1:80", false)
	s.do(t, "PUT", "", "endpoints: [{address: '10.0.0.1:80'}]") // no news
	s.do(t, "POST", "/drain?address=10.0.0.9:80", "")
	s.do(t, "POST", "/drain?address=10.0.0.1:80", "")
	expect("10.0.0.1:80 draining", false)
	s.do(t, "PUT", "", "endpoints: 5")
	expect("10.0.0.1:80 draining", true)
	s.do(t, "POST", "/drain?address=10.0.0.1:80", "") // as it is, but good
	expect("10.0.0.1:80 draining", false)
	cancel()
	<-ended
	// What was good and what was refused before anybody looked are both told.
	s.do(t, "POST", "/undrain?address=10.0.0.1:80", "")
	s.do(t, "PUT", "", "endpoints: 5")
	if news := s.news(); len(news) != 2 || news[0].Err != nil || members(news[0].Set) != "10.0.0.1:80" || news[1].Err == nil || members(news[1].Set) != "10.0.0.1:80" {
		t.Errorf("reported %v", news)
	}
}

// The state file holds what was given, is nobody else's to read, and is whole.
func TestStateFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	s := serveAPI(t, path)
	if _, known := s.Membership(); known {
		t.Error("a membership out of nothing")
	}
	s.do(t, "PUT", "", "endpoints: [{address: '10.0.0.1:80', weight: 7, zone: '<a>', priority: 2, instance: i}, {address: '10.0.0.2:80', state: draining}]")
	want, _ := s.Membership()
	if got, known := NewAPI(path).Membership(); !known || !got.Equal(want) || want.Len() != 2 {
		t.Errorf("after a restart %v, want %v", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
	if news := NewAPI(path).news(); len(news) != 1 || !news[0].Set.Equal(want) || news[0].Err != nil {
		t.Errorf("reported %v", news)
	}
}

// What cannot be kept is not taken over, and said.
func TestStateFileThatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gone")
	s := serveAPI(t, filepath.Join(folder, "state.json"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.do(t, "PUT", "", "endpoints: [{address: '10.0.0.1:80'}]")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	code, _, answer := s.do(t, "POST", "/drain?address=10.0.0.1:80", "")
	if set, _ := s.Membership(); code != http.StatusInternalServerError || !strings.Contains(answer, "cannot be kept, nothing is changed") || members(set) != "10.0.0.1:80" {
		t.Errorf("%d %s, then %s", code, answer, members(set))
	}
	if news := s.news(); len(news) != 2 || news[1].Err == nil {
		t.Errorf("reported %v", news)
	}
}

// A state file that is broken counts as none, and stays until a set is given.
func TestBrokenStateFile(t *testing.T) {
	for _, text := range []string{"", "{\"endpoints\": [", "endpoints: [{address: '10.0.0.1:80'}, {address: gpu:80}]"} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := serveAPI(t, path)
		if news := s.news(); len(news) != 1 || news[0].Err == nil || !strings.Contains(news[0].Err.Error(), path) || !news[0].LastGood.IsZero() {
			t.Errorf("%q: reported %v", text, news)
		}
		if code, _, answer := s.do(t, "PUT", "", "endpoints: []"); code != http.StatusNoContent {
			t.Errorf("%q: %d %s", text, code, answer)
		}
		if _, known := NewAPI(path).Membership(); !known {
			t.Errorf("%q: the new state was not kept", text)
		}
	}
}

// Changes are those of a map, whatever their order, and the state file follows.
func TestAPITwin(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(folder, rapid.StringMatching(`[a-z]{20}`).Draw(r, "file"))
		s := serveAPI(t, path)
		s.do(t, "PUT", "", "endpoints: []")
		twin := map[string]string{}
		for range rapid.IntRange(0, 8).Draw(r, "changes") {
			address := rapid.SampledFrom([]string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}).Draw(r, "address")
			_, member := twin[address]
			switch change := rapid.SampledFrom([]string{"add", "remove", "drain", "undrain"}).Draw(r, "change"); {
			case change == "add":
				s.do(t, "POST", "/endpoints", "{address: '"+address+"'}")
				twin[address] = ""
			case change == "remove":
				s.do(t, "DELETE", "/endpoints?address="+address, "")
				delete(twin, address)
			default:
				s.do(t, "POST", "/"+change+"?address="+address, "")
				if member {
					twin[address] = map[string]string{"drain": " draining", "undrain": ""}[change]
				}
			}
		}
		var parts []string
		for address, state := range twin {
			parts = append(parts, address+state)
		}
		slices.Sort(parts)
		kept, _ := NewAPI(path).Membership()
		if set, _ := s.Membership(); members(set) != strings.Join(parts, ", ") || !kept.Equal(set) {
			r.Fatalf("%s, kept %s, want %v", members(set), members(kept), parts)
		}
	})
}
