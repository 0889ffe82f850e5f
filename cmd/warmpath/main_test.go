package main

import (
	"os"
	"testing"

	"github.com/warmpath/warmpath/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Main(main)
	os.Exit(m.Run())
}
