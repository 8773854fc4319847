package list_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream/list"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/connectproxy"
	"agentproxy/test/realproxy"
)

// echo answers with the caller's address, in the form of a service.
func echo(t *testing.T, form string, start func(*httptest.Server)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(rw, form, host)
	}))
	start(s)
	t.Cleanup(s.Close)
	return s.URL
}

// A probe through proxies that others have written finds the exit, and an order gets it.
func TestProbesThroughRealProxies(t *testing.T) {
	t.Parallel()
	for i, start := range realproxy.All {
		exit := fmt.Sprintf("127.0.0.%d", 33+i)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := start(t, exit)
			w := newWorld(t, fmt.Sprintf("%s://%s:%s@%s # country=DE\n", p.Protocol, realproxy.User, realproxy.Password, p.Addr))
			c := w.config("static")
			c.Probe, c.Echo = nil, echo(t, `{"success":true,"data":{"ip":"%s"}}`, (*httptest.Server).Start)
			s := open[*list.Static](t, c)
			in := order(session.Static, 1)
			in.Location.Country = "DE"
			if d := w.buy(s, in); d.IPs[0].Addr.String() != exit {
				t.Errorf("%s: the exit is %s, want %s", p.Name, d.IPs[0].Addr, exit)
			}
			p.Kill()
			for range 3 {
				w.advance(10 * time.Minute)
				w.keep(s)
			}
			if got := s.Stock(); got["working"] != 0 || got["sold_failing"] != 1 {
				t.Errorf("%s: after its end the report is %v", p.Name, got)
			}
		})
	}
}

func TestAProxyThatRefusesTheCredentialDoesNotWork(t *testing.T) {
	t.Parallel()
	p := realproxy.Microsocks(t, "127.0.0.36")
	w := newWorld(t, fmt.Sprintf("socks5h://%s:wrong@%s\n", realproxy.User, p.Addr))
	c := w.config("static")
	c.Probe, c.Echo = nil, echo(t, "%s", (*httptest.Server).Start)
	w.refused(open[*list.Static](t, c), order(session.Static, 1), procurement.OutOfStock)
}

// tunnel is a proxy that opens every tunnel to one target.
func tunnel(t *testing.T, target string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		connectproxy.Serve(rw, up.(*net.TCPConn))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestAnEchoThatNamesTheCountryPlacesTheLine(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"ip":"203.0.113.9","country":"se"}`:                         "203.0.113.9 SE",
		`{"ip":"203.0.113.9","country":"Sweden","country_code":"SE"}`: "203.0.113.9 SE",
		`{"ip":"2001:db8::7"}`:                                        "2001:db8::7 ",
		"203.0.113.9\n":                                               "203.0.113.9 ",
		`{"ip":"hunter2"}`:                                            "",
		"<html>":                                                      "",
		"":                                                            "",
	} {
		body, _ := json.Marshal(answer)
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			var text string
			_ = json.Unmarshal(body, &text)
			fmt.Fprint(rw, text)
		}))
		t.Cleanup(s.Close)
		w := newWorld(t, tunnel(t, strings.TrimPrefix(s.URL, "http://"))+"\n")
		c := w.config("static")
		c.Probe, c.Echo = nil, s.URL
		d, err := open[*list.Static](t, c).Order(t.Context(), order(session.Static, 1))
		got := ""
		if err == nil {
			got = d.IPs[0].Addr.String() + " " + d.IPs[0].Country
		}
		if got != want {
			t.Errorf("%q: got %q, want %q, %v", answer, got, want, err)
		}
	}
}

func TestAListFromElsewhereNamesNoHostOfThisNetwork(t *testing.T) {
	t.Parallel()
	dialled := make(chan struct{}, 8)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			dialled <- struct{}{}
			_ = c.Close()
		}
	}()
	for _, scheme := range []string{"http", "socks5"} {
		w := newWorld(t, "198.51.100.1:1")
		c := w.config("static")
		c.File, c.Probe, c.Echo = "", nil, "http://192.0.2.1/"
		c.Source = given{scheme + "://" + ln.Addr().String()}
		w.refused(open[*list.Static](t, c), order(session.Static, 1), procurement.OutOfStock)
		select {
		case <-dialled:
			t.Errorf("%s: a host of the list was dialled on loopback", scheme)
		default:
		}
	}
}

// given is a source of one text.
type given struct{ text string }

func (g given) Due(time.Time) bool { return false }

func (g given) Load(context.Context) ([]list.Line, bool, error) {
	lines, _ := list.Parse([]byte(g.text))
	return lines, true, nil
}
