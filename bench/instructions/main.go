// Command instructions does one thing of the path of a request again and again,
// so that its processor instructions can be counted: see tools/count-instructions.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/internal/fleet"
	"github.com/warmpath/warmpath/internal/prefix"
	"github.com/warmpath/warmpath/internal/route"
)

// paths are what is counted.
var paths = map[string]func() func(i int){
	"nothing":      func() func(int) { return func(int) {} },
	"scan-4KiB":    func() func(int) { return scan(4 << 10) },
	"scan-64KiB":   func() func(int) { return scan(64 << 10) },
	"pick-home-7":  func() func(int) { return pick(7) },
	"pick-home-64": func() func(int) { return pick(64) },
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: instructions PATH TIMES")
		os.Exit(2)
	}
	prepare, known := paths[os.Args[1]]
	times, err := strconv.Atoi(os.Args[2])
	if !known || err != nil || times < 0 {
		fmt.Fprintf(os.Stderr, "instructions: path %q %q times: want a known path and a number\n", os.Args[1], os.Args[2])
		os.Exit(2)
	}
	do := prepare()
	for i := range times {
		do(i)
	}
}

// scan reads a chat completion of n bytes.
func scan(n int) func(int) {
	body := []byte(`{"model":"llama-70b","messages":[{"role":"user","content":"` + strings.Repeat("word ", n/5) + `"}]}`)
	head := prefix.Head{Path: "/v1/chat/completions", ContentType: "application/json"}
	var s prefix.Scanner
	return func(int) {
		s.Reset(head, prefix.Options{PrefixLength: 4096})
		s.Feed(body)
		s.Finish(true)
	}
}

// pick chooses one of n endpoints by a key, reserves and releases.
func pick(n int) func(int) {
	var endpoints []fleet.Endpoint
	for i := range n {
		endpoints = append(endpoints, fleet.Endpoint{Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Weight: 1})
	}
	set, _ := fleet.NewSet(endpoints)
	r := route.NewRouter(route.Policy{Strategy: route.PrefixAware, PrefixLength: 4096})
	r.SetMembership(set)
	return func(i int) {
		_, slot := r.Table().Pick(route.Request{Key: uint64(i) * 0x9e3779b97f4a7c15, Keyed: true})
		slot.Release()
	}
}
