package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// A plain download that reaches the limit gets all that is left and ends at once, and
// so does every request after it: the bytes of the request itself, which are counted
// last, do not delay its own response.
func TestAPlainDownloadEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			w := begin(t, newCore(t), lingers)
			const limit = 1_000_000
			id := w.add(1, limit)
			s := newSite(t, func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				rw.Header().Set("Content-Length", strconv.Itoa(4*limit))
				_, _ = io.CopyN(rw, zeros{}, 4*limit)
			})
			c := w.dial()
			request := fmt.Sprintf("%s %s/ HTTP/1.1\r\nHost: x\r\n%sContent-Length: 10\r\n\r\n", method, s.URL, basic(user(id, 0), password(id)))
			_, _ = io.WriteString(c, request)
			_, _ = io.WriteString(c, "0123456789") // its own write: the body has not always come with the head
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Fatalf("the answer has no end: %v", err)
			}
			if u := w.settled(id); u.Used() != limit {
				t.Errorf("used %d of %d", u.Used(), limit)
			}
			c = w.dial()
			_, _ = io.WriteString(c, request)
			if res, body := response(t, c); res.StatusCode != http.StatusPaymentRequired {
				t.Errorf("the next request: %d %q, want 402", res.StatusCode, body)
			}
		})
	}
}

// Bytes written to a client are reported while the target sends nothing, and nothing
// of the lease stays reserved for it meanwhile.
func TestASilentTargetDelaysNoReport(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 1_000_000)
	silent := make(chan struct{})
	s := newSite(t, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write(make([]byte, 5000))
		rw.(http.Flusher).Flush()
		<-silent
	})
	t.Cleanup(sync.OnceFunc(func() { close(silent) }))
	c := w.dial()
	request := "GET " + s.URL + "/ HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n"
	_, _ = io.WriteString(c, request)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the report", func() bool { return w.usage(id).Down >= 5000 })
}
