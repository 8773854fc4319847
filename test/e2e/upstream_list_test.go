package e2e_test

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/apiclient"
	"agentproxy/domain/procurement"
	"agentproxy/test/connectproxy"
	"agentproxy/test/pg"
	"agentproxy/test/realproxy"
)

// listConfig sells two files as addresses and as traffic.
func listConfig(addresses, traffic string) string {
	return fmt.Sprintf(`
providers:
  - {name: own, kind: list, options: {file: %q, sold_as: static}}
  - {name: pool, kind: list, options: {file: %q, sold_as: dynamic, country: us}}
products:
  - code: own_1
    trial_credit: true
    name: Own addresses
    type: static
    durations: [{days: 30, price: "1.00"}]
    countries: [US]
    sources: [{provider: own}]
  - {code: pool_1, name: Own pool, type: dynamic, price: "0.30", trial_credit: true, countries: [US], sources: [{provider: pool}]}
`, addresses, traffic)
}

func writeList(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAgentsBuyTheOperatorsOwnProxies(t *testing.T) {
	t.Parallel()
	line := func(p *realproxy.Proxy) string {
		return fmt.Sprintf("%s://%s:%s@%s # country=US", p.Protocol, realproxy.User, realproxy.Password, p.Addr)
	}
	one, two := realproxy.Tinyproxy(t, "127.128.7.1"), realproxy.Microsocks(t, "127.128.7.2")
	three, four := realproxy.Squid(t, "127.128.7.3"), realproxy.Microsocks(t, "127.128.7.4")
	m := open(t, listConfig(writeList(t, line(one), line(two)), writeList(t, line(three), line(four))))
	key, _ := m.register("buyer")

	d := m.buy(key, static("own_1", 2))
	var exits []string
	for _, ip := range d.IPList {
		exits = append(exits, ip.IP)
	}
	slices.Sort(exits)
	if !slices.Equal(exits, []string{"127.128.7.1", "127.128.7.2"}) {
		t.Errorf("the addresses are %v", exits)
	}
	for _, e := range m.carries(key, d) {
		if e != d.IPList[0].IP {
			t.Errorf("the first address is %s, the target saw %s", d.IPList[0].IP, e)
		}
	}
	if r, err := m.call(t.Context(), "POST", "/sessions", key, static("own_1", 1)); err != nil || r.status != 409 || !strings.Contains(string(r.body), "PRODUCT_OUT_OF_STOCK") {
		t.Errorf("a list that is sold out: %d %s, %v", r.status, r.body, err)
	}
	m.must(200, "POST", "/sessions/"+d.SessionID+"/renew", key, `{"duration_days":30}`)

	pool := m.buy(key, dynamic("pool_1", "1"))
	m.keepsAndRotates(key, pool)
	within(t, soon, "the report", func() bool {
		_, metrics := m.page("/metrics")
		return strings.Contains(metrics, `agentproxy_provider_lines{provider="own",state="sold"} 2`) &&
			strings.Contains(metrics, `agentproxy_provider_lines{provider="pool",state="working"} 2`)
	})
	m.keepsSecret(key, []string{d.SessionID, pool.SessionID}, realproxy.User, realproxy.Password)
	m.ends(key, pool)
	m.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	within(t, soon, "the lines to be free again", func() bool {
		r, err := m.call(t.Context(), "POST", "/sessions", key, static("own_1", 2))
		return err == nil && (r.status == 201 || r.status == 202)
	})
}

// exitsOf starts proxies, each with an exit of its own, and returns their lines.
func exitsOf(t *testing.T, n int) (lines []string) {
	lines, _ = switchedExits(t, n)
	return lines
}

// switchedExits is like exitsOf for proxies that can be switched off.
func switchedExits(t *testing.T, n int) (lines []string, off *atomic.Bool) {
	off = new(atomic.Bool)
	for i := range n {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 128, 8, byte(1+i))}}
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			up, err := d.DialContext(r.Context(), "tcp", r.Host)
			if err != nil || off.Load() {
				rw.WriteHeader(http.StatusBadGateway)
				return
			}
			connectproxy.Serve(rw, up.(*net.TCPConn))
		}))
		t.Cleanup(s.Close)
		lines = append(lines, strings.TrimPrefix(s.URL, "http://")+" US")
	}
	return lines, off
}

