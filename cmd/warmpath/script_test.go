package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/warmpath/warmpath/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(defectVariable) != "" {
		testenv.Main(defective)
	}
	testenv.Main(main)
	testscript.Main(m, map[string]func(){"warmpath": main})
}

// TestScripts are the commands as people type them; a file a subject. They are
// rewritten with `UPDATE=1 go test -run TestScripts ./cmd/warmpath`.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE") != ""})
}
