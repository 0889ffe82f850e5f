package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/warmpath/warmpath/internal/route"
)

const explainUsage = `usage: warmpath explain [flags] FILE [FILE2]

Says what warmpath would do with a request body, by the code that the server
runs. FILE is a body as the client sends it; - is standard input. With two
files it also says where their texts part. With --from it asks a running server
what it would decide now: by its loads, and by what it knows to be warm where.
Nothing is reserved or remembered there, and no text comes back.

`

// explainOptions are the flags of explain.
type explainOptions struct {
	json, showText bool
	path           string
	headers        headerFlags
	prefixLength   lengthFlag
	endpoints      string
	config         string
	server         clientOptions
}

// headerFlags collects repeated -H flags.
type headerFlags []string

// String implements flag.Value.
func (h *headerFlags) String() string { return strings.Join(*h, ", ") }

// Set implements flag.Value.
func (h *headerFlags) Set(s string) error {
	name, _, ok := strings.Cut(s, ":")
	if !ok || strings.TrimSpace(name) == "" {
		return fmt.Errorf("header %q: want 'name: value'", s)
	}
	*h = append(*h, s)
	return nil
}

func (h headerFlags) get(name string) string {
	for _, line := range h {
		if key, value, _ := strings.Cut(line, ":"); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// lengthFlag is a prefix length: 0 for none given, or route.AutoPrefixLength.
type lengthFlag int

// String implements flag.Value.
func (l *lengthFlag) String() string { return "" }

// Set implements flag.Value.
func (l *lengthFlag) Set(s string) error {
	if s == "auto" {
		*l = route.AutoPrefixLength
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want 1 or more characters, or auto")
	}
	*l = lengthFlag(n)
	return nil
}

func explain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var o explainOptions
	flags := flag.NewFlagSet("warmpath explain", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.BoolVar(&o.showText, "show-text", false, "print the canonical text that the key covers")
	flags.StringVar(&o.path, "path", "/v1/chat/completions", "request `path`")
	flags.Var(&o.headers, "H", "request `header`, 'name: value'; may be repeated")
	flags.Var(&o.prefixLength, "prefix-length", "`characters` (bytes on native invoke paths) that make the key, 1 or more, or auto (default auto, or the configuration's)")
	flags.StringVar(&o.endpoints, "endpoints", "", "comma-separated `host:port` list to choose from (default the configuration's)")
	flags.StringVar(&o.config, "config", "", "warmpath.yaml `file` to take strategy, lengths, tenant header and endpoints from")
	o.server.register(flags, "", "a running server to ask")
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, explainUsage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{err}
	case flags.NArg() < 1 || flags.NArg() > 2:
		return usageError{fmt.Errorf("explain: want one or two body files, got %d arguments", flags.NArg())}
	}
	if o.server.from != "" {
		return explainFrom(ctx, o, flags.Args(), stdin, stdout)
	}
	e, err := newExplainer(o)
	if err != nil {
		return usageError{err}
	}
	var bodies []explanation
	for _, file := range flags.Args() {
		body, err := readBody(file, stdin)
		if err != nil {
			return usageError{err}
		}
		bodies = append(bodies, e.explain(file, body))
	}
	if o.json {
		return printJSON(stdout, bodies)
	}
	return printWords(stdout, bodies)
}

func readBody(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}
