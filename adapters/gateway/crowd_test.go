package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/traffic"
	"agentproxy/test/syncbuffer"
)

// of makes a session of an agent.
func (b *fakeCore) of(agent string, trial bool, n int) string {
	id := b.add(n, 0)
	b.change(id, func(r *traffic.Route) { r.AgentID, r.Trial = agent, trial })
	return id
}

// status asks for a tunnel and returns the status.
func (w *world) status(id, target string) int {
	return w.connectAs(w.dial(), basic(user(id, 0), password(id)), target)
}

// Strangers that send nothing, half a head, half a SOCKS5 handshake or a wrong credential
// are closed for clients with a credential.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	const limit = 16
	w, r := metered(t, newCore(t), func(s *setup) { s.Connections = limit })
	id, target := w.add(1, 0), echo(t)
	tunnel := w.connect(id, target)
	strangers := []string{"", "CONNECT x:1 HTT", "\x05\x01", "CONNECT x:1 HTTP/1.1\r\nProxy-Authorization: Basic YTpi\r\n"}
	for i := range 5 * limit {
		_, _ = io.WriteString(w.dial(), strangers[i%len(strangers)])
	}
	for range 3 {
		if c := w.connect(id, target); c != nil {
			_ = c.Close()
		}
	}
	_, _ = tunnel.Write([]byte("still"))
	if _, err := io.ReadFull(tunnel, make([]byte, 5)); err != nil {
		t.Errorf("an open tunnel: %v", err)
	}
	s := scrape(t, r)
	if n := s.value("agentproxy_connections_evicted_total,listener=gateway"); n < 4*limit-10 {
		t.Errorf("%v were evicted", n)
	}
	if n := s.value("agentproxy_connections_limit,listener=gateway"); n != limit {
		t.Errorf("the limit is %v", n)
	}
}

// One client address has a share of the connections without a credential.
func TestOneAddressHasAShare(t *testing.T) {
	t.Parallel()
	w, r := metered(t, newCore(t), func(s *setup) { s.PerAddress = 4 })
	const all = 20
	for range all {
		w.dial()
	}
	most := 4
	if isInside(t) { // a ClientHello that was not read yet keeps its connection, up to four times the share
		most *= 4
	}
	waitFor(t, "all but the share to be closed", func() bool {
		s, open := scrape(t, r), w.Stats().Connections
		ended := s.value("agentproxy_connections_evicted_total,listener=gateway") +
			s.value("agentproxy_connections_refused_total,listener=gateway")
		return open <= most && open+int(ended) == all
	})
	w.connect(w.add(1, 0), echo(t))
}

func TestAnAgentHasAShare(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { s.Agent, s.TrialAgent = 6, 3 })
	target := echo(t)
	for _, c := range []struct {
		agent string
		trial bool
		most  int
	}{{"agt_trial", true, 3}, {"agt_funded", false, 6}} {
		first, second := w.of(c.agent, c.trial, c.most), w.of(c.agent, c.trial, c.most+100)
		var open []*net.TCPConn
		for i := range c.most {
			open = append(open, w.connect([]string{first, second}[i%2], target))
		}
		if got := w.status(first, target); got != 429 {
			t.Errorf("%s: one more by CONNECT: %d, want 429", c.agent, got)
		}
		res, err := w.client(second).Get("http://" + target)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 429 || !strings.Contains(res.Status, "TOO_MANY_TUNNELS: this account") {
			t.Errorf("%s: one more by plain HTTP: %s", c.agent, res.Status)
		}
		if conn, err := w.socks(user(second, 0), password(second)).Dial("tcp", target); err == nil {
			_ = conn.Close()
			t.Errorf("%s: one more by SOCKS5", c.agent)
		}
		_ = open[0].Close()
		waitFor(t, "the place of a tunnel that ended", func() bool { return w.status(first, target) == 200 })
	}
	if got := w.status(w.of("agt_other", true, 500), target); got != 200 {
		t.Errorf("another agent: %d", got)
	}
}

