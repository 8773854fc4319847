package gateway_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// raise renews a static session: it may carry so much in all from now on.
func (b *fakeCore) raise(id string, limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.sessions[id]
	a.usage.Limit, a.route.UsedUp = limit, false
}

// asked returns how often traffic was asked for.
func (b *fakeCore) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewals
}

// A static session whose fair use is reached is refused on every replica until it is renewed; it carries
// not a byte more, from an address of this host and through a seller's proxy alike.
func TestFairUseIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const limit = 2_000_000
	for _, seller := range []bool{false, true} {
		b := newCore(t)
		id := b.add(1, limit, "127.0.0.3", "127.0.0.4")
		b.change(id, func(r *traffic.Route) { r.Type = session.Static })
		if seller {
			e := newSeller(t, "u", "secret").endpoint(session.HTTP)
			b.change(id, func(r *traffic.Route) { r.Exits, r.Upstreams = make([]session.Exit, 2), []procurement.Endpoint{e, e} })
		}
		auth := func(ip int) string {
			return basic(traffic.User{SessionID: id, Static: true, Number: ip}.String(), password(id))
		}
		target := newCounting(t)
		ws := []*world{begin(t, b, nil), begin(t, b, nil)}
		for _, total := range []int64{limit, 2 * limit} {
			var delivered int64
			for i := range 4 {
				c := ws[i%2].dial()
				switch status := ws[i%2].connectAs(c, auth(i/2), target.addr()); {
				case status == http.StatusOK:
					delivered += download(t, c, limit/2+limit/10)
				case i < 2:
					t.Fatalf("seller %v: CONNECT %d", seller, status)
				}
			}
			if u := b.settled(id); u.Used() != total || u.Used() != u.Limit {
				t.Errorf("seller %v: used %d, delivered %d of %d", seller, u.Used(), delivered, total)
			}
			asked := b.asked()
			for i, w := range []*world{begin(t, b, nil), ws[0], ws[1]} {
				c := w.dial()
				_, _ = io.WriteString(c, "CONNECT "+target.addr()+" HTTP/1.1\r\nHost: x\r\n"+auth(0)+"\r\n")
				expectRefusal(t, c, http.StatusPaymentRequired, "FAIR_USE_REACHED")
				if n := b.asked() - asked; n > 0 && i == 0 {
					t.Errorf("a gateway that has just started asked the core %d times for traffic that there is not", n)
				}
			}
			b.raise(id, 2*limit)
			for _, w := range ws {
				w.Changed(id)
			}
		}
	}
}

// expectRefusal reads an answer of the gateway itself.
func expectRefusal(t *testing.T, c net.Conn, status int, code string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Code string }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != status || answer.Code != code {
		t.Errorf("%d %s, %v; want %d %s", res.StatusCode, answer.Code, err, status, code)
	}
}
