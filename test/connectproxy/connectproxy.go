// Package connectproxy answers CONNECT in HTTP proxies of tests.
package connectproxy

import (
	"io"
	"net"
	"net/http"
)

// Serve accepts a CONNECT request (RFC 9110, section 9.3.6), copies between its client and the target until
// the target ends, and closes both. It takes the connection over before it answers: net/http reads the first byte behind a
// request by itself, and what a client sends at once after an early 200 would lack it.
func Serve(w http.ResponseWriter, target *net.TCPConn) {
	defer target.Close()
	client, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(target, rest)
		_ = target.CloseWrite()
	}()
	_, _ = io.Copy(client, target)
}
