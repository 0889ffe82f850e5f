package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/internal/config"
)

// A key is 16, 24 or 32 bytes in base64; an error says what is wrong and nothing of
// the key.
func TestGossipKey(t *testing.T) {
	const secret = "c2VjcmV0"
	for _, c := range []struct{ name, text, want string }{
		{"good", base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n", ""},
		{"short", secret, "6 bytes, want 16, 24 or 32"},
		{"not base64", secret + "!!", "is no base64"},
		{"too long", strings.Repeat(secret, 1000), "want 16, 24 or 32"},
		{"empty", "", "0 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := gossipKey(config.Gossip{KeyFile: "key"}, filepath.Join(filepath.Dir(path), "warmpath.yaml"))
		switch {
		case c.want == "" && (err != nil || len(key) != 32):
			t.Errorf("%s: %d bytes (%v)", c.name, len(key), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := gossipKey(config.Gossip{KeyFile: "key"}, filepath.Join(t.TempDir(), "warmpath.yaml")); err == nil {
		t.Error("a key file that is not there was read")
	}
}

// check warns of a port that others reach, and of a key that others read.
func TestCheckGossip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(make([]byte, 16))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config config.Gossip
		want   string
	}{
		{config.Gossip{}, ""},
		{config.Gossip{Listen: "127.0.0.1:9005"}, ""},
		{config.Gossip{Listen: "10.0.0.7:9005"}, "can feign loads"},
		{config.Gossip{Listen: "10.0.0.7:9005", KeyFile: "key"}, "everybody on this machine can read"},
	} {
		warnings, err := checkGossip(c.config, filepath.Join(dir, "warmpath.yaml"))
		if text := strings.Join(warnings, "; "); err != nil || (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %q (%v), want %q", c.config, text, err, c.want)
		}
	}
}
