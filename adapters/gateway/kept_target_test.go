package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// A target may close a kept connection while a request is on its way. What can be sent again is, and a request that
// cannot is the first of its client on a connection that no other client used.
func TestTheFirstPostOfAClientUsesNoKeptConnection(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	l := listen(t)
	var refusedOnce atomic.Int32
	go serve(l, func(c net.Conn) {
		for r, n := bufio.NewReader(c), 0; ; n++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if n > 0 && req.Header.Get("X-Own") == "" {
				refusedOnce.Add(1)
				return // the target closes the connection that it kept, as the next request arrives
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	send := func(c net.Conn, method, fields string) int {
		t.Helper()
		fmt.Fprintf(c, "%s http://%s/ HTTP/1.1\r\nHost: x\r\n%s%sContent-Length: 2\r\n\r\nhi", method, l.Addr(),
			basic(user(id, 0), password(id)), fields)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	for range 20 {
		before := w.dial()
		if status := send(before, "POST", ""); status != 200 {
			t.Fatalf("the first client: %d", status)
		}
		if status := send(before, "POST", "X-Own: 1\r\n"); status != 200 {
			t.Fatalf("the first client again: %d", status)
		}
		if status := send(w.dial(), "POST", ""); status != 200 {
			t.Fatalf("the first request of another client: %d", status)
		}
	}
	if n := refusedOnce.Load(); n > 0 {
		t.Errorf("%d first requests were sent on a kept connection", n)
	}
}
