package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arrived waits until the other side's kernel has all that was sent on a connection, its end too.
func arrived(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var info *unix.TCPInfo
		if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil || err != nil {
			return errors.Join(e, err)
		}
		if info.Unacked == 0 && info.Notsent_bytes == 0 {
			return nil
		}
	}
	return errors.New("what was sent is not acknowledged")
}

// A target may close a kept connection, or send bytes on it that no request asked
// for. Either is noticed before the connection is used for a request that must not be
// sent twice.
func TestKeptConnectionsAreCheckedBeforeUse(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(net.Conn){
		"closed":  func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"unasked": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, newCore(t), nil)
			id := w.add(1, 0)
			l, pass := listen(t), elsewhere(t)
			kept, done := make(chan struct{}), make(chan error)
			go serve(l, func(c net.Conn) {
				for r := bufio.NewReader(c); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue")
					<-kept
					after(c)
					done <- arrived(c.(*net.TCPConn))
				}
			})
			c := w.dial()
			r := bufio.NewReader(c)
			for n := range 5 {
				fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: x\r\n%sContent-Length: 2\r\n\r\nhi", l.Addr(), basic(user(id, 0), password(id)))
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("request %d: %v", n, err)
				}
				if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "true" {
					t.Fatalf("request %d: %d %q", n, res.StatusCode, body)
				}
				w.noted(n + 1)
				pass() // until the gateway keeps the connection
				kept <- struct{}{}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			for _, o := range w.noted(5) {
				if o.Evidence != "success" {
					t.Errorf("observed %+v", o)
				}
			}
		})
	}
}
