package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"agentproxy/domain/connect"
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
