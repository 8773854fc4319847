package admin

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/admin/signin"
)

// pipeListener accepts one end of a pipe, whose deadlines follow the test's clock.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l pipeListener) Close() error { return nil }

func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestASlowHeadIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Gate: signin.New(signin.Config{}, nil, nil)}, nil, NewRegistry(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l := pipeListener{make(chan net.Conn, 1)}
		served := make(chan error)
		go func() { served <- s.http.Serve(l) }()
		client, server := net.Pipe()
		l.conns <- server
		_, _ = io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost:")
		began := time.Now()
		if _, err := io.ReadAll(client); err != nil || time.Since(began) != headerTimeout {
			t.Errorf("cut after %v: %v", time.Since(began), err)
		}
		close(l.conns)
		if err := <-served; err == nil || err == http.ErrServerClosed {
			t.Errorf("served until %v", err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
