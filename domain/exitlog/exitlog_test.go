package exitlog_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/exitlog"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

// connection is one that used port 50000 of an exit from a minute to another; to -1 is open.
func connection(n uint64, from, to int) exitlog.Connection {
	c := exitlog.Connection{Replica: "gw_1", Number: n, Agent: fmt.Sprint("agt_", n), Host: "shop.example",
		Target: netip.MustParseAddrPort("198.51.100.7:443"), Exit: netip.MustParseAddrPort("203.0.113.9:50000"),
		Opened: noon.Add(time.Duration(from) * time.Minute)}
	c.Seen = c.Opened
	if to >= 0 {
		c.Closed = noon.Add(time.Duration(to) * time.Minute)
		c.Seen = c.Closed
	}
	return c
}

func TestWhoUsedAnExit(t *testing.T) {
	t.Parallel()
	early, late := connection(1, 0, 10), connection(2, 12, 20)
	noted, closed := connection(3, 30, -1), connection(3, 30, 31)
	other := connection(4, 0, 20)
	other.Exit = netip.MustParseAddrPort("203.0.113.10:50000")
	port := connection(5, 0, 20)
	port.Exit = netip.MustParseAddrPort("203.0.113.9:50001")
	open := connection(6, 60, -1)
	again := open
	again.Seen = noon.Add(65 * time.Minute)
	records := []exitlog.Connection{early, late, closed, noted, other, port, open, again}
	for _, tc := range []struct {
		minute int
		port   uint16
		within time.Duration
		target string
		want   string
	}{
		{5, 50000, 5 * time.Minute, "", "agt_1"},
		{11, 50000, 5 * time.Minute, "", "agt_2 agt_1"},
		{11, 50000, 0, "", ""},
		{9, 50000, 5 * time.Minute, "", "agt_1"}, // and not the one that began 3 minutes later
		{5, 0, 0, "", "agt_1 agt_5"},
		{5, 0, 0, "SHOP.example.", "agt_1 agt_5"},
		{5, 50000, 0, "198.51.100.7", "agt_1"},
		{5, 50000, 0, "other.example", ""},
		{33, 50000, time.Minute, "", ""}, // it was noted as open, and closed since
		{69, 50000, 0, "", "agt_6"},      // it was noted, and may have been open
		{71, 50000, 0, "", ""},
		{-6, 50000, 5 * time.Minute, "", ""},
	} {
		q := exitlog.Query{Exit: netip.MustParseAddr("::ffff:203.0.113.9"), Port: tc.port, At: noon.Add(time.Duration(tc.minute) * time.Minute),
			Within: tc.within, Target: tc.target}
		a := exitlog.NewAnswer(q)
		for _, c := range records {
			a.Add(c)
		}
		var got []string
		for _, c := range a.Connections() {
			got = append(got, c.Agent)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// A seller that shows no exit is found by what is known of it, and each criterion narrows the others.
func TestConnectionsAreFoundWithoutAnExit(t *testing.T) {
	t.Parallel()
	sold := func(n uint64, client, agent, seller, token string) exitlog.Connection {
		c := connection(n, 0, 10)
		c.Exit, c.Client, c.Agent = netip.AddrPort{}, netip.AddrPortFrom(netip.MustParseAddr(client), 4000), agent
		c.Seller, c.Token = seller, token
		return c
	}
	records := []exitlog.Connection{sold(1, "192.0.2.1", "agt_1", "oxy", "tok1"), sold(2, "::ffff:192.0.2.1", "agt_2", "oxy", "tok2"),
		sold(3, "2001:db8::1", "agt_2", "bright", "10.0.0.9:7000"), connection(4, 0, 10)}
	client := netip.MustParseAddr
	for name, tc := range map[string]struct {
		q    exitlog.Query
		want string
	}{
		"target":             {exitlog.Query{Target: "shop.example"}, "1 2 3 4"},
		"client":             {exitlog.Query{Client: client("192.0.2.1")}, "1 2"},
		"agent":              {exitlog.Query{Agent: "agt_2"}, "2 3"},
		"seller":             {exitlog.Query{Seller: "oxy"}, "1 2"},
		"token":              {exitlog.Query{Token: "TOK2"}, "2"},
		"proxy":              {exitlog.Query{Token: "10.0.0.9:7000"}, "3"},
		"agent and seller":   {exitlog.Query{Agent: "agt_2", Seller: "oxy"}, "2"},
		"agent and client":   {exitlog.Query{Agent: "agt_1", Client: client("2001:db8::1")}, ""},
		"an exit":            {exitlog.Query{Exit: client("203.0.113.9"), Target: "shop.example"}, "4"},
		"its port":           {exitlog.Query{Exit: client("203.0.113.9"), Port: 1}, ""},
		"no part of a token": {exitlog.Query{Token: "tok"}, ""},
		"an early time":      {exitlog.Query{Agent: "agt_2", At: noon.Add(-time.Hour)}, ""},
	} {
		q := tc.q
		if q.At.IsZero() {
			q.At = noon
		}
		a := exitlog.NewAnswer(q)
		for _, c := range records {
			a.Add(c)
		}
		var got []string
		for _, c := range a.Connections() {
			got = append(got, fmt.Sprint(c.Number))
		}
		if strings.Join(got, " ") != tc.want || !q.Asks() {
			t.Errorf("by %s: %v, want %s", name, got, tc.want)
		}
	}
	if q := (exitlog.Query{Port: 7, At: noon, Within: time.Hour}); q.Asks() {
		t.Error("a port and a time are criteria of their own")
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	a := exitlog.NewAnswer(exitlog.Query{Target: "shop.example", At: noon})
	add := func(n uint64) { a.Add(connection(n, 0, 10)) }
	for n := range uint64(exitlog.MaxFound) {
		add(n)
	}
	add(7) // known
	if a.More() {
		t.Error("a known connection is one too many")
	}
	add(exitlog.MaxFound)
	if n := len(a.Connections()); !a.More() || n != exitlog.MaxFound {
		t.Errorf("%d connections, more: %v", n, a.More())
	}
}
