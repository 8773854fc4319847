package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentproxy/adapters/apiclient"
	"agentproxy/test/freeport"
)

// What the proxies of failing providers answer to CONNECT; one that answers nothing does not exist.
var failingProviders = map[string]string{"unauthorized": "407 Auth Failed", "unpaid": "402 Payment Required", "busy": "429 Too Many Requests",
	"forbidding": "403 Forbidden", "broken": "502 Bad Gateway", "slow": "504 Gateway Timeout", "gone": ""}

// failingConfig sells traffic of each failing provider, and little traffic of the service's own exits.
func failingConfig(t *testing.T) (config string, env []string) {
	t.Helper()
	var providers, products strings.Builder
	for name, answer := range failingProviders {
		address := freeport.Address(t)
		if answer != "" {
			address = listen(t, func(w io.Writer) { fmt.Fprintf(w, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", answer) })
		}
		_, port, _ := net.SplitHostPort(address)
		secret := strings.ToUpper(name) + "_PASSWORD"
		env = append(env, secret+"=Secret9")
		fmt.Fprintf(&providers, "  - {name: %s, kind: gateway, secrets: {password: {env: %s}}, options: {profile: brightdata, username: hl1, zone: resi, host: 127.0.0.1, port: %s}}\n",
			name, secret, port)
		fmt.Fprintf(&products, "  - {code: %s, name: Traffic, type: dynamic, price: \"3.00\", min_traffic_gb: 0.001, trial_credit: true, sources: [{provider: %s, cost: \"2.00\", countries: [DE, US]}]}\n",
			name, name)
	}
	return "providers:\n" + providers.String() + "products:\n" + products.String() +
		"  - {code: little, name: Little, type: dynamic, price: \"0.30\", min_traffic_gb: 0.001, countries: [US], sources: [{provider: embedded}]}\n", env
}

// failure is one session and the means to fail with it.
type failure struct {
	*testing.T
	*service
	targets
	key, id string
	proxy   *url.URL
}

// met is what a client reports.
type met struct {
	text   string
	status int
	client string
}

// curl fetches through a proxy and returns what it prints of an error.
func (f *failure) curl(proxy, target string, args ...string) met {
	cmd := exec.CommandContext(f.Context(), "curl", append([]string{"-sS", "-o", "/dev/null", "-x", proxy, target}, args...)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		f.Errorf("curl %v through %s works", target, proxy)
	}
	return met{text: string(out), client: "curl"}
}

// getAs sends one with words behind the user name.
func (f *failure) getAs(words, target string) met {
	other := *f
	var err error
	other.proxy, err = url.Parse(f.worker(words))
	succeeds(f.T, err)
	return other.get(target)
}

// worker returns the proxy's address with words behind the user name.
func (f *failure) worker(words string) string {
	u := *f.proxy
	u.User = url.UserPassword(f.proxy.User.Username()+words, f.password())
	return u.String()
}

// get sends a request through the session and returns the answer's status.
func (f *failure) get(target string) met {
	c := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(f.proxy), DisableKeepAlives: true}, Timeout: soon}
	r, err := c.Get(target)
	if err != nil {
		return met{text: err.Error(), client: "go"}
	}
	defer r.Body.Close()
	return met{status: r.StatusCode, client: "go"}
}

// tunnel sends CONNECT by hand and returns the status alone.
func (f *failure) tunnel(target string) met {
	c, _, status, err := connect(f.proxy, target)
	if err != nil {
		f.Error(err)
		return met{}
	}
	c.Close()
	return met{status: status}
}

func (f *failure) address(scheme, user string) string {
	u := url.URL{Scheme: scheme, Host: f.gateway}
	if user == "" {
		return u.String()
	}
	u.User = url.UserPassword(f.proxy.User.Username(), user)
	return u.String()
}

func (f *failure) password() string {
	p, _ := f.proxy.User.Password()
	return p
}

// failures are how requests fail, each with its cause.
var failures = []struct {
	cause   string
	product string // dyn_fast_1 is the default
	fail    func(f *failure) met
}{
	{"wrong_password", "", func(f *failure) met { return f.curl(f.address("http", "wrong"), f.secure) }},
	{"wrong_password", "", func(f *failure) met { return f.curl(f.address("socks5h", "wrong"), f.secure) }},
	{"wrong_password", "", func(f *failure) met {
		f.proxy = &url.URL{Scheme: "http", Host: f.gateway}
		return f.get("http://" + f.plain)
	}},
	{"user_name_wrong", "", func(f *failure) met { return f.curl(f.worker("-colour-red"), f.secure) }},
	{"user_name_wrong", "", func(f *failure) met { return f.getAs("-session-a-session-b", "http://"+f.plain) }},
	{"worker_differs", "", func(f *failure) met {
		f.getAs("-session-d", "http://"+f.plain)
		return f.curl(f.worker("-session-d-strict"), f.secure)
	}},
	{"worker_used_up", "", func(f *failure) met {
		f.must(201, "POST", "/sessions/"+f.id+"/workers", f.key, `{"names":["m"],"max_bytes":1000}`)
		for range 20 {
			if m := f.getAs("-session-m", "http://"+pour200k(f.T)); m.status != 200 {
				return m
			}
		}
		return met{}
	}},
	{"too_many_workers", "", func(f *failure) met {
		f.must(201, "POST", "/sessions/"+f.id+"/workers", f.key, `{"count":1000}`)
		return f.curl(f.worker("-session-more"), f.secure)
	}},
	{"client_address_refused", "", func(f *failure) met {
		f.must(200, "PATCH", "/sessions/"+f.id, f.key, `{"allowed_ips":["192.0.2.0/24"]}`)
		within(f.T, soon, "the addresses", func() bool { return f.tunnel(f.plain).status == 403 })
		return f.curl(f.proxy.String(), f.secure)
	}},
	{"socks_without_password", "", func(f *failure) met {
		m := f.curl(f.address("socks5h", ""), f.secure)
		m.client = "playwright"
		return m
	}},
	{"proxy_scheme_wrong", "", func(f *failure) met { return f.curl(f.address("https", f.password()), f.secure) }},
	{"proxy_unreachable", "", func(f *failure) met { return f.curl("http://"+f.closed, f.secure) }},
	{"proxy_address_wrong", "", func(f *failure) met { return f.curl("http://nothing.invalid:8081", f.secure) }},
	{"name_resolved_by_client", "", func(f *failure) met {
		return f.curl(f.address("socks5", f.password()), "https://nothing.invalid")
	}},
	{"not_a_proxy_request", "", func(f *failure) met { return byHand(f, "GET / HTTP/1.1\r\nHost: x\r\n") }},
	{"head_too_large", "", func(f *failure) met {
		return byHand(f, "GET http://"+f.plain+"/ HTTP/1.1\r\nHost: x\r\nCookie: "+strings.Repeat("a", 40_000)+"\r\n")
	}},
	{"traffic_used_up", "little", func(f *failure) met {
		var m met
		within(f.T, soon, "the end of the traffic", func() bool {
			m = f.get("http://" + pour200k(f.T))
			return m.status != 200 && m.status != 503 // of a busy machine
		})
		return m
	}},
	{"session_over", "", func(f *failure) met {
		f.must(200, "POST", "/sessions/"+f.id+"/terminate", f.key, "")
		return f.curl(f.proxy.String(), f.secure)
	}},
	{"denied_by_own_policy", "", func(f *failure) met {
		f.must(200, "PUT", "/sessions/"+f.id+"/policy", f.key, `{"deny":["localhost"]}`)
		within(f.T, soon, "the rule", func() bool { return f.tunnel(strings.TrimPrefix(f.secure, "https://")).status == 403 })
		return f.curl(f.proxy.String(), f.secure)
	}},
	{"denied_by_operator", "", func(f *failure) met { return f.tunnel("127.0.0.1:25") }},
	{"target_not_public", "", func(f *failure) met { return f.curl(f.proxy.String(), "https://10.1.2.3") }},
	{"target_not_public", "", func(f *failure) met { return f.tunnel(f.gateway) }},
	{"target_rate", "", func(f *failure) met {
		// A verified account has one connection a minute to a target here.
		f.key, _ = f.register("fast")
		f.object("agent", "set-tier", f.agentOf(f.key), "verified", "--evidence", "none")
		f.id = f.dynamic(f.key, "0.1")
		f.proxy = f.proxyAt(f.key, f.id)
		for range 900 {
			if m := f.tunnel("127.0.0.9:1"); m.status == 429 {
				return m
			}
		}
		return met{}
	}},
	{"too_many_connections", "", func(f *failure) met {
		for n := range 257 {
			c, _, status, err := connect(f.proxy, fmt.Sprintf("127.0.0.%d:%s", 20+n%8, f.wide))
			if err != nil || status != 200 {
				return met{status: status}
			}
			f.Cleanup(func() { c.Close() })
		}
		return met{}
	}},
	{"name_not_found", "", func(f *failure) met { return f.curl(f.proxy.String(), "https://nothing.invalid") }},
	{"connection_refused", "", func(f *failure) met { return f.curl(f.proxy.String(), "https://"+f.closed) }},
	{"target_unroutable", "", func(f *failure) met { return f.tunnel("127.255.255.255:80") }}, // a broadcast address
	{"ipv6_target", "", func(f *failure) met { return f.tunnel("[2606:4700::1111]:443") }},
	{"connection_reset", "", func(f *failure) met { return f.curl(f.proxy.String(), "https://"+f.reset) }},
	{"connection_reset", "", func(f *failure) met { return f.get("http://" + f.reset) }},
	{"target_malformed", "", func(f *failure) met { return f.get("http://" + f.garbage) }},
	{"target_timeout", "", func(f *failure) met {
		for limit := 0.5; ; limit *= 2 { // until the tunnel is open when the time is over
			m := f.curl(f.proxy.String(), "https://"+f.silent, "-m", fmt.Sprint(limit), "-w", " answered %{http_connect}")
			if text, opened := strings.CutSuffix(m.text, " answered 200"); opened || f.Failed() {
				m.text = text
				return m
			}
		}
	}},
	{"exit_lost", "gone", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"provider_account", "unauthorized", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"provider_unpaid", "unpaid", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"provider_busy", "busy", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"provider_refuses_target", "forbidding", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"provider_failed", "broken", func(f *failure) met { return f.tunnel(f.plain) }},
	{"provider_timeout", "slow", func(f *failure) met { return f.tunnel(f.plain) }},
	{"captcha", "", func(f *failure) met {
		m := f.get("http://" + f.plain + "/403")
		m.text = "the page has the title Just a moment..."
		return m
	}},
	{"target_blocks", "", func(f *failure) met { return f.get("http://" + f.plain + "/403") }},
	{"target_blocks", "", func(f *failure) met {
		m := f.curl(f.proxy.String(), f.secure+"/403", "-k", "--fail")
		return met{status: 403, text: m.text}
	}},
	{"target_rate_limits", "", func(f *failure) met { return f.get("http://" + f.plain + "/429") }},
	{"target_error", "", func(f *failure) met { return f.get("http://" + f.plain + "/503") }},
	{"not_found", "", func(f *failure) met { return f.get("http://" + f.plain + "/404") }},
	{"certificate_name", "", func(f *failure) met {
		return f.curl(f.proxy.String(), strings.Replace(f.secure, "localhost", "127.0.0.1", 1), "--cacert", f.trust)
	}},
	{"certificate_expired", "", func(f *failure) met { return f.curl(f.proxy.String(), f.expired, "--cacert", f.trustExpired) }},
	{"certificate_untrusted", "", func(f *failure) met { return f.curl(f.proxy.String(), f.secure) }},
	{"connection_cut", "", func(f *failure) met { return f.curl(f.proxy.String(), f.cut, "--cacert", f.trust) }},
	{"target_without_tls", "", func(f *failure) met { return f.curl(f.proxy.String(), "https://"+f.plain) }},
	{"tls_refused", "", func(f *failure) met { return f.curl(f.proxy.String(), f.modern, "-k", "--tls-max", "1.2") }},
	{"not_through_the_proxy", "", func(f *failure) met {
		r, err := http.Get("http://" + f.plain + "/403")
		if err != nil {
			return met{text: err.Error()}
		}
		r.Body.Close()
		return met{status: r.StatusCode, client: "fetch"}
	}},
}

// byHand sends a request with the credential and returns the answer.
func byHand(f *failure, head string) met {
	c, err := net.Dial("tcp", f.gateway)
	if err != nil {
		return met{text: err.Error()}
	}
	defer c.Close()
	fmt.Fprint(c, head+"Proxy-Authorization: "+proxyAuthorization(f.proxy)+"\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(c)
	if len(answer) == 0 {
		return met{text: fmt.Sprint(err)}
	}
	return met{text: string(answer)}
}

// pour200k returns a target that answers 200,000 bytes.
func pour200k(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, zeros{}, 200_000)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestEachFailureHasItsCauseFirst fails in each way by a client and the gateway, and asks for the cause.
func TestEachFailureHasItsCauseFirst(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, "curl", err)
	config, env := failingConfig(t)
	m := open(t, config, append(env, "AGENTPROXY_TARGET_RATE_PER_MINUTE=1", "AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL=300", "AGENTPROXY_LOG_LEVEL=info")...)
	key, _ := m.register("failing")
	sites := failingTargets(t)
	causes := map[string]bool{}
	for _, f := range failures {
		causes[f.cause] = true
	}
	if len(causes) < 30 {
		t.Errorf("there are %d causes", len(causes))
	}
	for n, how := range failures {
		t.Run(fmt.Sprint(n, " ", how.cause), func(t *testing.T) {
			t.Parallel()
			s := *m.service
			s.t = t
			product := "dyn_fast_1"
			gb := "0.1"
			if how.product != "" {
				product, gb = how.product, "0.001"
			}
			var d apiclient.Session
			s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"`+product+`","traffic_gb":`+gb+`}}`).into(t, &d)
			proxy, err := url.Parse(d.Proxy.HTTPURL)
			succeeds(t, err)
			f := &failure{T: t, service: &s, targets: sites, key: key, id: d.SessionID, proxy: proxy}
			seen := how.fail(f)
			diagnosed(t, s.toolsByHTTP(requestEra, withKey{"X-API-Key", f.key}), f.id, how.cause, seen)
		})
	}
}

// TestALostExitIsTheCause takes the exit of a strict worker away from the service.
func TestALostExitIsTheCause(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, "curl", err)
	s := serve(t, pool(11, 12, 13, 14))
	key, _ := s.register("lost")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`).into(t, &d)
	exit := s.workersApart(key, d.SessionID, `{"names":["a"],"strict":true}`)[0]
	s.stop()
	s.env[0] = strings.Replace(s.env[0], exit, "127.0.0.60", 1)
	s.start()
	proxy, err := url.Parse(d.Proxy.HTTPURL)
	succeeds(t, err)
	f := &failure{T: t, service: s, targets: failingTargets(t), key: key, id: d.SessionID, proxy: proxy}
	tools := s.toolsByHTTP(requestEra, withKey{"X-API-Key", key})
	diagnosed(t, tools, d.SessionID, "worker_exit_lost", f.curl(f.worker("-session-a"), f.secure))
}

// diagnosed asks until the feed has what happened, which takes up to two seconds.
func diagnosed(t *testing.T, tools *mcp.ClientSession, session, cause string, seen met) {
	t.Helper()
	args := map[string]any{"session_id": session, "error_text": seen.text, "client": seen.client}
	if seen.status != 0 {
		args["status"] = seen.status
	}
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("%q, status %d: %s", seen.text, seen.status, last)
		}
	}()
	within(t, soon, "the cause "+cause, func() bool {
		a, err := tool(t.Context(), tools, "diagnose", args)
		if errors.Is(err, context.Canceled) || err != nil || a.refused {
			t.Fatalf("%v: %s", err, a.text)
		}
		last = a.text
		first := a.fields["causes"].([]any)[0].(map[string]any)
		return first["cause"] == cause && (first["certainty"] != "possible" || cause == "not_through_the_proxy")
	})
}
