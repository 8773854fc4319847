package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"agentproxy/adapters/webhook"
	domain "agentproxy/domain/webhook"
	"agentproxy/ports"
)

var quiet = log.New(io.Discard, "", 0)

func TestStatusesAreOutcomes(t *testing.T) {
	var code atomic.Int32
	w := begin(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(code.Load())) }, nil)
	for _, want := range []int{200, 201, 204, 299, 304, 400, 404, 410, 429, 500, 503, 599} {
		code.Store(int32(want))
		if out := w.send(hook); out.StatusCode != want || out.OK() != (want < 300) {
			t.Errorf("%+v, want %d", out, want)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var hits atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer trap.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{trap.URL, "/again", "", "http://%zz", "https://hooks.example.com/again"} {
			w := begin(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Location", to)
				rw.WriteHeader(code)
			}, func(c *webhook.Config) { c.Dev = true })
			if out := w.send(hook); out.StatusCode != code || out.OK() {
				t.Errorf("%d to %q: %+v", code, to, out)
			}
			if len(w.requests()) != 1 || len(w.dials()) != 1 {
				t.Errorf("%d to %q: %d requests, %d dials", code, to, len(w.requests()), len(w.dials()))
			}
		}
	}
	if hits.Load() != 0 {
		t.Error("the trap was reached")
	}
}

func TestRetryAfterIsRead(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-5": 0, "soon": 0, "1.5": 0, " 60": time.Minute,
		"Sun, 01 Mar 2026 12:10:00 GMT": 10*time.Minute - 987654*time.Microsecond,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"4294967295":                    7 * 24 * time.Hour,
		"99999999999999999999":          0,
		"Fri, 01 Mar 3026 12:10:00 GMT": 7 * 24 * time.Hour,
	} {
		w := begin(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", text)
			rw.WriteHeader(503)
		}, nil)
		if out := w.send(hook); out.RetryAfter != want {
			t.Errorf("%q: %v, want %v", text, out.RetryAfter, want)
		}
	}
}

func TestSlowReceiversAreCutOff(t *testing.T) {
	for claim, c := range map[string]struct {
		handle http.HandlerFunc
		code   int
	}{
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0},
		"a body that never ends": {func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = rw.Write([]byte("."))
				_ = http.NewResponseController(rw).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}, 200},
		"another protocol": {func(rw http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				panic(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = c.Read(make([]byte, 1)) // until the sender hangs up
		}, 101},
		"one head after another": {func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				rw.WriteHeader(103)
				time.Sleep(20 * time.Millisecond)
			}
		}, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out domain.Outcome
			timeout := 300 * time.Millisecond
			for ; timeout < time.Minute; timeout *= 2 { // a busy machine may not read a status in time
				out = begin(t, c.handle, func(c *webhook.Config) { c.Timeout = timeout }).send(hook)
				if out.StatusCode == c.code {
					break
				}
			}
			if out.StatusCode != c.code {
				t.Errorf("%+v", out)
			}
			if c.code == 0 && !strings.Contains(out.Err, timeout.String()) {
				t.Errorf("the agent reads %q", out.Err)
			}
		})
	}
}

func TestTenSeconds(t *testing.T) {
	for claim, dial := range map[string]func(context.Context, netip.AddrPort) (net.Conn, error){
		"no connection": func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"no answer": func(context.Context, netip.AddrPort) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		},
	} {
		t.Run(claim, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := webhook.New(webhook.Config{Dev: true, Dial: dial})
				began := time.Now()
				out, err := s.Send(context.Background(), message("http://8.8.8.8/"))
				if took := time.Since(began); err != nil || took != 10*time.Second || out.Err != "the endpoint did not answer within 10s" {
					t.Errorf("%+v, %v after %v", out, err, took)
				}
				s.Close()
			})
		})
	}
}

// counted is a connection that counts what is read from it.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func TestSixtyFourKilobytesAreRead(t *testing.T) {
	flood := func(rw http.ResponseWriter, r *http.Request) {
		block := make([]byte, 32<<10)
		for r.Context().Err() == nil {
			if _, err := rw.Write(block); err != nil {
				return
			}
		}
	}
	head := func(rw http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			rw.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 4<<10))
		}
	}
	zip := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		_, _ = rw.Write([]byte("not gzip"))
	}
	for claim, c := range map[string]struct {
		handle http.HandlerFunc
		code   int
	}{"a body without end": {flood, 200}, "a head of 400 KiB": {head, 0}, "a body marked as compressed": {zip, 200}} {
		t.Run(claim, func(t *testing.T) {
			var n atomic.Int64
			w := begin(t, c.handle, func(cfg *webhook.Config) {
				dial := cfg.Dial
				cfg.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
					conn, err := dial(ctx, target)
					return counted{conn, &n}, err
				}
			})
			if out := w.send(hook); out.StatusCode != c.code {
				t.Errorf("%+v, want %d", out, c.code)
			}
			// The handshake, and the record that is under way, come on top.
			if read := n.Load(); read > 64<<10+32<<10 {
				t.Errorf("read %d bytes", read)
			}
		})
	}
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	if os.Getenv("HTTPS_PROXY") == "" || os.Getenv("HTTP_PROXY") == "" {
		t.Fatal("the environment names no proxy")
	}
	w := begin(t, nil, nil)
	if out := w.send(hook); !out.OK() || len(w.dials()) != 1 || w.dials()[0].Addr() != public {
		t.Errorf("%+v, dialled %v", out, w.dials())
	}
}

