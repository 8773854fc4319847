package gateway_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/gateway"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/syncbuffer"
)

// found collects what a gateway reports.
type found struct {
	mu   sync.Mutex
	list []gateway.Scan
}

func (f *found) add(s gateway.Scan) { f.mu.Lock(); defer f.mu.Unlock(); f.list = append(f.list, s) }

// take returns what was reported since the last call.
func (f *found) take() []gateway.Scan {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// An agent that tries 300 targets of which most refuse, have no address or are denied by rules of others is reported,
// once, by whatever protocol; one that is denied by its own rules, by limits, or by a fault of a seller, is not.
func TestScansAreReported(t *testing.T) {
	t.Parallel()
	clock, reports, logged := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC), &found{}, &syncbuffer.Buffer{}
	rules := &policy.Shared{Operator: deny(t, ".denied.test"), Trial: onTrial(t, "1", "80", "443")}
	w, r := metered(t, newCore(t), func(s *setup) {
		s.WatchScans, s.Scanned = true, reports.add
		s.Now = func() time.Time { return clock }
		s.Policy = func() *policy.Shared { return rules }
		s.Log = slog.New(slog.NewTextHandler(logged, nil))
		s.Resolver = resolver{}
	})
	refused := func(n int) string { return fmt.Sprintf("127.0.%d.%d:1", 1+n/200, 1+n%200) }
	named := func(n int) string { return fmt.Sprintf("h%d.example:80", n) }
	denied := func(n int) string { return fmt.Sprintf("h%d.denied.test:443", n) }
	private := func(n int) string { return fmt.Sprintf("10.9.%d.%d:443", n/200, n%200) }
	next := 0
	agent := func(trial bool) (id, name string) {
		next++
		name = fmt.Sprint("agt_", next)
		return w.of(name, trial, next), name
	}
	for _, c := range []struct {
		claim  string
		trial  bool
		target func(int) string
		edit   func(*traffic.Route)
		by     func(id, target string) int
		want   bool
	}{
		{"addresses that refuse", true, refused, nil, w.status, true},
		{"an account with own money", false, refused, nil, w.status, true},
		{"names without an address", true, named, nil, w.status, true},
		{"addresses that are not public", true, private, nil, w.status, true},
		{"ports that trials do not reach", true, func(n int) string { return fmt.Sprintf("198.18.%d.%d:25", n/200, n%200) }, nil, w.status, true},
		{"plain requests", true, named, nil, func(id, target string) int {
			res, err := w.client(id).Get("http://" + target)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}, true},
		{"SOCKS5", true, named, nil, func(id, target string) int {
			host, _, _ := strings.Cut(target, ":")
			return 400 + int(w.socksReply(id, host, "80"))
		}, true},
		{"one name in one domain", true, denied, nil, w.status, false},
		{"its own rules", true, named, func(r *traffic.Route) { r.Policy = deny(t, "80") }, w.status, false},
		{"a seller that fails", true, refused, func(r *traffic.Route) {
			r.Upstreams, r.Exits = []procurement.Endpoint{{Host: "127.0.0.1", Port: 1, Protocol: session.HTTP}}, make([]session.Exit, 1)
		}, w.status, false},
	} {
		id, name := agent(c.trial)
		if c.edit != nil {
			w.change(id, c.edit)
		}
		for n := range 310 {
			if status := c.by(id, c.target(n)); status == http.StatusOK {
				t.Fatalf("%s: target %d is reached", c.claim, n)
			}
		}
		got := reports.take()
		if c.want != (len(got) == 1 && got[0] == gateway.Scan{Agent: name, Trial: c.trial, Targets: 300, Failed: 300}) || !c.want && len(got) > 0 {
			t.Errorf("%s: reported %+v", c.claim, got)
		}
		if c.want && !strings.Contains(logged.String(), "agent_id="+name+" ") {
			t.Errorf("%s: the log has not %s", c.claim, name)
		}
	}
	s := scrape(t, r)
	if trial, funded := s.value("agentproxy_gateway_scans_total,account=trial"), s.value("agentproxy_gateway_scans_total,account=funded"); trial != 6 ||
		funded != 1 {
		t.Errorf("%v scans of trials and %v of others are counted", trial, funded)
	}
}

// Who reaches a quarter of its targets is not reported.
func TestWhatIsNoScan(t *testing.T) {
	t.Parallel()
	reports := &found{}
	w := begin(t, newCore(t), func(s *setup) { s.WatchScans, s.Scanned, s.Resolver = true, reports.add, resolver{} })
	id, port := w.of("agt_1", true, 1), everywhere(t)
	for n := range 310 {
		target := fmt.Sprintf("127.0.%d.%d:%s", 1+n/200, 1+n%200, port)
		if n%4 > 0 { // three in four fail
			target = fmt.Sprintf("h%d.example:80", n)
		}
		if got := w.status(id, target); (got == 200) != (n%4 == 0) {
			t.Fatalf("%s: %d", target, got)
		}
	}
	if got := reports.take(); len(got) > 0 {
		t.Errorf("reported %+v", got)
	}
}
