package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRunServesUntilInterrupted(t *testing.T) {
	for name, args := range map[string][]string{
		"addresses": {"-addresses", "127.0.0.1:0,127.0.0.2:0"},
		"shared":    {"-listen", "127.0.0.1:0", "-replicas", "2", "-shared"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, w := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- run(ctx, append(args, "-time-scale", "1000", "-models", "m", "-kv-tokens", "1000"), w, io.Discard)
			}()
			lines := bufio.NewScanner(out)
			for range 2 {
				if !lines.Scan() {
					t.Fatal("no address printed")
				}
				checkModels(t, lines.Text())
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func checkModels(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Data) != 1 || list.Data[0].ID != "m" {
		t.Errorf("models of %s: %+v, error %v", url, list, err)
	}
}

func TestRunRejects(t *testing.T) {
	for want, args := range map[string][]string{
		`-engine "gpt"`:        {"-engine", "gpt"},
		"-replicas 0":          {"-replicas", "0"},
		`-listen "localhost"`:  {"-listen", "localhost"},
		"TimeScale -1":         {"-time-scale", "-1", "-addresses", "127.0.0.1:0"},
		"KVTokens 3":           {"-kv-tokens", "3", "-addresses", "127.0.0.1:0"},
		"flag provided but no": {"-nothing"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}
