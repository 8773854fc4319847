// Package natstest gives a test a NATS server of its own, with JetStream on a file store.
package natstest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/test/freeport"
)

// Server is a server that a test may stop and start again, with what it has.
type Server struct {
	t    testing.TB
	path string // of the program
	dir  string
	addr string
	run  *exec.Cmd
}

// Start runs a server on a port of loopback, which ends with the test. Without the program the test is
// skipped, or fails if CI is set.
func Start(t testing.TB) *Server {
	t.Helper()
	path, err := exec.LookPath("nats-server")
	if path == "" {
		path, err = exec.LookPath("/usr/sbin/nats-server") // Debian's, which is in the PATH of root alone
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no nats-server (on Debian: apt-get install nats-server)")
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, path: path, dir: t.TempDir(), addr: freeport.Address(t)}
	config := fmt.Sprintf("listen: %s\nlog_file: %q\njetstream { store_dir: %q, max_memory_store: 64MB, max_file_store: 4GB }\n",
		s.addr, s.log(), filepath.Join(s.dir, "store"))
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run()
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) config() string { return filepath.Join(s.dir, "nats.conf") }
func (s *Server) log() string    { return filepath.Join(s.dir, "log") }

// URL returns the URL of the server.
func (s *Server) URL() string { return "nats://" + s.addr }

// answers reports whether the server greets with INFO, which it does once JetStream is there.
func (s *Server) answers() bool {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "INFO ")
}

// Run starts the server and waits until it takes messages.
func (s *Server) Run() {
	s.t.Helper()
	s.run = exec.Command(s.path, "--config", s.config())
	if err := s.run.Start(); err != nil {
		s.t.Fatal(err)
	}
	const patience = 3 * time.Minute
	for deadline := time.Now().Add(patience); !s.answers(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(s.log())
			s.t.Fatalf("the NATS server did not start within %v: %s", patience, log)
		}
	}
}

// Stop ends the server. What it has stored is there when it runs again.
func (s *Server) Stop() {
	if s.run != nil {
		_ = s.run.Process.Signal(os.Interrupt)
		_ = s.run.Wait()
		s.run = nil
	}
}
