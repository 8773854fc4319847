package e2e_test

import (
	"bytes"
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/fake/proxycheap"
	"agentproxy/test/fake/upstreamproxy"
)

// database opens the file of a running service.
func (m *sellerService) database() *sql.DB {
	m.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(m.dir, "agentproxy.db")+"?_busy_timeout=10000")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = db.Close() })
	return db
}

// putOff delays the next poll of an order by an hour, so that what happens before has
// another cause.
func putOff(t *testing.T, db *sql.DB, session string) {
	t.Helper()
	r, err := db.Exec(`UPDATE upstream_orders SET next_at = next_at + 3600000000 WHERE session_id = ? AND state = 'pending' AND next_at > 0`, session)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.RowsAffected(); n != 1 {
		t.Fatalf("%d orders of %s are pending, want 1", n, session)
	}
}

func nextAt(t *testing.T, db *sql.DB, session string) (at int64) {
	t.Helper()
	if err := db.QueryRow(`SELECT next_at FROM upstream_orders WHERE session_id = ?`, session).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// post sends a callback as a seller does.
func (m *sellerService) post(provider string, c proxycheap.Call) int {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), "POST", "http://"+m.api+"/v1/providers/"+provider+"/callback", bytes.NewReader(c.Body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header = c.Header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestASellersCallbackDeliversSooner(t *testing.T) {
	t.Parallel()
	gate := upstreamproxy.New(t, "iproyal", "pcu1410379", "pcsecret1410379")
	seller := proxycheap.New(t)
	seller.Answers(proxycheap.Shape{Polls: 1 << 30}) // by itself it never delivers
	addrs, port := door(t, gate, "127.0.9.1")
	seller.Deliver(addrs, port, 0)
	m := open(t, cheap(seller), cheapEnv...)
	key, _ := m.register("upstream")
	var d apiclient.Session
	m.must(202, "POST", "/sessions", key, static("sta_cheap", 1)).into(t, &d)
	within(t, soon, "the order is read once", func() bool { return seller.Calls("GET /orders/") > 0 })
	db := m.database()
	within(t, soon, "the order is on its way", func() bool {
		var state string
		return db.QueryRow(`SELECT state FROM upstream_orders WHERE session_id = ?`, d.SessionID).Scan(&state) == nil && state == "pending"
	})
	m.stop() // a reading that is on its way would set another time
	putOff(t, db, d.SessionID)
	m.start()
	seller.SetStatus(seller.Orders()[0].ID, proxycheap.Active)
	callbacks := seller.Callbacks()
	if len(callbacks) == 0 {
		t.Fatal("the seller sends nothing")
	}
	call := callbacks[len(callbacks)-1]

	before := nextAt(t, db, d.SessionID)
	forged := proxycheap.Sign("proxy.status.changed", "1", call.Body, "another secret")
	unsigned := proxycheap.Call{Header: http.Header{"Content-Type": {"application/json"}}, Body: call.Body}
	for name, c := range map[string]struct {
		provider string
		call     proxycheap.Call
		want     int
	}{
		"forged": {"cheap", forged, 400}, "unsigned": {"cheap", unsigned, 400}, "another provider": {"dear", call, 404},
		"one without callbacks": {"embedded", call, 404}, "no name": {"..%2f", call, 404},
	} {
		if got := m.post(c.provider, c.call); got != c.want {
			t.Errorf("%s is answered %d, want %d", name, got, c.want)
		}
	}
	if after := nextAt(t, db, d.SessionID); after != before {
		t.Error("a callback that was refused had the order read sooner")
	}
	for range 2 { // the seller calls twice
		if got := m.post("cheap", call); got != 200 {
			t.Errorf("the seller is answered %d", got)
		}
	}
	within(t, soon, "activation", func() bool { return m.session(key, d.SessionID).Status == "active" })
	m.exitOf(m.session(key, d.SessionID).Proxy.FullURL)
	if n := seller.Sales(); n != 1 {
		t.Errorf("sold %d times", n)
	}
	res, err := http.Get("http://" + m.api + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var document bytes.Buffer
	if _, err := document.ReadFrom(res.Body); err != nil || !strings.Contains(document.String(), "/providers/{provider}/callback") {
		t.Errorf("the route is not in the document, %v", err)
	}
	m.verify()
}
