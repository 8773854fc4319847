package diagnose_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/domain/diagnose"
)

var (
	live    = diagnose.Session{Status: "active"}
	opened  = diagnose.Event{Age: time.Second, Source: "gateway", Type: "tunnel", Host: "shop.example", Status: 200, Bytes: 900}
	refused = diagnose.Event{Age: time.Second, Source: "gateway", Type: "failed", Host: "shop.example", Status: 502,
		Code: "TARGET_UNREACHABLE", HowToFix: diagnose.FixRefused + "if they are right, rotate the session or try again later"}
	nameless = diagnose.Event{Age: time.Second, Source: "gateway", Type: "failed", Host: "nothing.invalid", Status: 502,
		Code: "TARGET_UNREACHABLE", HowToFix: diagnose.FixName}
)

// TestTextsOfClients has errors as clients wrote them, and what the feed had.
func TestTextsOfClients(t *testing.T) {
	const requests = "HTTPSConnectionPool(host='localhost', port=28080): Max retries exceeded with url: / (Caused by "
	for _, c := range []struct {
		cause, text, client string
		feed                []diagnose.Event
	}{
		{"wrong_password", requests + `ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407 PROXY_AUTH_REQUIRED: the proxy user name and password are missing or do not belong to a session')))`, "requests", nil},
		{"wrong_password", "407 PROXY_AUTH_REQUIRED: the proxy user name and password are missing or do not belong to a session", "httpx", nil},
		{"wrong_password", "407, message='PROXY_AUTH_REQUIRED: the proxy user name and password are missing or do not belong to a session', url=URL('http://u:wrong@127.0.0.1:28081')", "aiohttp", nil},
		{"wrong_password", "AxiosError: Request failed with status code 407", "axios", nil},
		{"wrong_password", "TypeError: fetch failed Error: Request was cancelled.", "undici", nil},
		{"wrong_password", `Get "https://localhost:1": PROXY_AUTH_REQUIRED: the proxy user name and password are missing or do not belong to a session`, "go", nil},
		{"wrong_password", "page.goto: net::ERR_INVALID_AUTH_CREDENTIALS at https://shop.example/", "playwright", nil},
		{"socks_without_password", "browser.newContext: Browser does not support socks5 proxy authentication", "playwright", nil},
		{"socks_without_password", "page.goto: net::ERR_SOCKS_CONNECTION_FAILED at https://shop.example/", "puppeteer", nil},
		{"connection_refused", requests + `ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 502 TARGET_UNREACHABLE: the target refused the connection')))`, "requests", []diagnose.Event{refused}},
		{"connection_refused", "502, message='TARGET_UNREACHABLE: the target refused the connection', url=URL('http://u:p@127.0.0.1:28081')", "aiohttp", nil},
		{"connection_refused", "AxiosError: Request failed with status code 502", "axios", []diagnose.Event{refused}},
		{"connection_refused", "page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at https://shop.example/", "playwright", []diagnose.Event{refused}},
		{"name_not_found", requests + `ProxyError('Cannot connect to proxy.', OSError("Tunnel connection failed: 502 TARGET_UNREACHABLE: the target's name has no address")))`, "requests", []diagnose.Event{nameless}},
		{"name_not_found", "TypeError: fetch failed Error: Request was cancelled.", "undici", []diagnose.Event{nameless, refused}},
		{"proxy_scheme_wrong", requests + `ProxyError('Your proxy appears to only use HTTP and not HTTPS, try changing your proxy URL to be HTTP.', SSLError(SSLError(1, '[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:992)'))))`, "requests", nil},
		{"proxy_scheme_wrong", "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:992)", "httpx", nil},
		{"proxy_scheme_wrong", "Get \"https://shop.example\": proxyconnect tcp: tls: first record does not look like a TLS handshake", "go", nil},
		{"proxy_scheme_wrong", "Get \"https://shop.example\": proxyconnect tcp: remote error: tls: handshake failure", "go", nil},
		{"proxy_scheme_wrong", "curl: (35) OpenSSL/3.0.19: error:0A000410:SSL routines::sslv3 alert handshake failure", "curl", nil},
		{"target_without_tls", "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:992)", "httpx", []diagnose.Event{opened}},
		{"target_without_tls", "Error: write EPROTO 807C1F1C377F0000:error:0A00010B:SSL routines:ssl3_get_record:wrong version number", "axios", []diagnose.Event{opened}},
		{"proxy_unreachable", requests + `ProxyError('Cannot connect to proxy.', NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f78789eb110>: Failed to establish a new connection: [Errno 111] Connection refused')))`, "requests", nil},
		{"proxy_unreachable", "Cannot connect to host 127.0.0.1:2 ssl:default [Connect call failed ('127.0.0.1', 2)]", "aiohttp", nil},
		{"proxy_unreachable", "Error: connect ECONNREFUSED 127.0.0.1:2", "axios", nil},
		{"proxy_unreachable", `Get "https://localhost:1": proxyconnect tcp: dial tcp 127.0.0.1:2: connect: connection refused`, "go", nil},
		{"proxy_address_wrong", requests + `ProxyError('Cannot connect to proxy.', NewConnectionError('<urllib3.connection.HTTPSConnection object>: Failed to establish a new connection: [Errno -2] Name or service not known')))`, "requests", nil},
		{"proxy_address_wrong", "Error: getaddrinfo ENOTFOUND nothing.invalid", "axios", nil},
		{"proxy_address_wrong", "curl: (5) Could not resolve proxy: nothing.invalid", "curl", nil},
		{"name_resolved_by_client", "curl: (6) Could not resolve host: nothing.invalid", "curl", nil},
		{"certificate_untrusted", `tls: failed to verify certificate: x509: certificate signed by unknown authority`, "go", []diagnose.Event{opened}},
		{"certificate_expired", "Error: certificate has expired CERT_HAS_EXPIRED", "undici", []diagnose.Event{opened}},
		{"certificate_name", "page.goto: net::ERR_CERT_COMMON_NAME_INVALID at https://shop.example/", "playwright", []diagnose.Event{opened}},
		{"target_timeout", "TimeoutError: page.goto: Timeout 30000ms exceeded.", "playwright", []diagnose.Event{opened}},
		{"target_timeout", `Get "https://shop.example": context deadline exceeded`, "go", nil},
		{"connection_cut", "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))", "requests", []diagnose.Event{opened}},
		{"socks4", "curl: (97) connection to proxy closed", "curl", nil},
		{"socks_not_installed", "InvalidSchema('Missing dependencies for SOCKS support.')", "requests", nil},
		{"cause_hidden", "TypeError: fetch failed", "fetch", nil},
		{"wrong_password", "page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at https://shop.example/", "playwright", nil},
		{"captcha", "title: Attention Required! | Cloudflare", "playwright", []diagnose.Event{opened}},
	} {
		causes := diagnose.Causes(diagnose.Observation{Error: c.text, Client: c.client}, live, c.feed)
		if causes[0].Name != c.cause || causes[0].Certainty == diagnose.Possible {
			t.Errorf("%s: %s with %v\n%+v", c.cause, c.text, c.feed, causes)
		}
	}
}

