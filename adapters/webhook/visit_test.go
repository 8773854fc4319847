package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/webhook"
	"agentproxy/ports"
)

// Names of one's own that lead to a third party's address do not evade the bound of the address: refused or unanswered
// requests of all of them are thirty an hour, those of another address and of receivers who once answered are not
// counted, and neither is what is answered well.
func TestAnAddressHasThirtyTriesAnHour(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	var to atomic.Pointer[netip.Addr]
	v4, v6 := netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2600:1234::1")
	same6 := netip.MustParseAddr("2600:1234::77")
	w := begin(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(status.Load())) }, func(c *webhook.Config) {
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{*to.Load()}, nil }
	})
	n := 0
	send := func(addr netip.Addr, stranger bool, at time.Time) (wait time.Duration) {
		t.Helper()
		n++
		to.Store(&addr)
		// The certificate of the server is for example.com and its subdomains.
		_, err := w.Send(t.Context(), ports.Message{URL: fmt.Sprintf("https://n%d.example.com/", n), ID: "evt_1", At: at, Body: w.Body(event),
			Secrets: []string{secret}, Stranger: stranger})
		if later, ok := errors.AsType[ports.RequeueAfter](err); ok {
			return time.Duration(later)
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	for _, addr := range []netip.Addr{v4, v6} {
		status.Store(404)
		sent := 0
		for at := now; at.Before(now.Add(time.Hour)); at = at.Add(time.Minute) {
			for range 2 {
				if send(addr, true, at) == 0 {
					sent++
				}
			}
		}
		if sent > 30 || sent < 15 {
			t.Errorf("%d requests within an hour to %s", sent, addr)
		}
	}
	at := now.Add(59 * time.Minute)
	if send(v4, true, at) == 0 || send(same6, true, at) == 0 {
		t.Error("another one is sent, or one to another address of the network of one host")
	}
	if send(v4, false, at) != 0 {
		t.Error("a receiver that has answered before has to wait")
	}
	status.Store(204)
	other := netip.MustParseAddr("9.9.9.9")
	for i := range 40 {
		if send(other, true, at) != 0 {
			t.Fatalf("request %d to one that answers has to wait", i)
		}
	}
}
