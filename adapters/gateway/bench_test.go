package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/app/exitlog"
	"agentproxy/domain/policy"
	"agentproxy/test/apptest"
)

// limited sets every limit as outside development mode, and none so low that a benchmark
// reaches it.
func limited(s *setup) {
	s.Connections, s.PerAddress, s.Agent, s.TrialAgent = 9247, 256, 1000, 1000
	s.TargetRate, s.TrialTargetRate = 60_000_000, 60_000_000
	s.Public = []hostport.Target{{Host: "198.51.100.7", Port: 8081}, {Host: "198.51.100.7", Port: 443}}
}

// guardedBy is limited with the operator's default policy, and an exit log that is stored.
func guardedBy(b *testing.B) func(*setup) {
	w := apptest.New(b)
	log := exitlog.NewLog(exitlog.Config{Days: 90}, w.Store, w.Clock, w.IDs)
	var built policy.Builder
	for _, port := range policy.DeniedPorts {
		_ = built.Deny(port)
	}
	rules := &policy.Shared{Operator: built.Rules()}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(exitlog.FlushEvery); ; {
			select {
			case <-tick.C:
				if err := log.Flush(b.Context()); err != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	b.Cleanup(func() { close(stop); <-stopped })
	return func(s *setup) {
		limited(s)
		s.Exits, s.Policy = log, func() *policy.Shared { return rules }
	}
}

// BenchmarkConnectTunnel is a whole tunnel: CONNECT, four bytes there and back,
// closed by the client.
func BenchmarkConnectTunnel(b *testing.B) {
	w, _ := metered(b, newCore(b), guardedBy(b))
	id, target := w.add(1, 0), echo(b)
	auth := basic(user(id, 0), password(id))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				b.Error(err)
				return
			}
			if status := w.connectAs(c, auth, target); status != 200 {
				b.Errorf("status %d", status)
			}
			_, _ = c.Write([]byte("ping"))
			_, _ = io.ReadFull(c, make([]byte, 4))
			_ = c.Close()
		}
	})
}

// BenchmarkRelayBulk moves bytes down one tunnel.
func BenchmarkRelayBulk(b *testing.B) {
	for _, how := range []struct {
		name  string
		pipes int
	}{{"splice", 0}, {"user", -1}} {
		b.Run(how.name, func(b *testing.B) {
			w, _ := metered(b, newCore(b), func(c *setup) { c.Pipes = how.pipes })
			c := w.connect(w.add(1, 0), newCounting(b).addr())
			const chunk = 1 << 20
			_, _ = c.Write(order(0, int64(b.N)*chunk))
			b.SetBytes(chunk)
			b.ResetTimer()
			for range b.N {
				if _, err := io.CopyN(io.Discard, c, chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkForward is one plain request on kept connections.
func BenchmarkForward(b *testing.B) {
	w, _ := metered(b, newCore(b), guardedBy(b))
	id := w.add(1, 0)
	l := listen(b)
	go serve(l, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	request := "GET http://" + l.Addr().String() + "/ HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n"
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		for r := bufio.NewReader(c); pb.Next(); {
			_, _ = io.WriteString(c, request)
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != 200 {
				b.Error(res, err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
		}
	})
}

// BenchmarkScrape is one scrape beside a hundred sessions.
func BenchmarkScrape(b *testing.B) {
	w, r := metered(b, newCore(b), nil)
	for n := range 100 {
		_ = w.connect(w.add(n, 0), echo(b)).Close()
	}
	b.ReportAllocs()
	for b.Loop() {
		scrape(b, r)
	}
}
