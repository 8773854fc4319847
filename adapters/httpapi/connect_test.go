package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"agentproxy/domain/connect"
	"agentproxy/domain/session"
)

func TestConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, stranger := w.register("Connected"), w.register("Stranger")
	id, _ := w.buyNow(a)
	path := "/v1/sessions/" + id + "/connect"
	proxy := w.do("GET", "/v1/sessions/"+id, "", a.as).want(200).str("data.proxy.http_url")
	w.do("GET", path+"?client=playwright&workers=2&country=US", "", a.as).want(200).golden("connect-session")
	for _, name := range connect.Names() {
		r := w.do("GET", path+"?client="+name, "", a.as).want(200)
		if r.str("data.client") != name || r.str("data.proxies.0.http_url") != proxy || strings.Contains(string(r.body), "***") {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	if r := w.do("GET", path, "", a.as).want(200); !strings.Contains(r.str("data.snippet"), "curl --noproxy '' -x '"+proxy+"'") {
		t.Errorf("without a client it is %s", r.body)
	}
	user, err := url.Parse(proxy)
	w.must(err)
	r := w.do("GET", path+"?workers=login_1,b", "", a.as).want(200)
	for i, name := range []string{"login_1", "b"} {
		at := "data.proxies." + string(rune('0'+i))
		parsed, err := url.Parse(r.str(at + ".socks5_url"))
		w.must(err)
		if want := user.User.Username() + "-session-" + name; parsed.User.Username() != want || r.str(at+".username") != want || r.str(at+".worker") != name {
			t.Errorf("the worker %s is %s", name, r.body)
		}
	}
	for _, query := range []string{"client=telnet", "workers=0", "workers=1001", "workers=a,a", "workers=a+b", "country=Germany", "wrkers=2"} {
		w.do("GET", path+"?"+query, "", a.as).refused(400, "INVALID_REQUEST")
	}
	w.do("GET", path, "", stranger.as).refused(404, "SESSION_NOT_FOUND")
	w.do("GET", path, "").refused(401, "AUTH_INVALID_KEY")

	socks := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","protocol":"socks5"}}`, a.as).want(201).str("data.session_id")
	if r := w.do("GET", "/v1/sessions/"+socks+"/connect?client=puppeteer", "", a.as).want(200); strings.Contains(r.str("data.snippet"), "socks5") {
		t.Errorf("a client without SOCKS gets %s", r.body)
	}
	if r := w.do("GET", "/v1/sessions/"+socks+"/connect?client=curl", "", a.as).want(200); !strings.Contains(r.str("data.snippet"), "socks5://") {
		t.Errorf("a client with SOCKS gets %s", r.body)
	}
	static := w.do("POST", "/v1/sessions", oneIP, a.as).want(201).str("data.session_id")
	w.do("GET", "/v1/sessions/"+static+"/connect?client=go", "", a.as).want(200)
	w.do("GET", "/v1/sessions/"+static+"/connect?workers=2", "", a.as).refused(400, "INVALID_REQUEST")
	w.do("GET", "/v1/sessions/"+static+"/connect?country=US", "", a.as).refused(400, "INVALID_REQUEST")
	w.do("POST", "/v1/sessions/"+id+"/terminate", "", a.as).want(200)
	w.do("GET", path, "", a.as).refused(410, "SESSION_EXPIRED")
}

// TestConnectPrefersTLS compares the addresses and snippets of gateways with and without a certificate, and those of
// a seller's own proxy.
func TestConnectPrefersTLS(t *testing.T) {
	t.Parallel()
	for mode := range 3 {
		secure, only := mode > 0, mode > 1
		o := crowded(t, 5)
		o.tls, o.onlyTLS, o.more = secure, only, append(o.more, odd{chained("both"), ""})
		o.sell = append(o.sell, product("dyn_direct", session.Dynamic, true, "both"))
		w := newWorld(t, o)
		a := w.register("Secure")
		check := func(what string, has func(path string) any, at string, secure bool) {
			t.Helper()
			clear, _ := has(at + ".http_url").(string)
			want := any(nil)
			if secure {
				want = strings.Replace(clear, "http://", "https://", 1)
			}
			if got := has(at + ".https_url"); got != want || clear == "" {
				t.Errorf("%s: https_url is %v beside %s, want %v", what, got, clear, want)
			}
		}
		id, _ := w.buyNow(a)
		check("dynamic", w.do("GET", "/v1/sessions/"+id, "", a.as).want(200).at, "data.proxy", secure)
		workers := w.do("POST", w.local(a)+"/workers", `{"count":2}`, a.as).want(201)
		check("worker", workers.at, "data.items.1.proxy", secure)
		fixed := w.do("POST", "/v1/sessions", oneIP, a.as).want(201)
		check("static", fixed.at, "data.proxy", secure)
		check("list", fixed.at, "data.ip_list.0", secure)
		direct := w.do("POST", "/v1/sessions", body("dyn_direct"), a.as).want(201)
		check("direct", direct.at, "data.proxy", false)
		socks := w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","protocol":"socks5"}}`, a.as).want(201)
		check("SOCKS5", socks.at, "data.proxy", secure)

		shows := func(id, query, want string) {
			t.Helper()
			r := w.do("GET", "/v1/sessions/"+id+"/connect?"+query, "", a.as).want(200)
			for _, scheme := range []string{"http", "https", "socks5"} {
				// The address with or without the user name, which begins with the token of the session.
				has := strings.Contains(r.str("data.snippet"), scheme+"://proxy.test:8081") ||
					strings.Contains(r.str("data.snippet"), scheme+"://"+r.str("data.proxies.0.username")[:8])
				if has != (scheme == want) {
					t.Errorf("certificate %v, %s: the snippet uses %s: %v, want %s alone", secure, query, scheme, has, want)
				}
			}
		}
		for _, name := range connect.Names() {
			client, _ := connect.Find(name)
			if name == "selenium" {
				continue
			}
			best := "http"
			if only || secure && client.NoTLS == "" {
				best = "https"
			}
			shows(id, "client="+name, best)
			shows(id, "workers=2&client="+name, best)
			if client.NoSOCKS == "" && !only {
				best = "socks5"
			}
			shows(socks.str("data.session_id"), "client="+name, best)
		}
		own := w.do("GET", "/v1/sessions/"+direct.str("data.session_id")+"/connect?client=undici", "", a.as).want(200)
		if strings.Contains(own.str("data.snippet"), `ProxyAgent("https://`) {
			t.Errorf("a seller's own proxy is reached by TLS: %s", own.body)
		}
		connected := w.do("GET", "/v1/sessions/"+id+"/connect?workers=w1,w2", "", a.as).want(200)
		check("connect", connected.at, "data.proxies.1", secure)
	}
}
