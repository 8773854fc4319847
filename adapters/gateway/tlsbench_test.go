package gateway_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// tlsCopier is copier inside TLS.
func tlsCopier(b *testing.B) (addr string) {
	l := listen(b)
	cfg := &tls.Config{Certificates: []tls.Certificate{certificate()}}
	go serve(l, func(raw net.Conn) {
		c := tls.Server(raw, cfg)
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", req.Host)
		if err != nil {
			return
		}
		defer to.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, c); _ = to.(*net.TCPConn).CloseWrite() }()
		_, _ = io.Copy(c, to)
	})
	return l.Addr().String()
}

// BenchmarkTLSBytes moves megabytes down tunnels of the gateway and of relays that only copy, in turn: without TLS,
// inside it, and on a stream of HTTP/2; and down 16 tunnels at once without TLS. It reports the medians of the
// processor's time of a megabyte, in which client, gateway and target are, and what the gateway takes of a relay's.
func BenchmarkTLSBytes(b *testing.B) {
	w, _ := metered(b, newCore(b), func(s *setup) { certified(s) })
	id, source := w.add(1, 0), newCounting(b).addr()
	auth := basic(user(id, 0), password(id))
	plainRelay, tlsRelay := copier(b), tlsCopier(b)
	streams := w.streams()
	const each = 32
	move := func(c io.ReadWriter) {
		_, _ = c.Write(order(0, each<<20))
		if _, err := io.CopyN(io.Discard, c, each<<20); err != nil {
			b.Error(err)
		}
	}
	through := func(dial func() (net.Conn, error)) func() {
		return func() {
			c, err := dial()
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			if status := w.connectAs(c, auth, source); status != 200 {
				b.Errorf("status %d", status)
			}
			move(c)
		}
	}
	plain := func(addr string) func() {
		return through(func() (net.Conn, error) { return net.Dial("tcp", addr) })
	}
	secure := func(addr string) func() {
		return through(func() (net.Conn, error) { return tls.Dial("tcp", addr, trusting()) })
	}
	sixteen := func(one func()) func() {
		return func() {
			var all sync.WaitGroup
			for range 16 {
				all.Go(one)
			}
			all.Wait()
		}
	}
	own := w.Addr().String()
	b.Run("one", func(b *testing.B) {
		m := alternate(b, each, map[string]func(){"plain": plain(own), "relay": plain(plainRelay), "tls": secure(own),
			"tls-relay": secure(tlsRelay), "stream": func() {
				s := w.tunnel(streams, basicValue(user(id, 0), password(id)), source)
				defer s.Close()
				move(s)
			}})
		b.ReportMetric(m["plain"]/m["relay"], "of-relay")
		b.ReportMetric(m["tls"]/m["tls-relay"], "of-tls-relay")
		b.ReportMetric(m["stream"]/m["tls"], "stream-of-tls")
	})
	b.Run("sixteen", func(b *testing.B) {
		m := alternate(b, 16*each, map[string]func(){"plain": sixteen(plain(own)), "relay": sixteen(plain(plainRelay)),
			"tls": sixteen(secure(own)), "tls-relay": sixteen(secure(tlsRelay))})
		b.ReportMetric(m["plain"]/m["relay"], "of-relay")
		b.ReportMetric(m["tls"]/m["tls-relay"], "of-tls-relay")
	})
}

// BenchmarkTLSMemory holds idle tunnels, in turn without TLS, inside it, and on streams of one HTTP/2 connection, and
// reports heap and stacks of one, in which both ends of the client and the target are.
func BenchmarkTLSMemory(b *testing.B) {
	w, _ := metered(b, newCore(b), func(s *setup) { certified(s); s.PerAddress = 10_000 })
	id, target := w.add(1, 0), echo(b)
	auth := basic(user(id, 0), password(id))
	const number = 200
	used := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	pinged := func(c io.ReadWriter) {
		_, _ = c.Write([]byte("ping"))
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			b.Error(err)
		}
	}
	for name, open := range map[string]func() io.Closer{
		"plain": func() io.Closer { c := w.connect(id, target); pinged(c); return c },
		"tls": func() io.Closer {
			c := w.dialTLS(trusting())
			if status := w.connectAs(c, auth, target); status != 200 {
				b.Errorf("status %d", status)
			}
			pinged(c)
			return c
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				before := used()
				var list []io.Closer
				for range number {
					list = append(list, open())
				}
				b.ReportMetric((used()-before)/number, "B/tunnel")
				for _, c := range list {
					_ = c.Close()
				}
				waitFor(b, "the tunnels to end", func() bool { return w.Stats().Tunnels == 0 })
			}
		})
	}
	b.Run("stream", func(b *testing.B) {
		for range b.N {
			c := w.streams()
			before := used()
			var list []*stream
			for range number {
				s := w.tunnel(c, basicValue(user(id, 0), password(id)), target)
				pinged(s)
				list = append(list, s)
			}
			b.ReportMetric((used()-before)/number, "B/tunnel")
			for _, s := range list {
				_ = s.Close()
			}
			_ = c.Close()
			waitFor(b, "the tunnels to end", func() bool { return w.Stats().Tunnels == 0 })
		}
	})
}
