package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The test's binary is the clients too, when it is told to be.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-crowd") {
		main()
		return
	}
	os.Exit(m.Run())
}

// The short form: every client gets every change, and a larger fleet costs more
// because all of it is sent.
func TestShort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	o, err := parse([]string{"-short", "-json", file}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Planes) != 2 || len(r.Tables) != 2 || !strings.Contains(out.String(), "| 1000 | 5 |") {
		t.Fatalf("rows are missing:\n%s", &out)
	}
	for i, p := range r.Planes {
		if p.Clients != 5 || p.Changes == 0 || len(p.Propagation) != p.Changes || p.First <= 0 || p.CPU <= 0 || p.Heap == 0 {
			t.Errorf("%+v", p)
		}
		// An address is 7 to 16 bytes, and with everything around it 20 to 50.
		if n := int64(p.Endpoints); p.Bytes < 20*n || p.Bytes > 50*n+500 {
			t.Errorf("%d endpoints: %d bytes for a change and a client", n, p.Bytes)
		}
		if r.Tables[i].Table[0] <= 0 || r.Tables[i].Auto <= 0 || r.Tables[i].Fixed <= 0 {
			t.Errorf("%+v", r.Tables[i])
		}
	}
}

// Clients that are told to leave are no error; ones that lose their control plane are.
func TestCrowdEnds(t *testing.T) {
	if err := crowd(t.Context(), "127.0.0.1:0", 2, strings.NewReader("")); err != nil {
		t.Errorf("clients that are told to leave: %v", err)
	}
	stay, leave := io.Pipe()
	defer leave.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := crowd(ctx, "127.0.0.1:0", 2, stay); err == nil {
		t.Error("clients that end by themselves: no error")
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"-clients", "1001"},
		{"-clients", "-1"},
		{"-rate", "0"},
		{"-duration", "1ms"},
		{"-endpoints", "1"},
		{"-endpoints", "10,x"},
		{"-endpoints", "100001"},
		{"-bad"},
		{"word"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-endpoints", "5,70", "-rate", "3", "-json", "x"}, io.Discard)
	if err != nil || o.command != "xdsscale -endpoints 5,70 -rate 3" || !slices.Equal(o.sizes, []int{5, 70}) || o.clients != 50 || o.duration != 20*time.Second {
		t.Errorf("%+v, error %v", o, err)
	}
}

// Each change takes the first endpoint away and adds one.
func TestMembers(t *testing.T) {
	before, after := members(300, 4), members(300, 5)
	left, came := 0, 0
	for i := range 300 {
		if _, stays := after.Index(before.At(i).Address); !stays {
			left++
		}
		if _, was := before.Index(after.At(i).Address); !was {
			came++
		}
	}
	if before.Len() != 300 || after.Len() != 300 || left != 1 || came != 1 {
		t.Errorf("%d and %d endpoints, %d left, %d came", before.Len(), after.Len(), left, came)
	}
}
