package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/warmpath/warmpath/internal/doctor"
)

// documents reads what is to be looked at. The error is of what could not be read.
func (o *doctorOptions) documents(ctx context.Context) (documents []*doctor.Document, failure error) {
	if o.envoy != "" {
		d, err := readEnvoy(o.envoy)
		if err != nil {
			failure = usageError{err}
		} else {
			documents = append(documents, d)
		}
	}
	if o.admin != "" {
		d, err := askEnvoy(ctx, o.admin)
		if err != nil {
			failure = errors.Join(failure, err)
		} else {
			documents = append(documents, d)
		}
	}
	return documents, failure
}

func readEnvoy(path string) (*doctor.Document, error) {
	file, name := os.Stdin, "standard input"
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, err
		}
		defer file.Close()
		name = path
	}
	data, err := io.ReadAll(io.LimitReader(file, doctor.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return doctor.Read(name, data)
}

// askEnvoy asks Envoy's admin listener for its configuration and how it fares with it.
func askEnvoy(ctx context.Context, address string) (*doctor.Document, error) {
	c, err := clientOptions{from: address, flag: "--admin"}.open()
	if err != nil {
		return nil, usageError{err}
	}
	defer c.close()
	dump, err := ofEnvoy(ctx, c, "/config_dump?include_eds")
	if err != nil {
		return nil, err
	}
	d, err := doctor.ReadLive(strings.TrimSuffix(address, "/")+"/config_dump", dump)
	if err != nil {
		return nil, err
	}
	counters, err := ofEnvoy(ctx, c, "/stats?format=json&filter="+url.QueryEscape(doctor.StatsPattern))
	if err != nil {
		return nil, err
	}
	var list struct {
		Stats []struct {
			Name  string
			Value float64
		}
	}
	if err := json.Unmarshal(counters, &list); err != nil {
		return nil, fmt.Errorf("read the counters of %s: %w", address, err)
	}
	stats := make(map[string]float64, len(list.Stats))
	for _, s := range list.Stats {
		stats[s.Name] = s.Value
	}
	d.SetStats(stats)
	return d, nil
}

// ofEnvoy gets what Envoy's admin listener has at a path.
func ofEnvoy(ctx context.Context, c *client, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask Envoy: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, doctor.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s: %s: is that Envoy's admin listener?", c.base, statusOf(answer))
	}
	return data, nil
}
