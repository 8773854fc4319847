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
