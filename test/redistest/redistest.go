// Package redistest gives a test a Redis server of its own.
package redistest

import (
	"bufio"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Server is a server that a test may stop and start again, with what it has.
type Server struct {
	t    testing.TB
	path string // of the program
	dir  string
	run  *exec.Cmd
}

// Start runs a server on a socket, which ends with the test. Without the program the test is
// skipped, or fails if CI is set.
func Start(t testing.TB) *Server {
	t.Helper()
	path, err := find()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no redis-server or valkey-server (on Debian: apt-get install redis-server)")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "redis-") // a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, path: path, dir: dir}
	s.Run()
	t.Cleanup(func() { s.Stop(); _ = os.RemoveAll(dir) })
	return s
}

func find() (path string, err error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}

func (s *Server) socket() string { return filepath.Join(s.dir, "s") }

// URL returns the URL of the server.
func (s *Server) URL() string { return (&url.URL{Scheme: "unix", Path: s.socket()}).String() }

// answers reports whether the server answers PING with PONG: it accepts connections before it has loaded
// what it had.
func (s *Server) answers() bool {
	conn, err := net.Dial("unix", s.socket())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err = conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && line == "+PONG\r\n"
}

// Run starts the server and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	s.run = exec.Command(s.path, "--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "always", "--daemonize", "no", "--logfile", filepath.Join(s.dir, "log"))
	if err := s.run.Start(); err != nil {
		s.t.Fatal(err)
	}
	const patience = 3 * time.Minute
	for deadline := time.Now().Add(patience); !s.answers(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the server did not start within %v", patience)
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() {
	if s.run != nil {
		_ = s.run.Process.Kill()
		_ = s.run.Wait()
		s.run = nil
		_ = os.Remove(s.socket())
	}
}
