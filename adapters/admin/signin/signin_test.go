package signin_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/admin/signin"
	"agentproxy/test/fake"
	"agentproxy/test/syncbuffer"
)

// Credentials of these tests. The parameters of the hash are the least that are taken.
const (
	token    = "0123456789abcdefghijklmnopqrstuvwxyz0123456"
	secret   = "the operator's own password"
	password = "correct horse battery"
	phc      = "$argon2id$v=19$m=7168,t=5,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
)

// world is a listener with two users.
type world struct {
	t     *testing.T
	clock *fake.Clock
	gate  *signin.Gate
	log   *syncbuffer.Buffer
	serve http.Handler
}

// users returns users from lines of a file.
func users(t *testing.T, lines ...string) signin.Users {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := signin.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// lines are those of the users ann, who acts, and rob, who reads. Hashing takes time, so they are made once.
var lines = sync.OnceValue(func() (list []string) {
	for _, u := range []struct {
		name string
		role signin.Role
	}{{"ann", signin.Act}, {"rob", signin.Read}} {
		line, err := signin.Line(u.name, u.role, password)
		if err != nil {
			panic(err)
		}
		list = append(list, line)
	}
	return list
})

func open(t *testing.T, cfg signin.Config) *world {
	t.Helper()
	w := &world{t: t, clock: fake.NewClock(), log: &syncbuffer.Buffer{}}
	w.gate = signin.New(cfg, w.clock, slog.New(slog.NewTextHandler(w.log, nil)))
	mux := http.NewServeMux()
	for _, p := range signin.Patterns() {
		mux.Handle(p, w.gate.Pages())
	}
	mux.Handle("/", w.gate.Protect(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s may %s", signin.Of(r.Context()).Name, signin.Of(r.Context()).Role)
	}), signin.Read))
	mux.Handle("/act", w.gate.Protect(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "done") }), signin.Act))
	w.serve = mux
	return w
}

// do sends a request.
func (w *world) do(method, path string, form url.Values, with ...func(*http.Request)) *httptest.ResponseRecorder {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://127.0.0.1:8082"+path, body)
	r.RemoteAddr = "127.0.0.1:4711"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range with {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.serve.ServeHTTP(rec, r)
	return rec
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func basic(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr + ":4711" }
}

// cookieOf returns the cookie of an answer; nil: none.
func cookieOf(rec *httptest.ResponseRecorder) *http.Cookie {
	for _, c := range rec.Result().Cookies() {
		return c
	}
	return nil
}

func with(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

// expect compares an answer's status and body.
func (w *world) expect(what string, rec *httptest.ResponseRecorder, status int, body string) {
	w.t.Helper()
	if rec.Code != status || !strings.Contains(rec.Body.String(), body) {
		w.t.Errorf("%s: %d %q, want %d %q", what, rec.Code, rec.Body, status, body)
	}
}

// enter signs a browser in.
func (w *world) enter(name, password string, with ...func(*http.Request)) *http.Cookie {
	w.t.Helper()
	rec := w.do("POST", "/sign-in", url.Values{"user": {name}, "password": {password}, "next": {"/agents?page=2"}}, with...)
	c := cookieOf(rec)
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/agents?page=2" || c == nil {
		w.t.Fatalf("the sign-in of %s: %d %v", name, rec.Code, rec.Header())
	}
	return c
}

func TestProgramsSignInByAHeader(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: secret, Users: users(t, append([]string{"# the team", ""}, lines()...)...)})
	for _, c := range []struct {
		what   string
		with   func(*http.Request)
		status int
		body   string
	}{
		{"Bearer", header("Authorization", "Bearer "+secret), 200, "operator may act"},
		{"bearer", header("Authorization", "bearer  "+secret), 200, "operator may act"},
		{"Basic", basic("operator", secret), 200, "operator may act"},
		{"Basic without a name", basic("", secret), 200, "operator may act"},
		{"a user", basic("ann", password), 200, "ann may act"},
		{"the same again", basic("ann", password), 200, "ann may act"},
		{"a reader", basic("rob", password), 200, "rob may read"},
		{"another's password", basic("ann", secret), 401, "not a credential"},
		{"a user's password as the operator's", basic("operator", password), 401, "not a credential"},
		{"a user's password as a token", header("Authorization", "Bearer "+password), 401, "not a credential"},
		{"no such user", basic("mallory", password), 401, "not a credential"},
		{"a long name", basic(strings.Repeat("n", 5000), password), 401, "not a credential"},
		{"a long password", basic("ann", strings.Repeat("p", 5000)), 401, "not a credential"},
		{"no password", basic("operator", ""), 401, "not a credential"},
		{"a password in another case", basic("operator", strings.ToUpper(secret)), 401, "not a credential"},
		{"another scheme", header("Authorization", "Digest "+secret), 401, "not a credential"},
		{"nothing", func(*http.Request) {}, 401, "AGENTPROXY_ADMIN_PASSWORD"},
	} {
		rec := w.do("GET", "/agents", nil, c.with)
		w.expect(c.what, rec, c.status, c.body)
		if asks := strings.HasPrefix(rec.Header().Get("WWW-Authenticate"), "Basic "); asks != (c.status == 401) {
			t.Errorf("%s: it asks for Basic: %v", c.what, asks)
		}
	}
	w.expect("a reader who acts", w.do("POST", "/act", nil, basic("rob", password)), 403, "may read the pages alone")
	w.expect("a user who acts", w.do("POST", "/act", nil, basic("ann", password)), 200, "done")
	empty := open(t, signin.Config{})
	for _, with := range []func(*http.Request){basic("operator", ""), header("Authorization", "Bearer "), basic("", ""), func(*http.Request) {}} {
		empty.expect("without a secret", empty.do("GET", "/", nil, with), 401, "")
	}
	for _, text := range []string{secret, password, strings.ToUpper(secret), "mallory"} {
		if strings.Contains(w.log.String(), text) {
			t.Errorf("the log has %q:\n%s", text, w.log)
		}
	}
}

