package e2e_test

import (
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// through fetches a URL through a proxy with a connection of its own.
func through(t *testing.T, proxy, target string) (int, string) {
	t.Helper()
	p, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: soon,
		Transport: &http.Transport{Proxy: http.ProxyURL(p), DisableKeepAlives: true, DisableCompression: true}}
	resp, err := client.Get(target)
	if err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// exitOf returns the address that the API's echo sees through a proxy.
func (s *service) exitOf(proxy string) string {
	s.t.Helper()
	var status int
	var body string
	within(s.t, soon, "an exit", func() bool { // on a machine with too much to do the gateway may have none in time
		status, body = through(s.t, proxy, "http://"+s.api+"/v1/ip")
		return status != http.StatusServiceUnavailable || !strings.Contains(body, "NO_CAPACITY")
	})
	var e struct{ Data struct{ IP string } }
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != 200 {
		s.t.Fatalf("the echo answers %d %s", status, body)
	}
	return e.Data.IP
}

func TestTheMainJob(t *testing.T) { onEachShared(t, theMainJob) }

func theMainJob(t *testing.T, s *service) {
	key, _ := s.register("journey")
	var products struct {
		Items []struct {
			ProductNo string `json:"product_no"`
		}
	}
	s.must(200, "GET", "/products", key, "").into(t, &products)
	if len(products.Items) != 4 {
		t.Fatalf("%d products, want 4", len(products.Items))
	}

	// An asynchronous dynamic session: 202, a place to poll, and then it works.
	r := s.must(202, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_global_1","traffic_gb":1}}`)
	var dyn apiclient.Session
	r.into(t, &dyn)
	if dyn.Status != "creating" || r.header.Get("Location") != "/v1/sessions/"+dyn.SessionID {
		t.Fatalf("202 with status %s and Location %q", dyn.Status, r.header.Get("Location"))
	}
	within(t, soon, "activation", func() bool { dyn = s.session(key, dyn.SessionID); return dyn.Status == "active" })

	first := s.exitOf(dyn.Proxy.HTTPURL)
	if socks := s.exitOf(dyn.Proxy.SOCKS5URL); socks != first || !strings.HasPrefix(first, "127.") {
		t.Errorf("exits: %s by HTTP, %s by SOCKS5", first, socks)
	}
	var rotated apiclient.Rotate
	s.must(200, "POST", "/sessions/"+dyn.SessionID+"/rotate", key, `{"reason":"http_403"}`).into(t, &rotated)
	if rotated.NewProxy == nil || rotated.NewProxy.FullURL == dyn.Proxy.FullURL {
		t.Fatal("rotate gave no new address")
	}
	// The old address first: a client that ignores the new one rotates as well.
	second := s.exitOf(dyn.Proxy.FullURL)
	if second == first {
		t.Errorf("the exit is %s before and after the rotation", first)
	}
	if by := s.exitOf(rotated.NewProxy.FullURL); by != second {
		t.Errorf("the new address leads to %s, the old one to %s", by, second)
	}

	var reported struct {
		SessionHealth struct {
			RiskLevel      string `json:"risk_level"`
			Recommendation string
		} `json:"session_health"`
	}
	// The gateway's four successes count up to two seconds after they were seen, so they may come between
	// these: six blocks are below 60 in any order.
	for range 6 {
		s.must(200, "POST", "/sessions/"+dyn.SessionID+"/report-event", key, `{"event_type":"block","target_host":"a.example"}`).into(t, &reported)
	}
	if reported.SessionHealth.Recommendation != "rotate_now" {
		t.Errorf("after six blocks the recommendation is %q", reported.SessionHealth.Recommendation)
	}

	var static apiclient.Session
	s.must(201, "POST", "/sessions", key,
		`{"type":"static","config":{"product_no":"sta_isp_1","quantity":2,"duration_days":30,"country":"DE"}}`).into(t, &static)
	if len(static.IPList) != 2 || static.IPList[0].IP == static.IPList[1].IP {
		t.Fatalf("two IPs were bought: %+v", static.IPList)
	}
	for _, ip := range static.IPList {
		if seen := s.exitOf(ip.FullURL); seen != ip.IP {
			t.Errorf("through %s the echo sees %s", ip.IP, seen)
		}
	}
	var renewed apiclient.Session
	s.must(200, "POST", "/sessions/"+static.SessionID+"/renew", key, `{"duration_days":30}`).into(t, &renewed)
	if !renewed.ExpiresAt.Equal(static.ExpiresAt.Add(30 * 24 * time.Hour)) {
		t.Errorf("renewed from %v to %v", static.ExpiresAt, renewed.ExpiresAt)
	}

	s.must(200, "POST", "/sessions/"+dyn.SessionID+"/terminate", key, "")
	s.must(200, "DELETE", "/sessions/"+static.SessionID, key, "")
	s.promised(2*time.Second, "the refund", func() bool { return s.session(key, dyn.SessionID).Cost.Held == "0" })
	dyn = s.session(key, dyn.SessionID)
	s.everyCent(key, dyn)
	s.verify()
}

// everyCent checks that the transactions add up to the balance, and that what
// the dynamic session was charged is what its bytes cost.
func (s *service) everyCent(key string, dyn apiclient.Session) {
	s.t.Helper()
	var balance struct{ Balance, Held json.Number }
	s.must(200, "GET", "/billing/balance", key, "").into(s.t, &balance)
	var list struct {
		Items []struct {
			Type          string
			Amount        json.Number
			ChargedAmount json.Number `json:"charged_amount"`
			SessionID     *string     `json:"session_id"`
		}
	}
	s.must(200, "GET", "/billing/transactions?page_size=100", key, "").into(s.t, &list)
	sum, charged := new(big.Rat), new(big.Rat)
	for _, i := range list.Items {
		sum.Add(sum, rat(s.t, i.Amount))
		if i.Type == "charge" && i.SessionID != nil && *i.SessionID == dyn.SessionID {
			charged.Add(charged, rat(s.t, i.ChargedAmount))
		}
	}
	if sum.Cmp(rat(s.t, balance.Balance)) != 0 {
		s.t.Errorf("the transactions sum to %s, the balance is %s", sum.FloatString(6), balance.Balance)
	}
	if balance.Held != "0" {
		s.t.Errorf("%s is held with no live session", balance.Held)
	}
	micro := dyn.Usage.Traffic.UsedBytes * 250_000 / 1_000_000_000 // 0.25 USD a GB
	if want := big.NewRat(micro, 1_000_000); charged.Cmp(want) != 0 || charged.Cmp(rat(s.t, dyn.Cost.Charged)) != 0 {
		s.t.Errorf("%d bytes were charged %s, shown as %s, want %s", dyn.Usage.Traffic.UsedBytes,
			charged.FloatString(6), dyn.Cost.Charged, want.FloatString(6))
	}
	if dyn.Usage.Traffic.UsedBytes == 0 {
		s.t.Error("no bytes were counted")
	}
}

func rat(t *testing.T, n json.Number) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		t.Fatalf("%q is no number", n)
	}
	return r
}

func TestTerminateCutsOpenTunnels(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("cut")
	stalled := make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-stalled
	}))
	defer target.Close()
	defer close(stalled)
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"session_type":"dynamic","product_no":"dyn_fast_1"}`).into(t, &d)
	proxy, _ := url.Parse(d.Proxy.HTTPURL)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	resp, err := client.Get(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, resp.Body)
		ended.Store(true)
	}()
	// The operator's command runs in another process, which notifies the service.
	if out, err := s.run("agent", "disable", s.agentOf(key), "--reason", "test"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.promised(time.Second, "the tunnel of a disabled account is cut", ended.Load)
	s.promised(time.Second, "a disabled account is refused", func() bool {
		r, err := s.call(t.Context(), "GET", "/account/info", key, "")
		return err == nil && r.status == 403 && r.code() == "ACCOUNT_DISABLED"
	})
	s.verify()
}

// listenSilently starts a server that keeps connections open and sends nothing, and
// returns its address.
func listenSilently(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

func (s *service) agentOf(key string) string {
	s.t.Helper()
	var a struct {
		AgentID string `json:"agent_id"`
	}
	s.must(200, "GET", "/account/info", key, "").into(s.t, &a)
	return a.AgentID
}
