package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/internal/config"
	"github.com/warmpath/warmpath/internal/testenv"
)

// block is a fenced part of a page.
var block = regexp.MustCompile("(?s)```(sh|yaml|text)\n(.*?)```")

// guideScript makes one script of a page: a yaml block is the file that its first line
// names, a sh block is run, and a text block is what the one before it prints, between
// other lines.
func guideScript(t *testing.T, page string) (script string, outputs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("set -eu -o pipefail -m\n")
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		switch kind, body := m[1], m[2]; kind {
		case "yaml":
			first, _, _ := strings.Cut(body, "\n")
			fmt.Fprintf(&b, "cat >%s <<'END'\n%sEND\n", strings.TrimPrefix(first, "# "), body)
		case "sh":
			b.WriteString(body)
			if strings.Contains(body, "envoy -c ") {
				// Who reads has read on for a moment; a script has not.
				b.WriteString("until curl -sf 127.0.0.1:9004/readyz >/dev/null && curl -sf 127.0.0.1:9901/ready >/dev/null; do sleep 0.1; done\n")
			}
		case "text":
			outputs = append(outputs, strings.Split(strings.TrimSpace(body), "\n")...)
		}
	}
	return b.String(), outputs
}

// prints fails unless an output has the lines, in this order and with others between them.
func prints(t *testing.T, output string, lines []string) {
	t.Helper()
	rest := output
	for _, line := range lines {
		_, after, found := strings.Cut(rest, line+"\n")
		if !found {
			t.Fatalf("it does not print %q, in this order:\n%s", line, output)
		}
		rest = after
	}
}

// The files and commands of docs/RECIPES.md work.
func TestRecipes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/RECIPES.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "yaml" {
			n++
			if _, problems := config.Decode("warmpath.yaml", []byte(m[2])); len(problems) > 0 {
				t.Errorf("%v in\n%s", problems, m[2])
			}
		}
	}
	if n < 9 {
		t.Errorf("%d files", n)
	}
	script, outputs := guideScript(t, "../../docs/RECIPES.md")
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(command.Dir, "endpoints.yaml"), []byte("endpoints: [{address: 127.0.0.1:8000}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	buildInto(t, bin, "warmpath", ".")
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	if err != nil || len(outputs) == 0 {
		t.Fatalf("%v\n%s", err, output)
	}
	prints(t, string(output), outputs)
}

func buildInto(t *testing.T, folder, name, from string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, name), from).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
}

// apart are the arguments of unshare that run a script in a network of its own, in which
// the loopback is up. Ending the script ends its processes: it is the first of a process
// namespace. Without a script nothing is run, but all is tried.
var apart = []string{
	"--map-root-user", "--net", "--pid", "--fork", "--kill-child", "bash", "-c",
	`python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))' && exec bash -c "$0"`,
}

// Whoever follows docs/GETTING-STARTED.md gets what it promises. The page has the usual
// ports, so it is followed in a network of its own, where that can be had.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	script, outputs := guideScript(t, "../../docs/GETTING-STARTED.md")
	bin := t.TempDir()
	buildInto(t, bin, "warmpath", ".")
	buildInto(t, bin, "replica", "../../bench/replica/cmd/replica")
	if err := os.Symlink(testenv.Envoy(t), filepath.Join(bin, "envoy")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", script)
	if exec.CommandContext(ctx, "unshare", apart...).Run() == nil {
		command = exec.CommandContext(ctx, "unshare", append(apart, script)...)
	}
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		logs, _ := filepath.Glob(filepath.Join(command.Dir, "*.log"))
		for _, path := range logs {
			log, _ := os.ReadFile(path)
			t.Logf("%s:\n%.2000s", filepath.Base(path), log)
		}
		t.Fatalf("%v\n%s", err, output.String())
	}
	prints(t, output.String(), outputs)
}