// Kept connections between plain requests count too, whatever session they serve next.
func TestKeptConnectionsCountForTheirAgent(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { s.TrialAgent = 2 })
	a, b, other := w.of("agt_1", true, 1), w.of("agt_1", true, 2), w.of("agt_2", true, 3)
	l := listen(t)
	go serve(l, func(c net.Conn) {
		for buf := make([]byte, 4096); ; {
			if n, err := c.Read(buf); err != nil || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		}
	})
	get := func(c net.Conn, id string) int {
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", l.Addr(), basic(user(id, 0), password(id)))
		res, _ := response(t, c)
		return res.StatusCode
	}
	one, two, three := w.dial(), w.dial(), w.dial()
	for i, c := range []net.Conn{one, two} {
		for range 2 {
			if got := get(c, a); got != 200 {
				t.Fatalf("kept connection %d: %d", i, got)
			}
		}
	}
	if got := get(three, b); got != 429 {
		t.Errorf("a third connection: %d", got)
	}
	if got := get(two, other); got != 200 {
		t.Errorf("the second for another agent: %d", got)
	}
	waitFor(t, "the place that it had", func() bool { return get(w.dial(), b) == 200 })
}

// places is how many connections of agents a gateway with a limit has.
func places(limit int) int { return limit - min(limit/16, 32) - 1 }

// A gateway full of one agent's tunnels closes those that are quiet for its new ones, not one that is in use.
func TestQuietTunnelsMakeRoom(t *testing.T) {
	t.Parallel()
	const limit = 64
	w := begin(t, newCore(t), func(s *setup) {
		s.Connections = limit
		s.Timing.Spare = 300 * time.Millisecond
	})
	id, target := w.add(1, 0), echo(t)
	busy := w.connect(id, target)
	for range places(limit) - 1 {
		w.connect(id, target)
	}
	if err := ping(busy); err != nil { // last of all
		t.Fatal(err)
	}
	waitFor(t, "room for a new tunnel", func() bool { return w.status(id, target) == 200 })
	if n := w.Stats().Connections; n > limit+2 {
		t.Errorf("%d connections of %d", n, limit)
	}
	w.Changed(id)
	if err := ping(busy); err != nil {
		t.Errorf("the tunnel in use: %v", err)
	}
}

// Accounts that fill the gateway with tunnels in use take none from an account with few, and it gets new ones: five
// trial accounts, whose tunnels are more than a gateway with 1,024 descriptors has, or two funded ones.
func TestAFullGatewayServesWhoHasFew(t *testing.T) {
	t.Parallel()
	const limit, tunnels = 352, 360
	for _, a := range []struct {
		accounts int
		trial    bool
	}{{5, true}, {2, false}} {
		logged := &syncbuffer.Buffer{}
		b := newCore(t)
		w, r := metered(t, b, func(s *setup) {
			s.Connections, s.TrialPlaces, s.Agent, s.TrialAgent, s.Tunnels = limit, limit/4, 1000, 100, 1000
			s.Log = slog.New(slog.NewTextHandler(logged, nil))
		})
		target, victim := echo(t), w.of("agt_victim", a.trial, 1)
		var idle []*net.TCPConn
		for range 20 {
			idle = append(idle, w.connect(victim, target))
		}
		refused := 0
		for n := range tunnels {
			account := n % a.accounts
			id := w.of(fmt.Sprint("agt_", account), a.trial, 2+account)
			if got := w.status(id, target); got != 200 {
				refused++
			}
		}
		for n := range 10 {
			if got := w.status(victim, target); got != 200 {
				t.Errorf("%+v: new tunnel %d of the victim: %d", a, n, got)
			}
		}
		for n, c := range idle {
			if err := ping(c); err != nil {
				t.Errorf("%+v: idle tunnel %d of the victim: %v", a, n, err)
			}
		}
		s := scrape(t, r)
		most := s.value("agentproxy_gateway_largest_agent_connections")
		if n := s.value("agentproxy_gateway_agents"); n != float64(a.accounts+1) || most < 30 || refused == 0 {
			t.Errorf("%+v: %v agents, the largest has %v, %d refused", a, n, most, refused)
		}
		if a.trial {
			if n := s.value("agentproxy_gateway_trial_connections"); n != 30+5*32 {
				t.Errorf("trial accounts have %v", n)
			}
			continue
		}
		if closed, refused := s.value("agentproxy_gateway_share_closed_total"),
			s.value("agentproxy_gateway_share_refused_total"); closed != 10 || refused < 40 {
			t.Errorf("%v were closed for the victim, %v were refused", closed, refused)
		}
		waitFor(t, "the largest agents in the log", func() bool {
			return strings.Contains(logged.String(), "three quarters of the gateway's places are taken") &&
				strings.Contains(logged.String(), "agt_0=1") && strings.Contains(logged.String(), "agt_1=1")
		})
	}
}