func TestABrowserSignsInAndOut(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: secret, Users: users(t, lines()...)})
	rec := w.do("GET", "/agents?page=2", nil, header("Accept", "text/html,*/*"))
	if to := rec.Header().Get("Location"); rec.Code != http.StatusSeeOther || to != "/sign-in?next=%2Fagents%3Fpage%3D2" {
		t.Errorf("a person is led to %s with %d", to, rec.Code)
	}
	page := w.do("GET", "/sign-in?next=%2Fagents%3Fpage%3D2", nil)
	w.expect("the page", page, 200, `value="/agents?page=2"`)
	if !strings.Contains(page.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") || page.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the page has %v", page.Header())
	}
	first := w.enter("ann", password, header("Origin", "http://127.0.0.1:8082"))
	if first.Name != "operator" || !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || first.Secure || first.Path != "/" || first.MaxAge != 12*3600 ||
		strings.Contains(first.Value, password) {
		t.Errorf("without TLS the cookie is %+v", first)
	}
	tls := w.enter("operator", secret, func(r *http.Request) { r.Host = "admin.example"; r.Header.Set("Origin", "https://admin.example") })
	if tls.Name != "__Host-operator" || !tls.Secure || !tls.HttpOnly || tls.SameSite != http.SameSiteStrictMode || tls.Domain != "" {
		t.Errorf("with TLS the cookie is %+v", tls)
	}
	w.expect("a page", w.do("GET", "/agents", nil, with(first)), 200, "ann may act")
	w.expect("with TLS", w.do("GET", "/agents", nil, with(tls)), 200, "operator may act")

	again := w.enter("rob", password, with(first))
	if again.Value == first.Value {
		t.Error("the second sign-in has the token of the first")
	}
	w.expect("the sign-in that was replaced", w.do("GET", "/", nil, with(first)), 401, "")
	w.expect("a form after its end", w.do("POST", "/act", url.Values{}, with(first), header("Accept", "text/html")), 401, "not signed in any more")
	w.expect("the new one", w.do("GET", "/", nil, with(again)), 200, "rob may read")
	out := w.do("POST", "/sign-out", url.Values{}, with(again), header("Origin", "http://127.0.0.1:8082"))
	if c := cookieOf(out); out.Code != http.StatusSeeOther || c == nil || c.MaxAge >= 0 {
		t.Errorf("the end answers %d %v", out.Code, out.Header())
	}
	w.expect("after the end", w.do("GET", "/", nil, with(again)), 401, "")

	last := w.enter("ann", password)
	w.clock.Advance(signin.Lifetime)
	w.expect("after 12 hours", w.do("GET", "/", nil, with(last)), 401, "")
	for _, bad := range []string{"", "x", token, last.Value + "x", last.Value[1:]} {
		w.expect("a made up cookie", w.do("GET", "/", nil, with(&http.Cookie{Name: "operator", Value: bad})), 401, "")
	}
	if !strings.Contains(w.log.String(), "user=ann") || strings.Contains(w.log.String(), last.Value) {
		t.Errorf("the log is\n%s", w.log)
	}
}

