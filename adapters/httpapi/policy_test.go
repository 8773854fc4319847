package httpapi_test

import (
	"testing"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, stranger := w.register("Careful"), w.register("Stranger")
	create := func(policy string) string {
		return `{"type":"dynamic","config":{"product_no":"dyn_sync"},"policy":` + policy + `}`
	}
	w.do("POST", "/v1/sessions", create(`{"deny":["example.com","10.0.0.1/8"]}`), a.as).
		want(400).golden("create-session-policy-refused")
	id := w.do("POST", "/v1/sessions", create(`{"mode":"report","ports":[443]}`), a.as).want(201).str("data.session_id")
	path := "/v1/sessions/" + id + "/policy"
	w.do("GET", path, "", a.as).want(200).golden("get-session-policy")
	w.do("PUT", path, `{"deny":[" .Ads.example","bücher.example","192.0.2.0/24",22],"ports":[80,"443","8000-8010"]}`, a.as).
		want(200).golden("set-session-policy")
	w.do("PUT", path, `{"mode":"report","allow":["*.example.com"],"ports":["http"]}`, a.as).
		want(400).golden("set-session-policy-refused")
	if r := w.do("GET", path, "", a.as).want(200); r.str("data.mode") != "enforce" || r.str("data.deny.0") != ".Ads.example" {
		t.Errorf("after a refusal the policy is %s", r.body)
	}
	for _, body := range []string{`{"mode":"sometimes"}`, `{"deny":"example.com"}`, `{"deny":[null]}`, `{"ports":[0]}`, `{"ports":[1.5]}`, `{"dney":[]}`} {
		w.do("PUT", path, body, a.as).want(400)
	}
	w.do("GET", path, "", stranger.as).want(404)
	w.do("PUT", path, `{"mode":"off"}`, stranger.as).want(404)
	flat := `{"session_type":"dynamic","product_no":"dyn_sync","policy":{"allow":[".example.com"]}}`
	id = w.do("POST", "/v1/sessions", flat, a.as).want(201).str("data.session_id")
	if r := w.do("GET", "/v1/sessions/"+id+"/policy", "", a.as).want(200); r.str("data.allow.0") != ".example.com" {
		t.Errorf("bought by the flat form it is %s", r.body)
	}
	w.do("POST", "/v1/sessions/"+id+"/terminate", "", a.as).want(200)
	w.do("PUT", "/v1/sessions/"+id+"/policy", `{"mode":"off"}`, a.as).want(410)
}
