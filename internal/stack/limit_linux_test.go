package stack

import (
	"strings"
	"testing"
	"time"
)

// A process can be left without a file to open, and be given them back.
func TestLimitFiles(t *testing.T) {
	p := startRole(t, "obey")
	if err := p.Await(within(t, 10*time.Second), printed(p, "ready")); err != nil {
		t.Fatal(err)
	}
	open, err := p.OpenFiles()
	if err != nil || open < 3 {
		t.Fatalf("%d open files (%v), want 3 or more", open, err)
	}
	restore, err := p.LimitFiles(uint64(open))
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	if _, err := p.LimitFiles(3); err == nil || !strings.Contains(err.Error(), "obey") {
		t.Errorf("of a process that has ended: %v", err)
	}
	if _, err := p.OpenFiles(); err == nil {
		t.Error("a process that has ended has open files")
	}
}
