package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/app/exitlogs"
	"agentproxy/domain/policy"
	"agentproxy/domain/worker"
	"agentproxy/test/apptest"
)

// limited sets every limit as outside development mode, and none so low that a benchmark
// reaches it.
func limited(s *setup) {
	s.Connections, s.PerAddress, s.Agent, s.TrialAgent = 9247, 256, 1000, 1000
	s.TargetRate, s.TrialTargetRate = 60_000_000, 60_000_000
	s.ConnectionRate, s.TrialConnectionRate, s.Targets, s.TrialTargets = 1_000_000, 1_000_000, 2000, 2000
	s.TrialPlaces, s.WatchScans = 2311, true
	s.Public = []hostport.Target{{Host: "198.51.100.7", Port: 8081}, {Host: "198.51.100.7", Port: 443}}
}

// guards is limited with the operator's default policy and an exit log, which flush stores.
func guards(b *testing.B) (edit func(*setup), flush func() error) {
	w := apptest.New(b)
	log := exitlogs.NewLog(exitlogs.Config{Days: 90}, w.Store, w.Clock, w.IDs)
	var built policy.Builder
	for _, port := range policy.DeniedPorts {
		_ = built.Deny(port)
	}
	rules := &policy.Shared{Operator: built.Rules()}
	edit = func(s *setup) {
		limited(s)
		s.Exits, s.Policy = log, func() *policy.Shared { return rules }
	}
	return edit, func() error { return log.Flush(b.Context()) }
}

// guardedBy is guards with an exit log that is stored as often as the service does.
func guardedBy(b *testing.B) func(*setup) {
	edit, flush := guards(b)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(exitlogs.FlushEvery); ; {
			select {
			case <-tick.C:
				if err := flush(); err != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	b.Cleanup(func() { close(stop); <-stopped })
	return edit
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

// BenchmarkWorkers alternates between tunnels without words in the user name, tunnels of a thousand
// workers in turn, and those of a relay that only copies; and between bytes of the first two. It
// reports the medians of the processor's time, in which client, gateway and target are, and how much
// of it a tunnel or a byte took before for one that a worker has now.
func BenchmarkWorkers(b *testing.B) {
	w, _ := metered(b, newCore(b), guardedBy(b))
	plain, fleet, target := w.add(1, 0, "127.0.0.2"), w.add(2, 0, "127.0.0.2"), echo(b)
	w.addWorkers(fleet, loopbacks, nil)
	relay, source := copier(b), newCounting(b).addr()
	var names []string
	for i := range worker.MaxPerSession {
		names = append(names, basic(fmt.Sprintf("%s-session-w%d", user(fleet, 0), i+1), password(fleet)))
	}
	tunnels(b, w.addr, target, names, len(names)) // first uses are not measured
	own := []string{basic(user(plain, 0), password(plain))}
	b.Run("tunnels", func(b *testing.B) {
		const each = 50
		ofPlain(b, each, map[string]func(){
			"plain":   func() { tunnels(b, w.addr, target, own, each) },
			"workers": func() { tunnels(b, w.addr, target, names, each) },
			"relay":   func() { tunnels(b, relay, target, own, each) },
		})
	})
	b.Run("megabytes", func(b *testing.B) {
		const each = 16
		part := func(id, words string) func() {
			return func() {
				_, c := w.as(id, words, source)
				defer c.Close()
				_, _ = c.Write(order(0, each<<20))
				if _, err := io.CopyN(io.Discard, c, each<<20); err != nil {
					b.Fatal(err)
				}
			}
		}
		ofPlain(b, each, map[string]func(){"plain": part(plain, ""), "workers": part(fleet, "-session-w7")})
	})
}

// copier is a proxy that connects and copies, and nothing else.
func copier(b *testing.B) (addr string) {
	l := listen(b)
	go serve(l, func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", req.Host) // connect(2) chooses the port, so one to each target
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

// from dials from another address than all other tests: closed connections take its ports for a
// minute.
func from(addr string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
}

// alternate runs the parts in turn, b.N times, and reports the median time of the processor that one
// of the things that each does takes, which it returns too.
func alternate(b *testing.B, each int, parts map[string]func()) (medians map[string]float64) {
	took := map[string][]float64{}
	for range b.N {
		for name, run := range parts {
			began := processorTime(b)
			run()
			took[name] = append(took[name], float64(processorTime(b)-began)/float64(each))
		}
	}
	medians = map[string]float64{}
	for name, list := range took {
		slices.Sort(list)
		medians[name] = list[len(list)/2]
		b.ReportMetric(medians[name], name+"-ns")
	}
	return medians
}

// ofPlain is alternate, and reports the time of a plain one as a part of the one of a worker.
func ofPlain(b *testing.B, each int, parts map[string]func()) {
	medians := alternate(b, each, parts)
	b.ReportMetric(medians["plain"]/medians["workers"], "of-plain")
}

// processorTime returns the time that all threads of this process have run.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tunnels opens tunnels, two at a time, with the credentials in turn. They come from 100 addresses,
// because a closed connection keeps the port of its address for a minute.
func tunnels(b *testing.B, addr, target string, as []string, number int) {
	w := &world{t: b}
	var turn atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for n := turn.Add(1); n <= int64(number); n = turn.Add(1) {
				c, err := from(fmt.Sprint("127.0.2.", 1+n%100)).Dial("tcp", addr)
				if err != nil {
					b.Error(err)
					return
				}
				if status := w.connectAs(c, as[int(n)%len(as)], target); status != 200 {
					b.Errorf("status %d", status)
				}
				_, _ = c.Write([]byte("ping"))
				_, _ = io.ReadFull(c, make([]byte, 4))
				_ = c.Close()
			}
		})
	}
	wg.Wait()
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

// answersOK is an HTTP server with one short answer.
func answersOK(b testing.TB) (addr string) {
	l := listen(b)
	go serve(l, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	return l.Addr().String()
}

// BenchmarkForward is one plain request on kept connections.
func BenchmarkForward(b *testing.B) {
	w, _ := metered(b, newCore(b), guardedBy(b))
	id := w.add(1, 0)
	request := "GET http://" + answersOK(b) + "/ HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n"
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
