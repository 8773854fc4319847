package httpapi_test

import (
	"net/http"
	"testing"
)

// Off loopback too a page of another site opens no account and tries no credential from its visitors' addresses. The
// world has no listener, as behind a reverse proxy: its Host is not checked.
func TestOpenOperationsRefuseOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Known")
	w.doc = nil // it has this refusal once, for all operations
	for path, body := range map[string]string{
		"/v1/account/register": `{"name":"a page"}`,
		"/v1/auth/register":    `{"name":"a page"}`,
		"/v1/auth/token":       `{"api_key":"` + a.Key + `","api_secret":"` + a.Secret + `"}`,
	} {
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			w.do("POST", path, body, header("Content-Type", "text/plain"), header(name, value)).refused(403, "CROSS_SITE_REQUEST")
		}
		w.do("POST", path, body, header("Origin", "null")).refused(403, "CROSS_SITE_REQUEST")
		// The console's own pages, a person who types the address, and programs.
		for _, with := range []func(*http.Request){header("Origin", "http://localhost"), header("Sec-Fetch-Site", "same-origin"),
			header("Sec-Fetch-Site", "none"), func(*http.Request) {}} {
			if r := w.do("POST", path, body, with); r.status != 200 && r.status != 201 {
				t.Errorf("%s answers %d", path, r.status)
			}
		}
	}
	// The document is for pages of every site.
	if r := w.do("GET", "/openapi.json", "", header("Origin", "https://viewer.example"), header("Sec-Fetch-Site", "cross-site")).want(200); r.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("the document has %v", r.header)
	}
	// A credential needs a header, which a page cannot send without a permission that is not given.
	w.do("GET", "/v1/account/info", "", a.as, header("Origin", "https://panel.example")).want(200)
}