func TestTheSignInLeadsToItsOwnPagesAlone(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: token, Token: true})
	for next, want := range map[string]string{"/agents?page=2": "/agents?page=2", "": "/", "https://evil.test/": "/", "//evil.test/": "/", "///evil.test": "/",
		`/\evil.test`: "/", "javascript:alert(1)": "/", "agents": "/", "/sign-in/x": "/", "https:evil.test": "/", "/%2fevil.test": "/",
		"/a\r\nX: y": "/", "//user@evil.test": "/"} {
		rec := w.do("POST", "/sign-in", url.Values{"password": {" " + token + "\n"}, "next": {next}})
		if got := rec.Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// A user who is gone, or has another password or role, is so at once.
func TestReplacedUsers(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: token, Token: true, Users: users(t, lines()...)})
	ann, rob, operator := w.enter("ann", password), w.enter("rob", password), w.enter("operator", token)
	hash := strings.SplitN(lines()[0], ":", 3)[2]
	w.gate.Replace(users(t, "ann:read:"+hash))
	w.expect("another role", w.do("GET", "/", nil, with(ann)), 200, "ann may read")
	w.expect("another role", w.do("POST", "/act", nil, with(ann)), 403, "")
	w.expect("a user who is gone", w.do("GET", "/", nil, with(rob)), 401, "")
	w.expect("a user who is gone", w.do("GET", "/", nil, basic("rob", password)), 401, "")
	w.gate.Replace(users(t, "ann:act:"+strings.SplitN(lines()[1], ":", 3)[2]))
	w.expect("another hash", w.do("GET", "/", nil, with(ann)), 401, "")
	w.gate.Replace(signin.Users{})
	w.expect("the operator", w.do("GET", "/", nil, with(operator)), 200, "operator may act")
	w.expect("no users", w.do("GET", "/", nil, basic("ann", password)), 401, "")
}

func TestALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: token, Token: true})
	for range 3 { // a preview uses nothing up
		w.expect("the page of the link", w.do("GET", w.gate.Link(), nil), 200, "once")
	}
	path := w.gate.Link()
	w.expect("another site", w.do("POST", path, url.Values{}, header("Sec-Fetch-Site", "cross-site")), 403, "")
	rec := w.do("POST", path, url.Values{})
	c := cookieOf(rec)
	if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/" || c == nil {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	w.expect("signed in", w.do("GET", "/", nil, with(c)), 200, "operator may act")
	w.expect("the second use", w.do("POST", path, url.Values{}), 410, "older than five minutes")
	late := w.gate.Link()
	w.clock.Advance(5 * time.Minute)
	w.expect("a late use", w.do("POST", late, url.Values{}), 410, "older than five minutes")
	for _, bad := range []string{"/sign-in/", "/sign-in/x"} {
		if rec := w.do("POST", bad, url.Values{}); rec.Code != 410 && rec.Code != 401 || cookieOf(rec) != nil {
			t.Errorf("%s: %d", bad, rec.Code)
		}
	}
	if text := w.log.String(); strings.Contains(text, path) || strings.Contains(text, strings.TrimPrefix(path, "/sign-in/")) {
		t.Errorf("the log has the link:\n%s", text)
	}
}

func TestFormsOfOtherSitesNeitherSignInNorOut(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: token, Token: true})
	c := w.enter("operator", token)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.test"} {
		for _, path := range []string{"/sign-in", "/sign-out"} {
			rec := w.do("POST", path, url.Values{"password": {token}}, with(c), header(name, value))
			if rec.Code != http.StatusForbidden || cookieOf(rec) != nil {
				t.Errorf("%s with %s: %d", path, name, rec.Code)
			}
		}
	}
	w.expect("still signed in", w.do("GET", "/", nil, with(c)), 200, "operator")
}

