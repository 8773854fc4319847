package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// sellerService is the program with fake sellers in its configuration. It keeps every answer
// to an agent.
type sellerService struct {
	*service
	rewrite func(text string)
	answers bytes.Buffer
}

// open starts the program with a configuration file, and more variables.
func open(t *testing.T, config string, env ...string) *sellerService {
	t.Helper()
	s, rewrite := configured(t, config)
	s.env = append(s.env, "AGENTPROXY_LOG_LEVEL=debug", "AGENTPROXY_TRIAL_BALANCE=1000000", "AGENTPROXY_TRIAL_DAILY_TOTAL=0", "AGENTPROXY_SESSION_LIMIT=0",
		"AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	s.env = append(s.env, env...)
	s.start()
	t.Cleanup(s.stop)
	return &sellerService{service: s, rewrite: rewrite}
}

// must is like service.must, and keeps the answer.
func (m *sellerService) must(status int, method, path, key, body string, headers ...string) reply {
	m.t.Helper()
	r := m.service.must(status, method, path, key, body, headers...)
	m.answers.Write(r.body)
	fmt.Fprintln(&m.answers, r.header)
	return r
}

func (m *sellerService) session(key, id string) (d apiclient.Session) {
	m.t.Helper()
	m.must(200, "GET", "/sessions/"+id, key, "").into(m.t, &d)
	return d
}

// deliveries returns how each product is delivered.
func (m *sellerService) deliveries(key string) map[string]string {
	m.t.Helper()
	var list struct {
		Items []struct {
			ProductNo string `json:"product_no"`
			Delivery  string
		}
	}
	m.must(200, "GET", "/products", key, "").into(m.t, &list)
	how := map[string]string{}
	for _, p := range list.Items {
		how[p.ProductNo] = p.Delivery
	}
	return how
}

// buy creates a session and waits until it is active.
func (m *sellerService) buy(key, body string) (d apiclient.Session) {
	m.t.Helper()
	r, err := m.call(m.t.Context(), "POST", "/sessions", key, body)
	if err != nil || r.status != 201 && r.status != 202 {
		m.t.Fatalf("create: %d %s, %v", r.status, r.body, err)
	}
	m.answers.Write(r.body)
	r.into(m.t, &d)
	within(m.t, soon, "activation of "+d.SessionID, func() bool {
		d = m.session(key, d.SessionID)
		return d.Status == "active"
	})
	return d
}

// dynamic returns the body of a create call for traffic.
func dynamic(product, gb string) string {
	return fmt.Sprintf(`{"type":"dynamic","config":{"product_no":%q,"traffic_gb":%s,"country":"US"}}`, product, gb)
}

// static returns the body of a create call for addresses.
func static(product string, quantity int) string {
	return fmt.Sprintf(`{"type":"static","config":{"product_no":%q,"quantity":%d,"duration_days":30,"country":"US"}}`, product, quantity)
}

// keepsSecret checks that the credentials of the service at a seller are in no answer
// to the agent, not in the logs, not in the metrics, and not in the database.
func (m *sellerService) keepsSecret(key string, ids []string, secrets ...string) {
	m.t.Helper()
	for _, path := range []string{"/products", "/sessions", "/stats/overview", "/billing/transactions?page_size=100", "/billing/usage-report"} {
		m.must(200, "GET", path, key, "")
	}
	for _, id := range ids {
		for _, part := range []string{"", "/events", "/health", "/usage"} {
			m.must(200, "GET", "/sessions/"+id+part, key, "")
		}
	}
	_, metrics := m.page("/metrics")
	texts := map[string]string{"an answer": m.answers.String(), "the log": m.log.String(), "the metrics": metrics}
	for _, name := range []string{"agentproxy.db", "agentproxy.db-wal"} {
		if b, err := os.ReadFile(filepath.Join(m.dir, name)); err == nil {
			texts[name] = string(b)
		}
	}
	for where, text := range texts {
		for _, secret := range secrets {
			if secret == "" {
				m.t.Error("an empty secret was looked for")
			} else if i := strings.Index(text, secret); i >= 0 {
				m.t.Errorf("%s reveals %q: …%q…", where, secret, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}

// noIDs checks that no label of the metrics is the name of one thing.
func (m *sellerService) noIDs(text string, ids ...string) {
	m.t.Helper()
	for _, part := range append(ids, "sess_", "ord_", "agt_") {
		if strings.Contains(text, part) {
			m.t.Errorf("the metrics name %s", part)
		}
	}
}

// carries sends traffic through a session on every path, and checks that the
// usage is what passed on the client's wire. It returns the exits that the
// targets received.
func (m *sellerService) carries(key string, d apiclient.Session) (exits []string) {
	m.t.Helper()
	before := m.session(key, d.SessionID).Usage
	var up, down int64
	for name, by := range paths {
		from, u, n := by(m.t, d)
		if u < int64(len(parcel)) || n < int64(len(parcel)) {
			m.t.Errorf("%s: %d bytes up and %d down for a parcel of %d", name, u, n, len(parcel))
		}
		exits, up, down = append(exits, from), up+u, down+n
	}
	var got apiclient.Session
	within(m.t, soon, "the usage", func() bool {
		got = m.session(key, d.SessionID)
		return got.Usage.Connections == before.Connections+len(paths) && got.Usage.Traffic.UsedBytes-before.Traffic.UsedBytes >= up+down
	})
	if u, n := got.Usage.Traffic.UploadBytes-before.Traffic.UploadBytes, got.Usage.Traffic.DownloadBytes-before.Traffic.DownloadBytes; u != up || n != down {
		m.t.Errorf("charged %d bytes up and %d down, the client's wire had %d and %d", u, n, up, down)
	}
	return exits
}

// keepsAndRotates checks that the exit of a dynamic session stays, and changes by
// rotation alone.
func (m *sellerService) keepsAndRotates(key string, d apiclient.Session) {
	m.t.Helper()
	same := func(exits []string) string {
		for _, e := range exits {
			if addr, err := netip.ParseAddr(e); err != nil || e != exits[0] || !netip.MustParsePrefix("127.128.0.0/9").Contains(addr) {
				m.t.Errorf("the exits are %v, want one of the seller's", exits)
			}
		}
		return exits[0]
	}
	first := same(m.carries(key, d))
	var check struct {
		OK     bool
		ExitIP string `json:"exit_ip"`
	}
	if m.must(200, "POST", "/sessions/"+d.SessionID+"/check", key, "").into(m.t, &check); !check.OK || check.ExitIP != first {
		m.t.Errorf("the check has %+v, the target saw %s", check, first)
	}
	m.must(200, "POST", "/sessions/"+d.SessionID+"/rotate", key, "")
	if second := same(m.carries(key, m.session(key, d.SessionID))); second == first {
		m.t.Errorf("the exit is %s before and after the rotation", first)
	}
}

// stopsAtItsCap uses a session of a megabyte up, and checks that it ends.
func (m *sellerService) stopsAtItsCap(key, product string) {
	m.t.Helper()
	const limit = 1_000_000
	d := m.buy(key, dynamic(product, "0.001"))
	c := passage(m.t, d.Proxy.HTTPURL, pour(m.t, 10*limit))
	if n, err := io.Copy(io.Discard, c); n > limit || err != nil {
		m.t.Errorf("%d bytes of %d were delivered, then %v", n, limit, err)
	}
	within(m.t, soon, "the end of the used session", func() bool { return m.session(key, d.SessionID).Status == "expired" })
	if d = m.session(key, d.SessionID); text(d.StatusReason) != "traffic_exhausted" || d.Usage.Traffic.UsedBytes != limit {
		m.t.Errorf("it ended for %s with %d bytes used", text(d.StatusReason), d.Usage.Traffic.UsedBytes)
	}
}

// ends terminates a session while a tunnel is open, and checks that it is cut and
// that no other one opens.
func (m *sellerService) ends(key string, d apiclient.Session) {
	m.t.Helper()
	c := passage(m.t, d.Proxy.SOCKS5URL, listenSilently(m.t))
	m.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	_ = c.SetDeadline(time.Now().Add(soon))
	if _, err := io.Copy(io.Discard, c); err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			m.t.Error("the tunnel stays open after the session ended")
		}
	}
	u, _ := url.Parse(d.Proxy.HTTPURL)
	if _, _, status, err := connect(u, "127.0.0.1:1"); err != nil || status != http.StatusGone {
		m.t.Errorf("a connection after the end: %d, %v", status, err)
	}
}
