package gateway_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// A malformed chunk is the client's fault: it is answered with 400, and counts neither for the exit nor for the target,
// which waits for the rest of the body.
func TestAMalformedChunkIsTheClientsFault(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	l := listen(t)
	got := make(chan struct{}, 10)
	go serve(l, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		got <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	n := 0
	for name, chunk := range map[string]string{"no size": "zz\r\nabc\r\n", "LF only": "3\nabc\n0\n\n", "an extension of 300 bytes": "3;" +
		strings.Repeat("x", 300) + "\r\nabc\r\n0\r\n\r\n", "no end": "3\r\nabcdef\r\n0\r\n\r\n", "a size too large": "fffffffffffffffff\r\n"} {
		c := w.dial()
		fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n%s\r\n3\r\nabc\r\n", l.Addr(),
			basic(user(id, 0), password(id)))
		<-got // the request is on its way
		_, _ = io.WriteString(c, chunk)
		res, body := response(t, c)
		if res.StatusCode != 400 || !strings.Contains(body, `"BAD_REQUEST"`) || !strings.Contains(body, "chunk") {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
		n++
		o := w.noted(n)[n-1]
		if o.Evidence != "" || o.StatusCode != 400 || o.Code != "BAD_REQUEST" {
			t.Errorf("%s is observed as %+v", name, o)
		}
	}
}
