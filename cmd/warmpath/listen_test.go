package main

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// A connection on which nobody says anything is closed, with TLS and without.
func TestSilentConnectionsAreClosed(t *testing.T) {
	files := newSecrets(t)
	for name, extra := range map[string]string{"plain text": "", "TLS": files.config("extProc")} {
		p := startProgram(t, extra)
		options := p.credentials("extProc", p.certificates.extProc)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, listener := newGRPCServer(options), bufconn.Listen(1<<16)
				done := make(chan error)
				go func() { done <- server.Serve(listener) }()
				connection, err := listener.Dial()
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = io.Copy(io.Discard, connection)
				if took := time.Since(start); err != nil || took > connectTimeout {
					t.Errorf("closed after %v (%v), want %v", took, err, connectTimeout)
				}
				server.Stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