// Guesses are bounded for an address and for all, a right password is not checked beyond the bound, and a browser
// that is signed in, another address and the token are kept out by none of them.
func TestGuessesAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: secret})
	c := w.enter("operator", secret)
	guess := func(addr string) int { return w.do("GET", "/", nil, basic("operator", "a guess"), from(addr)).Code }
	for i := range 30 {
		if code := guess("192.0.2.1"); code != 401 {
			t.Fatalf("guess %d: %d", i, code)
		}
	}
	rec := w.do("GET", "/", nil, basic("operator", "a guess"), from("192.0.2.1"))
	if after, err := strconv.Atoi(rec.Header().Get("Retry-After")); rec.Code != 429 || err != nil || after < 1 || after > 60 {
		t.Errorf("the next guess: %d %v", rec.Code, rec.Header())
	}
	w.expect("a right one is no answer", w.do("GET", "/", nil, basic("operator", secret), from("192.0.2.1")), 429, "")
	w.expect("nor on the page", w.do("POST", "/sign-in", url.Values{"password": {secret}}, from("192.0.2.1")), 429, "Wait ")
	w.expect("who is signed in", w.do("GET", "/", nil, with(c), from("192.0.2.1")), 200, "operator")
	w.expect("another address", w.do("GET", "/", nil, basic("operator", secret), from("192.0.2.2")), 200, "operator")
	for range 31 {
		guess("[2001:db8::1]")
	}
	w.expect("the same /64", w.do("GET", "/", nil, basic("operator", secret), from("[2001:db8::2]")), 429, "")
	w.expect("another /64", w.do("GET", "/", nil, basic("operator", secret), from("[2001:db8:0:1::2]")), 200, "")
	w.clock.Advance(time.Minute)
	w.expect("a minute later", w.do("GET", "/", nil, basic("operator", secret), from("192.0.2.1")), 200, "operator")

	refused := 0
	for i := range 400 { // one of each address
		if guess(fmt.Sprintf("198.51.%d.%d", i/250, i%250)) == 429 {
			refused++
		}
	}
	if refused != 100 {
		t.Errorf("of 400 guesses of as many addresses %d were refused", refused)
	}
	w.clock.Advance(time.Minute)
	for range 3 { // what was counted is forgotten
		for i := range 400 {
			guess(fmt.Sprintf("198.51.%d.%d", i/250, i%250))
		}
		w.clock.Advance(time.Minute)
	}
	w.expect("in the end", w.do("GET", "/", nil, basic("operator", secret), from("198.51.0.1")), 200, "operator")
	if n := strings.Count(w.log.String(), "was refused"); n > 30+30+31+5*300 {
		t.Errorf("the log has %d lines of guesses", n)
	}

	team := open(t, signin.Config{Secret: secret, Users: users(t, lines()...)})
	team.expect("a user", team.do("GET", "/", nil, basic("ann", password)), 200, "ann")
	for range 30 {
		team.do("GET", "/", nil, basic("operator", "a guess"))
	}
	team.expect("a password that was right before", team.do("GET", "/", nil, basic("ann", password)), 429, "")

	tokens := open(t, signin.Config{Secret: token, Token: true})
	for range 100 {
		tokens.do("GET", "/", nil, header("Authorization", "Bearer "+token[1:]+"x"))
	}
	tokens.expect("a guess", tokens.do("GET", "/", nil, header("Authorization", "Bearer x")), 429, "")
	tokens.expect("the token", tokens.do("GET", "/", nil, header("Authorization", "Bearer "+token)), 200, "operator")
	tokens.enter("operator", token)
}

// Guesses at the same time pass no bound together, and few hashes are computed at once.
func TestGuessesAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: secret, Users: users(t, "ann:act:"+phc+"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")})
	var wg sync.WaitGroup
	var checked, refused atomic.Int32
	for i := range 120 {
		name := []string{"operator", "ann", "mallory"}[i%3]
		wg.Go(func() {
			switch rec := w.do("GET", "/", nil, basic(name, fmt.Sprint("guess ", i))); rec.Code {
			case 401:
				checked.Add(1)
			case 429:
				refused.Add(1)
			default:
				t.Errorf("%s: %d", name, rec.Code)
			}
		})
	}
	wg.Wait()
	if checked.Load() != 30 || refused.Load() != 90 {
		t.Errorf("%d guesses were checked and %d refused", checked.Load(), refused.Load())
	}
}

// The sign-ins that are held are bounded: the one that would end first makes room.
func TestSignInsAreBounded(t *testing.T) {
	t.Parallel()
	w := open(t, signin.Config{Secret: token, Token: true})
	first := w.enter("operator", token)
	w.clock.Advance(time.Second)
	second := w.enter("operator", token)
	w.clock.Advance(time.Second)
	for range 999 {
		w.enter("operator", token)
	}
	w.expect("the first", w.do("GET", "/", nil, with(first)), 401, "")
	w.expect("the second", w.do("GET", "/", nil, with(second)), 200, "operator")
}
