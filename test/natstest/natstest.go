// Package natstest gives a test a NATS server of its own, with JetStream on a file store.
package natstest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a server in this process that a test may stop and start again, with what it has.
type Server struct {
	t    testing.TB
	dir  string
	port int
	run  *server.Server
}

// Start runs a server on a port of loopback, which ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "nats-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, port: server.RANDOM_PORT}
	s.Run()
	t.Cleanup(func() { s.Stop(); _ = os.RemoveAll(dir) })
	return s
}

// URL returns the URL of the server.
func (s *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }

// Run starts the server and waits until it takes messages.
func (s *Server) Run() {
	s.t.Helper()
	run, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: s.port, NoLog: true, NoSigs: true, JetStream: true,
		StoreDir: s.dir, JetStreamMaxStore: 4 << 30, JetStreamMaxMemory: 64 << 20, NoSystemAccount: true})
	if err != nil {
		s.t.Fatal(err)
	}
	go run.Start()
	if !run.ReadyForConnections(time.Minute) {
		s.t.Fatal("the NATS server did not start within a minute")
	}
	if a := run.ClientURL(); s.port <= 0 {
		if _, err := fmt.Sscanf(a, "nats://127.0.0.1:%d", &s.port); err != nil {
			s.t.Fatal(a, err)
		}
	}
	s.run = run
}

// Stop ends the server. What it has stored is there when it runs again.
func (s *Server) Stop() {
	if s.run != nil {
		s.run.Shutdown()
		s.run.WaitForShutdown()
		s.run = nil
	}
}