func TestFailuresInWordsForTheAgent(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "hooks.example.com", Server: "10.0.0.53:53", IsNotFound: true}
	lame := &net.DNSError{Err: "server misbehaving", Name: "hooks.example.com", Server: "10.0.0.53:53"}
	speak := func(text string) func(*webhook.Config) {
		return func(c *webhook.Config) {
			c.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					_, _ = theirs.Read(make([]byte, 4096))
					_, _ = io.WriteString(theirs, text)
					_ = theirs.Close()
				}()
				return ours, nil
			}
		}
	}
	looks := func(err error) func(*webhook.Config) {
		return func(c *webhook.Config) {
			c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, err }
		}
	}
	dials := func(err error) func(*webhook.Config) {
		return func(c *webhook.Config) {
			c.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7)},
					Addr: &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 443}, Err: err}
			}
		}
	}
	for _, c := range []struct {
		claim string
		url   string
		edit  func(*webhook.Config)
		want  string
	}{
		{"an unknown name", hook, looks(dns), "does not resolve"},
		{"a name without addresses", hook, looks(nil), "does not resolve"},
		{"a broken resolver", hook, looks(lame), "cannot be looked up"},
		{"a closed port", hook, dials(syscall.ECONNREFUSED), "port is closed"},
		{"no route", hook, dials(syscall.EHOSTUNREACH), "not reachable"},
		{"no address to leave from", hook, dials(syscall.EADDRNOTAVAIL), "not reachable"},
		{"a silent host", hook, dials(syscall.ETIMEDOUT), "did not answer within"},
		{"a reset", hook, dials(syscall.ECONNRESET), "closed the connection"},
		{"an unknown authority", hook, func(c *webhook.Config) { c.Roots = nil }, "certificate"},
		{"another host's certificate", "https://other.test/", nil, "certificate"},
		{"no TLS", hook, speak("HTTP/1.1 200 OK\r\n\r\n"), "TLS"},
		{"a TLS alert", hook, speak("\x15\x03\x03\x00\x02\x02\x28"), "TLS"},
		{"no HTTP", "http://8.8.8.8/", speak("SSH-2.0-x\r\n"), "not HTTP/1.1"},
		{"nothing", "http://8.8.8.8/", speak(""), "closed the connection"},
		{"a mail port", "https://hooks.example.com:25/", nil, "mail ports"},
		{"a private address", "https://10.0.0.1/", nil, "not a public address"},
		{"plain http", "http://hooks.example.com/", func(c *webhook.Config) { c.Dev = false }, "use https"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			w := begin(t, nil, func(cfg *webhook.Config) {
				cfg.Dev = true
				if c.edit != nil {
					c.edit(cfg)
				}
			})
			out := w.send(c.url)
			if out.StatusCode != 0 || !strings.Contains(out.Err, c.want) {
				t.Errorf("%+v, want %q", out, c.want)
			}
			for _, internal := range []string{"10.0.0", "127.0", "8.8.8.8", "hooks.example.com", "token", ":443", "no such host"} {
				if strings.Contains(out.Err, internal) {
					t.Errorf("the agent reads %q", out.Err)
				}
			}
		})
	}
}

func TestWhatIsOursIsAnError(t *testing.T) {
	for _, number := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		w := begin(t, nil, func(c *webhook.Config) {
			c.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: number}
			}
		})
		if out, err := w.Send(context.Background(), message(hook)); !errors.Is(err, number) || out.Err != "" {
			t.Errorf("%v: %+v, %v", number, out, err)
		}
	}
	t.Run("the caller's end is no failure of the receiver", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("the service stops")
		w := begin(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel(why)
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // or an answer may come before the connection is closed
		}, nil)
		if out, err := w.Send(ctx, message(hook)); !errors.Is(err, why) || out.StatusCode != 0 || strings.Contains(err.Error(), "token") {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("but an answer that came is one", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var answered atomic.Bool
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { answered.Store(true) }})
		w := begin(t, func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(202)
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		}, func(c *webhook.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
				conn, err := dial(ctx, target)
				return beforeRead{conn, func() {
					if answered.Load() { // the head: this read is of the body
						cancel()
					}
				}}, err
			}
		})
		if out, err := w.Send(ctx, message(hook)); err != nil || out.StatusCode != 202 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// beforeRead is a connection that calls a function before each read.
type beforeRead struct {
	net.Conn
	call func()
}

func (b beforeRead) Read(p []byte) (int, error) {
	b.call()
	return b.Conn.Read(p)
}

func TestMessagesHideSecretsInLogs(t *testing.T) {
	var text strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("sent", "message", message(hook))
	if got := text.String(); !strings.Contains(got, "evt_1") || strings.Contains(got, "whsec") || strings.Contains(got, "token") {
		t.Errorf("%s", got)
	}
}

func TestModule(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(gone)
		}
	}
	server.Start()
	defer server.Close()
	var sender ports.Sender
	app := fxtest.New(t, fx.Supply(webhook.Config{Dev: true}), webhook.Module, fx.Populate(&sender), fx.NopLogger,
		fx.StartTimeout(2*time.Minute), fx.StopTimeout(2*time.Minute))
	app.RequireStart()
	if out, err := sender.Send(context.Background(), message(server.URL)); err != nil || !out.OK() {
		t.Fatalf("%+v, %v", out, err)
	}
	app.RequireStop()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("a connection was kept after the application stopped")
	}
}