// A check that fails counts against the address if the echo answers without it, and not while the echo is down.
func TestAFailedCheckIsTheFaultOfTheAddress(t *testing.T) {
	t.Parallel()
	var api atomic.Pointer[url.URL]
	var down atomic.Bool
	echo := httptest.NewServer(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetXForwarded()
		if r.SetURL(api.Load()); down.Load() {
			r.Out.URL.Host = "127.0.0.1:1"
		}
	}})
	t.Cleanup(echo.Close)
	lines, off := switchedExits(t, 2)
	api.Store(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})
	m := open(t, fmt.Sprintf("embedded: false\nproviders:\n  - {name: own, kind: list, options: {file: %q, sold_as: static}}\nproducts:\n",
		writeList(t, lines...))+addresses("own", "sta_own", ""), "AGENTPROXY_PUBLIC_URL="+echo.URL, "AGENTPROXY_TRUSTED_PROXIES=127.0.0.1/32")
	api.Store(&url.URL{Scheme: "http", Host: m.api})
	key, _ := m.register("checks")
	within(t, soon, "both lines work", func() bool {
		_, metrics := m.page("/metrics")
		return strings.Contains(metrics, `agentproxy_provider_lines{provider="own",state="working"} 2`)
	})
	d := m.buy(key, static("sta_own", 1))
	failed := func() any {
		r := m.must(409, "POST", "/sessions/"+d.SessionID+"/ips/"+d.IPList[0].IP+"/replace", key, `{"reason":"unreachable"}`)
		return r.Error.Details["failed_checks"]
	}
	m.must(200, "POST", "/sessions/"+d.SessionID+"/ips/"+d.IPList[0].IP+"/replace", key, `{"reason":"blocked"}`)
	m.must(200, "GET", "/sessions/"+d.SessionID, key, "").into(t, &d)

	// Neither its policy nor the addresses that may use it are in the way of a check.
	m.must(200, "PATCH", "/sessions/"+d.SessionID, key, `{"allowed_ips":["192.0.2.1"]}`)
	m.must(200, "PUT", "/sessions/"+d.SessionID+"/policy", key, `{"allow":["nowhere.example"]}`)
	within(t, soon, "a check succeeds", func() bool { // some may fail on a machine that is busy
		r, err := m.call(t.Context(), "POST", "/sessions/"+d.SessionID+"/check", key, "")
		return err == nil && r.status == 200
	})

	down.Store(true)
	m.must(502, "POST", "/sessions/"+d.SessionID+"/check", key, "")
	if n := failed(); n != 0.0 {
		t.Errorf("while the echo is down %v checks count", n)
	}
	down.Store(false)
	off.Store(true)
	m.must(502, "POST", "/sessions/"+d.SessionID+"/check", key, "")
	if n := failed(); n != 1.0 {
		t.Errorf("of an address that is down %v checks count", n)
	}
}

func TestKilledWhileItSellsAListNoLineIsSoldTwice(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			const lines, calls = 8, 12
			list := exitsOf(t, lines)
			var env []string
			var url string
			if store == "postgres" {
				url = pg.Database(t)
				env = onPostgres(url)
			}
			m := open(t, listConfig(writeList(t, list...), writeList(t, list[0])), env...)
			db := func() *sql.DB { return m.database() }
			if store == "postgres" {
				db = func() *sql.DB {
					db, err := sql.Open("pgx", url)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = db.Close() })
					return db
				}
			}
			key, _ := m.register("killed")
			var answered atomic.Int32
			var wg sync.WaitGroup
			create := func(i int) (reply, error) {
				return m.call(t.Context(), "POST", "/sessions", key, static("own_1", 1), "Idempotency-Key", fmt.Sprint("call-", i))
			}
			for i := range calls {
				wg.Go(func() {
					_, _ = create(i)
					answered.Add(1)
				})
			}
			within(t, soon, "calls to kill it in", func() bool { return answered.Load() >= 2 })
			m.kill()
			wg.Wait()
			database, listed := db(), fmt.Sprint(procurement.ListingDelay.Microseconds())
			// The process that had these is dead: their claims need not expire first.
			if _, err := database.Exec(`UPDATE upstream_orders SET next_at = planned_at, sent_at = sent_at - ` + listed + ` WHERE status IN ('planned', 'sent')`); err != nil {
				t.Fatal(err)
			}
			m.start()
			// A client repeats what it has no answer to. A key that was taken when the program died is refused for a
			// minute: others buy what is left meanwhile.
			for i := range 2 * calls {
				within(t, soon, "an answer", func() bool {
					r, err := create(i)
					return err == nil && r.code() != "SERVICE_UNAVAILABLE"
				})
			}
			owner := map[string]string{}
			within(t, 2*soon, "every session to be decided", func() bool {
				var page struct{ Items []apiclient.Session }
				m.must(200, "GET", "/sessions?page_size=100", key, "").into(t, &page)
				clear(owner)
				for _, d := range page.Items {
					switch d.Status {
					case "creating":
						// An order whose outcome is unknown is looked for again minutes later.
						_, _ = database.Exec(`UPDATE upstream_orders SET next_at = planned_at, sent_at = sent_at - ` + listed + ` WHERE status = 'unknown'`)
						return false
					case "active":
						for _, ip := range d.IPList {
							if other, twice := owner[ip.IP]; twice {
								t.Errorf("%s is sold to %s and %s", ip.IP, other, d.SessionID)
							}
							owner[ip.IP] = d.SessionID
						}
					}
				}
				return true
			})
			var claims, orders int
			if err := database.QueryRow(`SELECT COUNT(*), COUNT(DISTINCT order_id) FROM list_claims WHERE provider = 'own'`).Scan(&claims, &orders); err != nil {
				t.Fatal(err)
			}
			if len(owner) != lines || claims != lines || orders != lines {
				t.Errorf("%d lines have %d owners, %d claims of %d orders", lines, len(owner), claims, orders)
			}
		})
	}
}