func TestTheFeedDecidesBetweenEqualStatuses(t *testing.T) {
	denied := diagnose.Event{Source: "gateway", Type: "refused", Status: 403, Code: "TARGET_DENIED", HowToFix: diagnose.FixDenied, Host: "a.example"}
	target := diagnose.Event{Source: "gateway", Type: "request", Status: 403, Host: "b.example"}
	at := func(e diagnose.Event, age time.Duration) diagnose.Event { e.Age = age; return e }
	for cause, feed := range map[string][]diagnose.Event{
		"denied_by_operator":    {at(denied, time.Second), at(target, time.Minute)},
		"target_blocks":         {at(target, time.Second), at(denied, time.Minute)},
		"not_through_the_proxy": {at(target, 5*time.Minute)},
	} {
		if causes := diagnose.Causes(diagnose.Observation{Status: 403}, live, feed); causes[0].Name != cause {
			t.Errorf("%s: %+v", cause, causes)
		}
	}
	reported := diagnose.Event{Source: "agent", Type: "captcha", Age: time.Second}
	if causes := diagnose.Causes(diagnose.Observation{Status: 403}, live, []diagnose.Event{reported, at(target, 20*time.Second)}); causes[0].Name != "target_blocks" ||
		causes[1].Name != "captcha" {
		t.Errorf("a reported captcha: %+v", causes)
	}
}

