package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain/session"
)

// answering is a target that answers each connection's request with a text and counts
// what it sends.
func answering(t testing.TB, answer string) (addr string, sent *atomic.Int64) {
	l := listen(t)
	sent = &atomic.Int64{}
	go serve(l, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			n, _ := io.WriteString(c, answer)
			sent.Add(int64(n))
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
	})
	return l.Addr().String(), sent
}

// get sends plain requests in HTTP/1.0, one after the other, and returns the status of
// the last.
func (w *world) get(id, addr string, times int) (status int) {
	w.t.Helper()
	for range times {
		c := w.dial()
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.0\r\nHost: x\r\n%s\r\n", addr, basic(user(id, 0), password(id)))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		status = res.StatusCode
		_ = c.Close()
	}
	return status
}

// Interim answers that an HTTP/1.0 client never sees, and heads that are refused, are
// charged as they were read: a target cannot send the client's provider much more than
// the session pays for.
func TestWhatIsReadAndNotForwardedIsCharged(t *testing.T) {
	t.Parallel()
	hint := "HTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("x", 31<<10) + "\r\n\r\n"
	interims := strings.Repeat(hint, 16) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	oversized := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 40_000) + "\r\n\r\n"
	for _, tc := range []struct {
		name, answer string
		times        int
		upstream     bool
	}{
		{"interim answers", interims, 40, false},
		{"oversized heads", oversized, 20, false},
		{"interim answers through an upstream", interims, 100, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, newCore(t), nil)
			id := w.add(1, 0)
			addr, sent := answering(t, tc.answer)
			if tc.upstream {
				s := newSeller(t, "u", "secret")
				w.via(id, s.endpoint(session.HTTP))
				sent = &s.out
			}
			if status := w.get(id, addr, tc.times); status != 502 {
				t.Errorf("status %d", status)
			}
			u := w.settled(id)
			if u.Down*2 < sent.Load() {
				t.Errorf("%d bytes were sent and %d charged", sent.Load(), u.Down)
			}
			t.Logf("%d bytes were sent and %d charged", sent.Load(), u.Down)
		})
	}
}

// Few interim answers are withheld from an HTTP/1.0 client and charged to the byte.
func TestWithheldInterimAnswersAreCharged(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	addr, sent := answering(t, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 16)+
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if status := w.get(id, addr, 1); status != 200 {
		t.Errorf("status %d", status)
	}
	if u := w.settled(id); u.Down != sent.Load() {
		t.Errorf("%d bytes were sent and %d charged", sent.Load(), u.Down)
	}
}

// What a provider's proxy sent for a client that does not read is charged when the
// client leaves, and is bounded by the receive buffer.
func TestAClientThatDoesNotReadPaysThroughAnUpstream(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	opened, stopped := make(chan net.Conn, 1), make(chan struct{}, 1)
	s := newSeller(t, "u", "secret")
	s.answers(func(c net.Conn) {
		opened <- c
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		b := make([]byte, 4<<10)
		for {
			n, err := c.Write(b)
			if sent.Add(int64(n)); err != nil {
				break
			}
		}
		stopped <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	})
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	for range 5 {
		c := w.connect(id, "127.0.0.1:80")
		stalled(t, sent.Load)
		_ = (<-opened).SetWriteDeadline(time.Now()) // else more is sent while the gateway reads the rest
		<-stopped
		_ = c.Close()
	}
	w.noted(5)
	u := w.settled(id)
	if u.Down*10 < sent.Load()*8 {
		t.Errorf("%d bytes were sent and %d charged", sent.Load(), u.Down)
	}
	t.Logf("%d bytes were sent and %d charged", sent.Load(), u.Down)
}

// What is read and not forwarded is charged within the limit.
func TestTheLimitBoundsWhatIsChargedAsRead(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	const limit = 100_000
	id := w.add(1, limit)
	addr, _ := answering(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 40_000)+"\r\n\r\n")
	for range 10 {
		if w.get(id, addr, 1) == 402 {
			break
		}
	}
	if u := w.settled(id); u.Used() != limit {
		t.Errorf("charged %d of %d", u.Used(), limit)
	}
}
