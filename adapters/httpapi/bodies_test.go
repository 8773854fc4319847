package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Bodies")
	deep := strings.Repeat(`{"x":`, 40) + "1" + strings.Repeat("}", 40)
	for _, body := range []string{
		" ", "null", "[]", `"x"`, "{", "1", "true", "}", `{"name":"ab"}x`, `{"name":"ab"} {}`, `{"name":"ab",}`, `{name:"ab"}`, `{'name':'ab'}`, `{"name" "ab"}`,
		`{"name":"ab" "x":1}`, `{"name":"ab`, `{"name":"ab\`, `{"name":"a\q"}`, `{"name":"a\u12"}`, `{"name":"a` + "\n" + `b"}`, `{"name":"ab","x":NaN}`, `{"name":"ab","x":Infinity}`,
		`{"name":"ab","x":-Infinity}`, `{"name":"ab","x":1e400}`, `{"name":"ab","x":-1e400}`, `{"name":"ab","x":01}`, `{"name":"ab","x":1.}`, `{"name":"ab","x":.5}`, `{"name":"ab","x":+1}`,
		`{"name":"ab","x":0x10}`, `{"name":"ab","x":1e}`, `{"name":"ab","x":-}`, `{"name":"ab","x":nul}`, `{"name":"ab","x":tru}`, `{"name":"ab","x":[1,]}`, `{"name":"ab","x":[1 2]}`, `{"name":"ab","x":undefined}`,
		"{\"name\":\"a\xffb\"}", "{\"name\":\"a\xc0\xafb\"}", "{\"name\":\"\xed\xa0\x80ab\"}", "{\"na\xffme\":1,\"name\":\"ab\"}", `{"name":"a\u0000b"}`, `{"name":"a\ud800b"}`, `{"name":"a\udc00b"}`,
		`{"name":"a\ud800\ud800b"}`, `{"name":"a\ud83d"}`, `{"x\u0000":1,"name":"ab"}`, "{\"name\":\"a\x00b\"}", `{"name":"ab","x":` + deep + `}`, `{"name":"ab","x":` + strings.Repeat("[", 10_000) + `}`,
		`{"name":"ab","name":"cd"}`, `{"name":"ab","Name":"cd"}`, `{"name":"ab","x":1,"x":2}`, `{"name":"ab","x":1,"X":2}`, `{"name":"ab","n\u0061me":"cd"}`, `{"name":"ab","description":"x","deſcription":"y"}`,
		`{"name":"ab","k":1,"` + "\u212a" + `":2}`, `{"name":"ab","x":{"a":1,"A":2}}`, `{"name":"ab","x":[{"a":1},{"b":1,"b":2}]}`, "\ufeff" + `{"name":"ab"}`,
	} {
		r := w.do("PUT", "/v1/account/info", body, a.as)
		if body == " " { // it may be left out
			r.want(200)
			r = w.do("POST", "/v1/account/register", body)
		}
		if r.status != 400 || r.str("error.code") != "INVALID_REQUEST" {
			t.Errorf("%.80q: %d %.200s", body, r.status, r.body)
		}
	}
	for body, field := range map[string]string{
		`{"name":"ab","name":"cd"}`:                       "name",
		`{"config":{"quantity":1,"quantity":1000}}`:       "config.quantity",
		`{"config":{"rotation":{"mode":"x","MODE":"y"}}}`: "config.rotation.mode",
		`{"x":[0,{"a":1,"a":2}]}`:                         "x[1].a",
	} {
		r := w.do("POST", "/v1/sessions", body, a.as).refused(400, "INVALID_REQUEST")
		if got := r.str("error.details.fields.0.field"); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
	if got := w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance"); got != 10 {
		t.Errorf("balance %v", got)
	}
}

func TestBodiesThatAreTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, body := range []string{
		" \t\r\n{ \"name\" : \"ab\" } \n", `{"n\u0061me":"ab"}`, `{"name":"\u00e9\ud83d\ude00"}`, `{"name":"é😀"}`, `{"name":"ab","x":[1,-0,0.5,1e5,1E-5,true,false,null,{},[],"\"\\\/\b\f\n\r\t"]}`,
		`{"name":"ab","x":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`,
	} {
		w.do("POST", "/v1/account/register", body).want(201)
	}
	t.Run("whatever the Content-Type", func(t *testing.T) {
		for _, ct := range []string{"", "text/plain", "application/xml", "application/json; charset=utf-8", "nonsense"} {
			w.do("POST", "/v1/account/register", `{"name":"ab"}`, header("Content-Type", ct), header("Accept", "text/html")).want(201)
		}
	})
	t.Run("a key in another case is refused", func(t *testing.T) {
		w.do("POST", "/v1/account/register", `{"Name":"ab"}`).refused(400, "INVALID_REQUEST")
		w.do("POST", "/v1/account/register", `{"name":"ab","Referral_Code":"NOPE"}`).refused(400, "INVALID_REQUEST")
		a := w.register("Cases")
		w.do("POST", "/v1/sessions", `{"type":"dynamic","config":{"product_no":"dyn_sync","Traffic_GB":500}}`, a.as).refused(400, "INVALID_REQUEST")
		if got := w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance"); got != 10 {
			t.Errorf("balance %v, want 10", got)
		}
	})
}

func TestBodySizes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Sizes")
	pad := func(n int) string { return `{"name":"ab","x":"` + strings.Repeat("a", n-20) + `"}` }
	unannounced := func(r *http.Request) { r.ContentLength = -1 }
	for _, c := range []struct {
		method, path string
		limit, want  int
		as           func(*http.Request)
	}{
		{"PUT", "/v1/account/info", 1 << 20, 200, a.as},
		{"POST", "/v1/account/register", 16 << 10, 201, func(*http.Request) {}},
	} {
		w.do(c.method, c.path, pad(c.limit), c.as).want(c.want)
		w.do(c.method, c.path, pad(c.limit+1), c.as).refused(413, "PAYLOAD_TOO_LARGE")
		w.do(c.method, c.path, pad(c.limit), unannounced, c.as).want(c.want)
		w.do(c.method, c.path, pad(c.limit+1), unannounced, c.as).refused(413, "PAYLOAD_TOO_LARGE")
		w.do(c.method, c.path, pad(3*c.limit), unannounced, c.as).refused(413, "PAYLOAD_TOO_LARGE")
	}
	w.do("POST", "/v1/auth/token", pad(16<<10+1)).refused(413, "PAYLOAD_TOO_LARGE")

	batch := func(n int) string {
		return `{"events":[{"session_id":"sess_x","event_type":"custom"}],"x":"` + strings.Repeat("a", n-65) + `"}`
	}
	if n := len(batch(2 << 20)); n != 2<<20 {
		t.Fatalf("%d bytes, want %d", n, 2<<20)
	}
	w.do("POST", "/v1/telemetry/batch", batch(2<<20), a.as).want(200)
	w.do("POST", "/v1/telemetry/batch", batch(2<<20+1), a.as).refused(413, "PAYLOAD_TOO_LARGE")

	t.Run("a compressed body is no JSON", func(t *testing.T) {
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, _ = io.CopyN(z, zeros{}, 100<<20)
		_ = z.Close()
		r := w.do("POST", "/v1/account/register", bomb.String(), header("Content-Encoding", "gzip"))
		if r.status != 400 && r.status != 413 {
			t.Errorf("status %d", r.status)
		}
	})
	t.Run("a body that ends too early is 400", func(t *testing.T) {
		w.do("POST", "/v1/account/register", "x", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(`{"name"`), broken{})), 100
		}).refused(400, "INVALID_REQUEST")
	})
	t.Run("a body where none is taken is ignored", func(t *testing.T) {
		w.do("GET", "/v1/sessions", `{"type":"evil"`, a.as).want(200)
		id, _ := w.buyNow(a)
		w.do("POST", "/v1/sessions/"+id+"/terminate", `not json`, a.as).want(200)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