// TestTheTextOutweighsOtherTargets has a client that waited, and a refusal of something else shortly before.
func TestTheTextOutweighsOtherTargets(t *testing.T) {
	denied := diagnose.Event{Age: 20 * time.Second, Source: "gateway", Type: "refused", Status: 403, Code: "TARGET_DENIED",
		HowToFix: diagnose.FixDenied, Host: "a.example"}
	feed := []diagnose.Event{denied}
	seen := diagnose.Observation{Error: "Operation timed out after 6001 milliseconds with 0 bytes received", Client: "curl"}
	if causes := diagnose.Causes(seen, live, feed); causes[0].Name != "target_timeout" {
		t.Errorf("a timeout: %+v", causes)
	}
	for host, want := range map[string]string{"": "denied_by_operator", "a.example:443": "denied_by_operator", "b.example": "unknown"} {
		if causes := diagnose.Causes(diagnose.Observation{Host: host}, live, feed); causes[0].Name != want {
			t.Errorf("of %q: %+v", host, causes)
		}
	}
	timeout := diagnose.Event{Age: time.Second, Source: "gateway", Type: "failed", Status: 504, Code: "TARGET_TIMEOUT", Host: "b.example"}
	if causes := diagnose.Causes(seen, live, []diagnose.Event{timeout, denied}); causes[0].Name != "target_timeout" || causes[0].Certainty != diagnose.Certain {
		t.Errorf("a timeout of the gateway: %+v", causes)
	}
}

func TestStateOfTheSessionComesFirst(t *testing.T) {
	for cause, s := range map[string]diagnose.Session{
		"traffic_used_up":   {Status: "terminated", Reason: "traffic_exhausted"},
		"session_over":      {Status: "expired", Reason: "time_expired"},
		"session_not_ready": {Status: "creating"},
	} {
		causes := diagnose.Causes(diagnose.Observation{Error: "CONNECT tunnel failed, response 502"}, s, []diagnose.Event{refused})
		if causes[0].Name != cause || causes[0].Certainty != diagnose.Certain {
			t.Errorf("%s: %+v", cause, causes)
		}
	}
}

func TestNothingKnown(t *testing.T) {
	old := refused
	old.Age = time.Hour
	causes := diagnose.Causes(diagnose.Observation{Error: "it broke"}, live, []diagnose.Event{old})
	if len(causes) != 1 || causes[0].Name != "unknown" || causes[0].Do == "" || len(causes[0].Evidence) != 1 {
		t.Errorf("%+v", causes)
	}
	odd := diagnose.Event{Age: time.Second, Source: "gateway", Type: "refused", Code: "SOMETHING_NEW", HowToFix: "do this"}
	if causes := diagnose.Causes(diagnose.Observation{}, live, []diagnose.Event{odd}); causes[0].Do != "do this" {
		t.Errorf("%+v", causes)
	}
}

// TestNoCauseRepeatsWhatTheClientPasted gives secrets in everything that a client names.
func TestNoCauseRepeatsWhatTheClientPasted(t *testing.T) {
	const secret = "hunter2hunter2"
	evil := refused
	evil.Host = secret + "@x y"
	for _, text := range []string{"407 for http://u:" + secret + "@h", "TARGET_UNREACHABLE: " + secret, secret} {
		for _, c := range diagnose.Causes(diagnose.Observation{Error: text, Client: secret}, live, []diagnose.Event{evil}) {
			if strings.Contains(c.What+c.Do+strings.Join(c.Evidence, ""), secret) {
				t.Errorf("%+v", c)
			}
		}
	}
}

func FuzzCauses(f *testing.F) {
	f.Add("CONNECT tunnel failed, response 502", 403, "curl", "shop.example:443", "TARGET_DENIED")
	f.Add("HTTP/1.1 999", -1, "", "[::1]:1", "")
	f.Fuzz(func(t *testing.T, text string, status int, client, host, code string) {
		e := refused
		e.Host, e.Code = host, code
		causes := diagnose.Causes(diagnose.Observation{Error: text, Status: status, Client: client}, live, []diagnose.Event{e, opened})
		if len(causes) == 0 || len(causes) > 4 {
			t.Errorf("%d causes", len(causes))
		}
	})
}
