//go:build campaign

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/test/connectproxy"
	"agentproxy/test/freeport"
	"agentproxy/test/natstest"
	"agentproxy/test/pg"
	"agentproxy/test/redistest"
)

// TestAlertsFireAndResolve breaks a service one way after the other, and has a Prometheus server with the rules of
// deploy/prometheus see each: its alert fires, and ends after the mend. Windows and waits of the rules are seconds here.
func TestAlertsFireAndResolve(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("no Prometheus: on Debian apt-get install prometheus")
	}
	database, queue, limits := pg.Start(t), natstest.Start(t), redistest.Start(t)
	seller := &sellerProxy{t: t, address: freeport.Address(t)}
	seller.run()
	dsn := database.Database(t)
	m := open(t, fmt.Sprintf(`
providers:
  - {name: pool, kind: list, options: {file: %q, sold_as: dynamic, country: us}}
products:
  - {code: pool_1, name: Pool, type: dynamic, price: "0.30", trial_credit: true, countries: [US], sources: [{provider: pool}]}
  - {code: own_1, name: Own, type: dynamic, price: "0.30", trial_credit: true, countries: [US], sources: [{provider: embedded}]}
`, writeList(t, seller.address+" US")), append(onPostgres(dsn), "AGENTPROXY_TELEMETRY_URL="+queue.URL(),
		"AGENTPROXY_RATELIMIT_URL="+limits.URL(), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=1000000")...)
	key, _ := m.register("busy")
	own, pool := m.buy(key, dynamic("own_1", "1")), m.buy(key, dynamic("pool_1", "1"))
	l := newLoad(t, m.service, key, own.SessionID, own.Proxy.FullURL, pool.Proxy.FullURL)
	p := startPrometheus(t, m.admin)
	p.metrics = func() string { _, text := m.page("/metrics"); return text }
	p.quiet("before anything is broken")

	nowhere := "http://" + freeport.Address(t)
	// The next proof of everything is due at once.
	unproved := `UPDATE service_values SET value = convert_to(jsonb_set(convert_from(value, 'UTF8')::jsonb, '{proved_at}',
		'"2020-01-01T00:00:00Z"')::text, 'UTF8') WHERE name = 'ledger-proof'`
	tamper := func(by int) func() {
		return func() {
			m.sqlRun(fmt.Sprintf("UPDATE counters SET bytes = bytes + %d WHERE agent_id = (SELECT MIN(agent_id) FROM counters)", by))
		}
	}
	for _, c := range []struct {
		cause        string
		alerts       []string
		break_, mend func()
		again        func() // while it waits
	}{
		{"the seller's proxy is down", []string{"AgentproxyGatewayFails"}, func() { seller.stop() }, seller.run, nil},
		{"Redis is away", []string{"AgentproxyLimitsAlone"}, limits.Stop, limits.Run, nil},
		{"NATS is away", []string{"AgentproxyTelemetryAway"}, queue.Stop, queue.Run, nil},
		{"nothing listens at the target", []string{"AgentproxyDialsFail"},
			func() { l.target.Store(&nowhere) }, func() { l.target.Store(&l.listens) }, nil},
		{"the gateway refuses", []string{"AgentproxyGatewayRefuses"},
			func() { l.policy("nowhere.example") }, func() { l.policy("") }, nil},
		{"a row is tampered with", []string{"AgentproxyLedgerDrift"}, tamper(1), tamper(-1), func() { m.sqlRun(unproved) }},
		{"PostgreSQL is away", []string{"AgentproxyUnavailable", "AgentproxyNotReady"},
			func() { ok(t, database.Stop("fast")) }, func() { ok(t, database.Begin()) }, nil},
		{"the program is killed", []string{"AgentproxyDown"}, m.kill, m.start, nil},
	} {
		began := time.Now()
		c.break_()
		p.until(c.alerts, true, c.cause, c.again)
		fired := time.Since(began)
		c.mend()
		p.until(c.alerts, false, "no more: "+c.cause, c.again)
		t.Logf("%s: %s fired after %.0f s, and ended %.0f s later", c.cause, strings.Join(c.alerts, " and "), fired.Seconds(),
			(time.Since(began) - fired).Seconds())
	}
	p.quiet("after all is mended")
	l.stop()
	m.verify()
}

// sellerProxy is a proxy by CONNECT that can be stopped.
type sellerProxy struct {
	t       *testing.T
	address string
	stop    func()
}

func (p *sellerProxy) run() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.address)
	ok(p.t, err)
	ctx, cut := context.WithCancel(context.Background())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer context.AfterFunc(ctx, func() { _ = up.Close() })()
		connectproxy.Serve(w, up.(*net.TCPConn))
	})}
	go func() { _ = server.Serve(listener) }()
	p.stop = func() {
		_ = server.Close()
		cut() // tunnels too
	}
	p.t.Cleanup(p.stop)
}

// load is what an agent does all the time.
type load struct {
	t         *testing.T
	s         *service
	key, id   string
	listens   string // the URL of a target
	target    atomic.Pointer[string]
	stop      func()
	own, pool *http.Client
}

