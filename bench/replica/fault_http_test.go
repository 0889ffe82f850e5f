package replica_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/bench/replica"
)

// fault sets the fault of a replica as a script would.
func fault(t *testing.T, c *http.Client, url, parameters string) {
	t.Helper()
	if resp, body := post(t, c, url+"/control/fault?"+parameters, ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("fault %s: %d %s", parameters, resp.StatusCode, body)
	}
}

// status is that of a model request or, by GET, of /health; 0 if there is none.
func status(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	method := http.MethodPost
	if strings.HasSuffix(url, "/health") {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(chatBody("x", false)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestFaultsOfRequestsAndHealth(t *testing.T) {
	for name, protocol := range map[string]func(*http.Protocols){"http1": http1, "h2c": h2c} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 2, fast)
			c := client(t, protocol)
			url, other := "http://"+f.Addresses()[0], "http://"+f.Addresses()[1]
			for _, tc := range []struct {
				parameters    string
				model, health int
			}{
				{"kind=503", 503, 200},
				{"kind=503&health=true", 503, 503},
				{"kind=reset", 0, 200},
				{"kind=reset&health=true", 0, 0},
				{"kind=slow&factor=2", 200, 200},
				{"kind=off", 200, 200},
			} {
				fault(t, c, url, tc.parameters)
				model, health := status(t, c, url+"/v1/chat/completions"), status(t, c, url+"/health")
				if model != tc.model || health != tc.health {
					t.Errorf("%s: request %d, health %d, want %d and %d", tc.parameters, model, health, tc.model, tc.health)
				}
				if got := status(t, c, other+"/v1/chat/completions"); got != 200 {
					t.Errorf("%s: the other replica: %d", tc.parameters, got)
				}
			}
		})
	}
}

func TestHangUntilTheClientLeavesOrItIsOver(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	url := "http://" + f.Addresses()[0]
	fault(t, c, url, "kind=hang&health=true")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := send(ctx, c, url+"/v1/chat/completions", chatBody("x", true))
		left <- err
	}()
	eventually(t, "hanging", func() bool { return f.Stats()[0].Outstanding == 1 })
	cancel()
	if err := <-left; err == nil {
		t.Error("a hanging replica sent headers")
	}
	eventually(t, "left", func() bool { s := f.Stats()[0]; return s.Outstanding == 0 && s.Aborted == 1 })
	answers := make(chan int, 2)
	for _, path := range []string{"/v1/chat/completions", "/health"} {
		go func() { answers <- status(t, c, url+path) }()
	}
	eventually(t, "hanging again", func() bool { return f.Stats()[0].Outstanding == 1 })
	var now replica.Fault
	get(t, c, url+"/control/fault", &now)
	if now != (replica.Fault{Kind: replica.Hang, Health: true}) {
		t.Errorf("fault %+v", now)
	}
	fault(t, c, url, "kind=off")
	for range 2 {
		if got := <-answers; got != 200 {
			t.Errorf("after the fault: %d", got)
		}
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, h2c)
	url := "http://" + f.Addresses()[0]
	fault(t, c, url, "kind=hang")
	done := make(chan int)
	go func() { done <- status(t, c, url+"/v1/chat/completions") }()
	eventually(t, "hanging", func() bool { return f.Stats()[0].Outstanding == 1 })
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := <-done; got != 0 {
		t.Errorf("status %d from a closed replica", got)
	}
}

func TestBadFaultsAreRefused(t *testing.T) {
	f := start(t, 1, fast)
	c := client(t, http1)
	for parameters, want := range map[string]string{
		"kind=tired":             `fault \"tired\": want off, slow, hang, reset or 503`,
		"health=true":            "kind: required",
		"kind=slow":              "factor 0: want more than 0",
		"kind=slow&factor=fast":  `factor \"fast\": want a number`,
		"kind=hang&health=maybe": `health \"maybe\": want true or false`,
	} {
		resp, body := post(t, c, "http://"+f.Addresses()[0]+"/control/fault?"+parameters, "")
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s, want %q", parameters, resp.StatusCode, body, want)
		}
	}
}
