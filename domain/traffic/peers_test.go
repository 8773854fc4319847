package traffic_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

func TestPeers(t *testing.T) {
	t.Parallel()
	var p traffic.Peers
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i, o := range []traffic.Observation{
		{Client: one, Host: "A.example.", Type: traffic.Tunnelled, Bytes: 10},
		{Client: one, Host: "a.example", Type: traffic.Unmet},
		{Client: two, Host: "b.example", Type: traffic.Requested, Bytes: 5},
		{Client: two, Host: "b.example", Type: traffic.Reported},
		{Client: two, Type: traffic.Refused},
	} {
		o.At = noon.Add(time.Duration(i) * time.Second)
		p.Add(o)
	}
	want := "[{192.0.2.1 0s 1s 2 10} {192.0.2.2 2s 4s 2 5}] [{a.example 2 1 10} {b.example 1 0 5}]"
	show := func(p traffic.Peers) string {
		text := "["
		for i, c := range p.Clients() {
			if i > 0 {
				text += " "
			}
			text += fmt.Sprintf("{%s %v %v %d %d}", c.Address, c.FirstAt.Sub(noon), c.LastAt.Sub(noon), c.Connections, c.Bytes)
		}
		return text + "] " + fmt.Sprint(p.Hosts())
	}
	if got := show(p); got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	var merged traffic.Peers
	merged.Merge(p)
	merged.Merge(traffic.Peers{})
	if got := show(merged); got != want {
		t.Errorf("merged %s, want %s", got, want)
	}
	// However many there are, the bytes are all counted, and what is kept has a bound.
	var many traffic.Peers
	addr := one
	for i := range 1000 {
		many.Add(traffic.Observation{Client: addr, Host: fmt.Sprintf("h%d.example", i), Type: traffic.Tunnelled, Bytes: 1, At: noon})
		addr = addr.Next()
	}
	var bytes int64
	for _, h := range many.Hosts() {
		bytes += h.Bytes
	}
	for _, c := range many.Clients() {
		bytes += c.Bytes
	}
	if bytes != 2000 || len(many.Hosts()) > 65 || len(many.Clients()) > 65 {
		t.Errorf("%d bytes of %d hosts and %d clients", bytes, len(many.Hosts()), len(many.Clients()))
	}
}
