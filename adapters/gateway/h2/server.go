// Package h2 serves HTTP/2 to clients of the proxy. Each stream becomes a connection on which one request of HTTP/1.1
// arrives and one response is expected, so that everything behind it is the same for both versions: what is refused,
// how a request is rewritten, and what it costs. The engine below is golang.org/x/net/http2, which no other
// package sees.
//
//	CONNECT host:port      CONNECT host:port HTTP/1.1, then the bytes of the tunnel
//	:scheme http           METHOD http://authority/path HTTP/1.1 and the body, chunked if its length is not given
//	:scheme https          refused by its URI: a tunnel is asked for with CONNECT
//	extended CONNECT       its stream is reset
package h2

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"

	"golang.org/x/net/http2"
)

// MaxStreams is how many streams of a connection are open at once.
const MaxStreams = 256

// The bounds of memory: what a client may send before it is passed on, on a stream and on a connection, and how long a
// frame is. Heads are as long as those of HTTP/1.1.
const (
	streamWindow = 256 << 10
	connWindow   = 512 << 10
	maxFrame     = 16 << 10
	maxHead      = 32 << 10
)

// Server serves HTTP/2 connections.
type Server struct {
	h1 *http.Server
	h2 *http2.Server
}

// NewServer returns a Server.
func NewServer() *Server {
	s := &Server{
		h1: &http.Server{MaxHeaderBytes: maxHead, ErrorLog: log.New(io.Discard, "", 0)},
		h2: &http2.Server{MaxConcurrentStreams: MaxStreams, MaxReadFrameSize: maxFrame,
			MaxUploadBufferPerStream: streamWindow, MaxUploadBufferPerConnection: connWindow},
	}
	_ = http2.ConfigureServer(s.h1, s.h2) // fails for cipher suites of h1, of which there are none
	return s
}

// Serve serves a connection until it ends. handle is called for each stream, in a goroutine of its own. The stream ends
// when handle returns.
func (s *Server) Serve(conn net.Conn, handle func(*Stream)) {
	s.h2.ServeConn(conn, &http2.ServeConnOpts{BaseConfig: s.h1, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			st := newStream(w, r, conn)
			handle(st)
			if st.finish() {
				panic(http.ErrAbortHandler) // resets the stream
			}
		})})
}

// Shutdown announces to all clients that no new stream is served. It does not wait.
func (s *Server) Shutdown() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.h1.Shutdown(ended) // begins it and finds that there is no time to wait
}
