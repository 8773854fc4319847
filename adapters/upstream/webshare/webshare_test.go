package webshare_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/webshare"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
	fake "agentproxy/test/fake/webshare"
	"agentproxy/test/sqlitetest"
)

// world is an account at the fake, and a provider of it.
type world struct {
	t   *testing.T
	s   *fake.Server
	c   webshare.Config
	log strings.Builder

	mu   sync.Mutex
	now  time.Time
	dead map[string]bool
}

func address(n int) string { return fmt.Sprintf("198.51.%d.%d", 100+n/250, 1+n%250) }

func newWorld(t *testing.T, replacements, proxies int) *world {
	t.Helper()
	var all []fake.Proxy
	for n := range proxies {
		all = append(all, fake.ProxyAt(n, address(n), 8000+n, "US"))
	}
	st, err := storage.Open(context.Background(), storage.Config{Path: sqlitetest.File(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w := &world{t: t, s: fake.New(t, replacements, all...), now: time.Now().UTC().Truncate(time.Microsecond), dead: map[string]bool{}}
	w.s.Now = w.time
	w.c = webshare.Config{Common: kind.Common{Name: "web", BaseURL: w.s.URL, PerSecond: 1000, Env: kind.Env{Store: st},
		Log: slog.New(slog.NewTextHandler(&w.log, nil))}, Key: fake.Key, Pool: list.Pool{SoldAs: "static"}, Now: w.time, Probe: w.probe}
	return w
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) probe(_ context.Context, l list.Line) (list.Probe, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[l.Host] {
		return list.Probe{}, errors.New("dead")
	}
	return list.Probe{Exit: netip.MustParseAddr(l.Host)}, nil
}

func (w *world) kill(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[host] = true
}

func (w *world) open() *list.Static {
	w.t.Helper()
	p, err := webshare.New(w.c)
	if err != nil {
		w.t.Fatal(err)
	}
	return p.(*list.Static)
}

func (w *world) keep(p ports.Maintainer) {
	w.t.Helper()
	if err := p.Maintain(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func intent(n int) procurement.Intent {
	return procurement.Intent{Key: fmt.Sprint("ord_", n), Type: session.Static, Quantity: 1, Days: 30, Location: session.Location{Country: "US"}}
}

func TestContract(t *testing.T) {
	t.Parallel()
	contract.Seller(t, func(t *testing.T) contract.Selling {
		w := newWorld(t, 10, 90)
		return contract.Selling{Provider: w.open(), Static: &procurement.Intent{Days: 30, Quantity: 2, Location: session.Location{Country: "US"}}}
	})
}

func TestTheListIsReadPageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 250)
	w.s.Used(12_345_000_000)
	p := w.open()
	w.keep(p)
	got := p.Stock()
	if got["listed"] != 250 || got["plan"] != 250 || got["replacements"] != 3 || got["used_mb"] != 12345 || got["left_mb"] != 37655 {
		t.Errorf("the report is %v", got)
	}
	if n := w.s.Calls("GET /v2/proxy/list/"); n != 4 { // three pages, and what was replaced
		t.Errorf("%d calls of lists", n)
	}
	d, err := p.Order(t.Context(), intent(1))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := d.IPs[0].Endpoint(session.HTTP)
	if !ok || e.Protocol != session.HTTP || e.User != "username" || e.Password != "passw0rd-of-proxies" || e.Trusted || d.IPs[0].Country != "US" {
		t.Errorf("the endpoint is %+v", e)
	}
}

func TestAProxyThatTheSellerReplacedIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, 3)
	p := w.open()
	d, err := p.Order(t.Context(), intent(1))
	if err != nil {
		t.Fatal(err)
	}
	old := d.IPs[0].Host
	w.s.Spare(fake.ProxyAt(10, "203.0.113.10", 9010, "US"), fake.ProxyAt(11, "203.0.113.11", 9011, "US"))
	w.s.Invalidate(old, "auto_invalidated")
	w.s.Invalidate("203.0.113.10", "auto_out_of_rotation")
	w.advance(10 * time.Minute)
	w.keep(p)
	if !strings.Contains(w.log.String(), "reason=auto_invalidated proxy="+old) {
		t.Errorf("the log is %s", w.log.String())
	}
	if d, err = p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Addr.String() != "203.0.113.11" {
		t.Errorf("read: %v, %v", d.IPs, err)
	}
}

func TestASoldProxyThatFailsIsReplacedAtTheSeller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 1)
	w.c.Replace = true
	w.s.Spare(fake.ProxyAt(9, "203.0.113.8", 9008, "DE"), fake.ProxyAt(10, "203.0.113.10", 9010, "US"))
	p := w.open()
	if _, err := p.Order(t.Context(), intent(1)); err != nil {
		t.Fatal(err)
	}
	w.kill(address(0))
	asked := func() int { return w.s.Calls("POST /v3/proxy/replace/") }
	for range 2 {
		w.advance(10 * time.Minute)
		w.keep(p)
	}
	if asked() != 0 {
		t.Fatal("replaced after two failures")
	}
	for range 6 { // it is validated, processed, and then listed
		w.advance(5 * time.Minute)
		w.keep(p)
	}
	if asked() != 1 {
		t.Errorf("%d replacements were asked for", asked())
	}
	if d, err := p.Read(t.Context(), "ord_1"); err != nil || d.IPs[0].Addr.String() != "203.0.113.10" {
		t.Errorf("read: %v, %v", d.IPs, err)
	}
	w.kill("203.0.113.10") // none is left in the plan
	for range 8 {
		w.advance(10 * time.Minute)
		w.keep(p)
	}
	if asked() != 1 {
		t.Errorf("%d replacements were asked for, the plan has one", asked())
	}
}

func TestAReplacementThatFailsIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, 2)
	w.c.Replace = true
	p := w.open()
	for n := range 2 {
		if _, err := p.Order(t.Context(), intent(n)); err != nil {
			t.Fatal(err)
		}
		w.kill(address(n))
	}
	w.s.FailNext("proxies_removed_doesnt_match_added")
	for range 8 {
		w.advance(5 * time.Minute)
		w.keep(p)
	}
	if n := w.s.Calls("POST /v3/proxy/replace/"); n != 1 || !strings.Contains(w.log.String(), "reason=proxies_removed_doesnt_match_added") {
		t.Errorf("%d replacements were asked for: %s", n, w.log.String())
	}
	w.s.FailNext("proxies_removed_doesnt_match_added")
	for range 14 {
		w.advance(5 * time.Minute)
		w.keep(p)
	}
	if n := w.s.Calls("POST /v3/proxy/replace/"); n != 2 {
		t.Errorf("%d replacements were asked for after an hour", n)
	}
}

func TestAfterTooManyCallsAMinutePasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, 1)
	p := w.open()
	w.keep(p)
	calls := func() int { return w.s.Calls("GET /v2/proxy/list/") }
	w.advance(10 * time.Minute)
	w.s.Flood(60) // by another program
	before := calls()
	w.keep(p)
	w.advance(59 * time.Second)
	w.keep(p)
	if calls() != before+1 || !strings.Contains(w.log.String(), "rate_limited") {
		t.Errorf("%d calls within the minute: %s", calls()-before, w.log.String())
	}
	w.advance(time.Second)
	w.keep(p)
	if calls() != before+3 || p.Stock()["listed"] != 1 {
		t.Errorf("%d calls after it, %v", calls()-before, p.Stock())
	}
}

func TestFailuresKeepTheListAndShowNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, 2)
	p := w.open()
	w.keep(p)
	for _, f := range []func(){
		func() { w.s.Next("GET /v2/proxy/list/", "expired") }, func() { w.s.Next("GET /v2/proxy/list/", "failed", "failed", "failed") },
		func() { w.s.Next("GET /v2/proxy/list/", "garbage", "garbage", "garbage") }, func() { w.s.Next("GET /v2/subscription/plan/", "forbidden") },
	} {
		f()
		w.advance(10 * time.Minute)
		w.keep(p)
		if got := p.Stock()["listed"]; got != 2 {
			t.Errorf("%d are listed", got)
		}
	}
	if text := w.log.String(); strings.Contains(text, fake.Key) || strings.Contains(text, "passw0rd") || strings.Count(text, "the last good one stays") < 2 {
		t.Errorf("the log is %s", text)
	}
	w.c.Key = "wrong-key-hunter2"
	_, err := w.open().Order(t.Context(), intent(9))
	if procurement.ClassOf(err) != procurement.Auth || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a wrong key: %v", err)
	}
}

func TestAResidentialPlanIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, 0)
	none := fake.ProxyAt(1, "", 80, "US")
	none.ProxyAddress = nil
	w.s = fake.New(t, 0, none)
	w.c.BaseURL = w.s.URL
	if _, err := w.open().Order(t.Context(), intent(1)); procurement.ClassOf(err) != procurement.Unsupported || !strings.Contains(err.Error(), "gateway profile webshare") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := webshare.Kind.New(kind.Spec{Secrets: map[string]string{"key": "k"}, Options: map[string]string{"plan": "two", "replace": "yes", "sold_as": "both"}}, nil)
	for _, want := range []string{"options.plan must be", "options.replace must be", "options.sold_as must be"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
