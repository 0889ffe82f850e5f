package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/warmpath/warmpath/envoy"
)

// Status is the part of warmpath's /status that users of a stack look at.
type Status struct {
	Config struct {
		Generation int    `json:"generation"`
		Strategy   string `json:"strategy"`
		Error      string `json:"error"`
	} `json:"config"`
	Membership MembershipStatus `json:"membership"`
	Endpoints  []EndpointStatus `json:"endpoints"`
	// Peers are the other routers that have told of their counts.
	Peers []struct {
		Router      string `json:"router"`
		Silent      bool   `json:"silent"`
		Outstanding int64  `json:"outstanding"`
	} `json:"peers"`
	// Pools are those beside the default one.
	Pools []struct {
		Name       string           `json:"name"`
		Membership MembershipStatus `json:"membership"`
		Endpoints  []EndpointStatus `json:"endpoints"`
	} `json:"pools"`
}

// MembershipStatus is a membership in warmpath's /status.
type MembershipStatus struct {
	Version  string   `json:"version"`
	Error    string   `json:"error"`
	Problems []string `json:"problems"`
	Leaving  []string `json:"leaving"`
}

// EndpointStatus is an endpoint in warmpath's /status.
type EndpointStatus struct {
	Address     string   `json:"address"`
	State       string   `json:"state"`
	Health      string   `json:"health"`
	Adapters    []string `json:"adapters"`
	Outstanding int64    `json:"outstanding"`
	Others      int64    `json:"others"`
}

// Outstanding returns warmpath's count for each endpoint, without the idle ones.
func (s Status) Outstanding() map[string]int64 {
	counts := make(map[string]int64)
	endpoints := slices.Clone(s.Endpoints)
	for _, pool := range s.Pools {
		endpoints = append(endpoints, pool.Endpoints...)
	}
	for _, e := range endpoints {
		if e.Outstanding != 0 {
			counts[e.Address] = e.Outstanding
		}
	}
	return counts
}

// AdminURL is where warmpath serves operators, without a trailing slash.
func (s *Stack) AdminURL() string { return "http://" + s.ports.admin }

// Status asks warmpath for its state.
func (s *Stack) Status(ctx context.Context) (Status, error) {
	var v Status
	body, err := get(ctx, "http://"+s.ports.admin+"/status")
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(body, &v)
}

// Metric returns the sum of a warmpath metric over the series whose text
// contains all the given label pairs, as `reason="home"`; 0 if there is none.
func (s *Stack) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	body, err := get(ctx, "http://"+s.ports.admin+"/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if series != name && !strings.HasPrefix(series, name+"{") || !containsAll(series, labels) {
			continue
		}
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", series, err)
		}
		sum += f
	}
	return sum, nil
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// SetConfig writes a configuration and waits until warmpath has taken it over.
// One that is written as the one in force is nothing new to warmpath.
func (s *Stack) SetConfig(ctx context.Context, c Config) error {
	if s.configText(c) == s.configText(s.config) {
		s.config = c
		return nil
	}
	before, err := s.Status(ctx)
	if err != nil {
		return err
	}
	if err := s.writeConfig(c); err != nil {
		return err
	}
	return s.Await(ctx, "the new configuration", func() error {
		now, err := s.Status(ctx)
		if err != nil {
			return err
		}
		if now.Config.Generation == before.Config.Generation {
			return fmt.Errorf("generation is still %d (%s)", now.Config.Generation, now.Config.Error)
		}
		return nil
	})
}

// Await polls until done returns nil, for at most 20 s.
func (s *Stack) Await(ctx context.Context, what string, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := done()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // that the time was over says nothing
			last = err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, last)
		}
	}
}

// EnvoyKnows reports whether Envoy has n endpoints in the pool.
func (s *Stack) EnvoyKnows(ctx context.Context, n int) error {
	name := "cluster." + cmp.Or(s.options.PoolCluster, envoy.PoolCluster) + ".membership_total"
	body, err := get(ctx, "http://"+s.ports.envoyAdmin+"/stats?filter="+url.QueryEscape("^"+regexp.QuoteMeta(name)+"$"))
	if err != nil {
		return err
	}
	if string(body) != fmt.Sprintf("%s: %d\n", name, n) {
		return fmt.Errorf("want %d endpoints in Envoy, it says %q", n, body)
	}
	return nil
}

// Serving asks warmpath's gRPC health service, as Envoy does.
func (s *Stack) Serving(ctx context.Context) (bool, error) {
	connection, err := grpc.NewClient(s.extProc(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false, err
	}
	defer connection.Close()
	r, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING, err
}

// Admin gets a path of warmpath's admin listener, whatever its status.
func (s *Stack) Admin(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ports.admin+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// EnvoyAdmin gets a path of Envoy's admin interface.
func (s *Stack) EnvoyAdmin(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, "http://"+s.ports.envoyAdmin+path)
}

// EnvoyCommand has Envoy's admin interface do something.
func (s *Stack) EnvoyCommand(ctx context.Context, path string) error {
	_, err := ask(ctx, http.MethodPost, "http://"+s.ports.envoyAdmin+path)
	return err
}

func expectOK(ctx context.Context, url string) error {
	_, err := get(ctx, url)
	return err
}

func get(ctx context.Context, url string) ([]byte, error) { return ask(ctx, http.MethodGet, url) }

func ask(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, url, response.Status, body)
	}
	return body, nil
}
