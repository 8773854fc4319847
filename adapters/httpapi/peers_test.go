package httpapi_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

// The lists that are kept in memory or added up are read by cursor as the others are.
func TestListsOfASessionAreReadOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("agent")
	id := w.do("POST", "/v1/sessions", `{"session_type":"dynamic","product_no":"dyn_sync","traffic_gb":0.1}`, a.as).
		want(201).str("data.session_id")
	see := func(n int, bytes int64) {
		w.observer.Observe(traffic.Observation{SessionID: id, AgentID: a.ID, At: w.clock.Now(), Type: traffic.Tunnelled,
			Host: fmt.Sprintf("h%d.example", n), Bytes: bytes, Client: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})})
		w.clock.Advance(3 * time.Second)
		w.must(w.observer.FlushAll(t.Context()))
	}
	for n := range 4 {
		see(n, 0) // hosts of one rank
	}
	for list, field := range map[string]string{"sessions/" + id + "/clients": "address", "sessions/" + id + "/hosts": "host",
		"products": "product_no", "public/products": "product_no"} {
		path := "/v1/" + list + "?page_size=1"
		var got []string
		for next, more := path, true; more; {
			r := w.do("GET", next, "", a.as).want(200)
			got = append(got, r.str("data.items.0."+field))
			var cursor string
			if cursor, more = r.at("data.pagination.next_cursor").(string); more {
				next = path + "&cursor=" + cursor
			}
			if total := int(r.num("data.pagination.total")); len(got) > total || !more && len(got) < total {
				t.Fatalf("%s: read %v of %d", list, got, total)
			}
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != len(got) {
			t.Errorf("%s: %v repeats", list, got)
		}
		for _, cursor := range []string{"", "x", "c", "c0", "cz_", "cz_0", "c-z", "cz&page=1"} {
			w.do("GET", path+"&cursor="+cursor, "", a.as).refused(400, "INVALID_REQUEST")
		}
	}
	w.do("GET", "/v1/products?cursor=cz", "", a.as).refused(400, "INVALID_REQUEST")
}