func newLoad(t *testing.T, s *service, key, id, own, pool string) *load {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(target.Close)
	through := func(proxy string) *http.Client {
		u, err := url.Parse(proxy)
		ok(t, err)
		return &http.Client{Timeout: soon, Transport: &http.Transport{Proxy: http.ProxyURL(u), DisableKeepAlives: true}}
	}
	l := &load{t: t, s: s, key: key, id: id, listens: target.URL, own: through(own), pool: through(pool)}
	l.target.Store(&l.listens)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 4)
	do := func(step func()) {
		for ctx.Err() == nil {
			step()
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		ended <- struct{}{}
	}
	get := func(c *http.Client) func() {
		return func() {
			if resp, err := c.Get(*l.target.Load()); err == nil {
				resp.Body.Close()
			}
		}
	}
	go do(func() { _, _ = s.call(ctx, "GET", "/sessions/"+id, key, "") })
	go do(func() { _, _ = s.call(ctx, "POST", "/sessions/"+id+"/report-event", key, `{"event_type":"success"}`) })
	go do(get(l.own))
	go do(get(l.pool))
	l.stop = func() {
		cancel()
		for range cap(ended) {
			<-ended
		}
	}
	return l
}

// policy lets the sessions of the load reach one host alone, or every host.
func (l *load) policy(host string) {
	l.t.Helper()
	body := fmt.Sprintf(`{"allow":[%q]}`, host)
	if host == "" {
		body = `{}`
	}
	var list struct {
		Items []struct {
			SessionID string `json:"session_id"`
		}
	}
	l.s.must(200, "GET", "/sessions", l.key, "").into(l.t, &list)
	for _, s := range list.Items {
		l.s.must(200, "PUT", "/sessions/"+s.SessionID+"/policy", l.key, body)
	}
}

// prometheus is a server that scrapes a service.
type prometheus struct {
	t       *testing.T
	api     string
	metrics func() string // of the service
}

var (
	shown      = regexp.MustCompile(`^agentproxy_(gateway_requests|gateway_exit_dials|http_requests|ready|ledger_drift)`)
	ruleWindow = regexp.MustCompile(`\[\d+[smhd]\]`)
	ruleRange  = regexp.MustCompile(`\[\d+[smhd]:\d+[smhd]\]`)
	ruleFor    = regexp.MustCompile(`(?m)^(\s+for:) \d+[smhd]$`)
)

// startPrometheus runs a server with the rules, whose windows are 20 seconds.
func startPrometheus(t *testing.T, admin string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	ok(t, err)
	text := ruleWindow.ReplaceAllString(string(rules), "[20s]")
	text = ruleRange.ReplaceAllString(text, "[10m:5s]")
	text = ruleFor.ReplaceAllString(text, "$1 4s")
	file := filepath.Join(dir, "alerts.yml")
	ok(t, os.WriteFile(file, []byte(text), 0o600))
	config := filepath.Join(dir, "prometheus.yml")
	ok(t, os.WriteFile(config, fmt.Appendf(nil, `global: {scrape_interval: 4s, scrape_timeout: 4s, evaluation_interval: 2s}
rule_files: [%s]
scrape_configs:
  - job_name: agentproxy
    basic_auth: {username: operator, password: %s}
    static_configs: [{targets: ['%s']}]
`, file, adminPassword, admin), 0o600))
	p := &prometheus{t: t, api: freeport.Address(t)}
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.api, "--log.level=warn")
	cmd.Stderr = os.Stderr
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	within(t, soon, "Prometheus scrapes the service", func() bool {
		var up struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		return p.get("/api/v1/query?query="+url.QueryEscape(`up{job="agentproxy"}`), &up) && len(up.Data.Result) == 1 &&
			up.Data.Result[0].Value[1] == "1"
	})
	return p
}

func (p *prometheus) get(path string, into any) bool {
	resp, err := http.Get("http://" + p.api + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(into) == nil
}

// firing lists the alerts that fire; known is false if the server did not answer.
func (p *prometheus) firing() (names []string, known bool) {
	var list struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels struct{ Alertname string }
			}
		}
	}
	known = p.get("/api/v1/alerts", &list)
	for _, a := range list.Data.Alerts {
		if a.State == "firing" && !slices.Contains(names, a.Labels.Alertname) {
			names = append(names, a.Labels.Alertname)
		}
	}
	return names, known
}

// until waits until all alerts fire, or none of them.
func (p *prometheus) until(alerts []string, fire bool, what string, again func()) {
	p.t.Helper()
	defer func() {
		if !p.t.Failed() {
			return
		}
		names, _ := p.firing()
		p.t.Logf("%v fire", names)
		for line := range strings.Lines(p.metrics()) {
			if shown.MatchString(line) && !strings.HasSuffix(line, " 0\n") {
				p.t.Log(strings.TrimSpace(line))
			}
		}
	}()
	within(p.t, soon, fmt.Sprintf("%s: %v fire: %v", what, alerts, fire), func() bool {
		if again != nil {
			again()
		}
		names, known := p.firing()
		for _, a := range alerts {
			if slices.Contains(names, a) != fire {
				return false
			}
		}
		return known
	})
}

// quiet waits until no alert fires.
func (p *prometheus) quiet(when string) {
	p.t.Helper()
	within(p.t, soon, "no alert fires "+when, func() bool {
		names, known := p.firing()
		return known && len(names) == 0
	})
}
