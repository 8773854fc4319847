package signin

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
)

// Paths of the pages, which need no sign-in.
const (
	signInPath  = "/sign-in"
	SignOutPath = "/sign-out"
)

// Names of the cookie. Browsers take one that begins with __Host- by TLS and for this host alone; without TLS, as on
// loopback, they do not keep it.
const (
	cookie       = "operator"
	secureCookie = "__Host-operator"
)

// maxForm bounds the body of a form.
const maxForm = 8 << 10

//go:embed pages
var pageFiles embed.FS

func parsePages() ui.Pages {
	files, err := fs.Sub(pageFiles, "pages")
	if err != nil {
		panic("signin: " + err.Error())
	}
	return ui.Parse(files, nil)
}

// Pages returns the pages that sign in and out.
func (g *Gate) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+signInPath, g.signInPage)
	mux.HandleFunc("POST "+signInPath, g.signIn)
	mux.HandleFunc("GET "+signInPath+"/{link}", g.linkPage)
	mux.HandleFunc("POST "+signInPath+"/{link}", g.signInByLink)
	mux.HandleFunc("POST "+SignOutPath, g.signOut)
	mux.HandleFunc("GET /assets/{name}", ui.Assets)
	return ui.Secure(mux)
}

// Patterns are those of Pages, for the mux in front of it.
func Patterns() []string {
	return []string{"GET " + signInPath, "POST " + signInPath, "GET " + signInPath + "/{link}",
		"POST " + signInPath + "/{link}", "POST " + SignOutPath, "GET /assets/{name}"}
}

// Protect serves users alone who may do what a role may, and lets the handler read who it is with Of.
func (g *Gate) Protect(next http.Handler, needs Role) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, err := g.user(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		conns.Of(r.Context()).Trust()
		if !u.May(needs) {
			plain(w, http.StatusForbidden, "the user "+u.Name+" may read the pages alone\n")
			return
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), u)))
	})
}

// user returns who sent a request: by a header, which programs send, or by the cookie of a browser.
func (g *Gate) user(r *http.Request) (User, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		if name, password, ok := r.BasicAuth(); ok {
			return g.check(r.Context(), client(r), name, password)
		}
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return User{}, errWrong
		}
		return g.check(r.Context(), client(r), Operator, strings.TrimSpace(token))
	}
	if u, ok := g.find(tokenOf(r)); ok {
		return u, nil
	}
	return User{}, errNone
}

// errNone is of a request without a credential. It counts as no guess.
var errNone = &domain.Error{Kind: domain.Unauthorized, Code: "SIGN_IN_NEEDED",
	Message: "the operator's listener needs a credential: AGENTPROXY_ADMIN_PASSWORD, or the token that " +
		"`agentproxy admin token` prints, as Bearer or as the password of Basic"}

// refuse answers a request without a right credential: a person is led to the sign-in.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, status := refusal(w, err)
	person := errors.Is(err, errNone) && strings.Contains(r.Header.Get("Accept"), "text/html")
	w.Header().Set("Cache-Control", "no-store")
	if person && r.Method == http.MethodGet {
		to := signInPath
		if r.URL.Path != "/" {
			to += "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	if person {
		g.show(w, status, &ui.Problem{Code: e.Code, Message: "You are not signed in any more. What you sent was not done."},
			form{Next: "/", Users: g.hasUsers(), Name: Operator})
		return
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="agentproxy operator", charset="UTF-8"`)
	}
	plain(w, status, e.Message+"\n")
}

// refusal returns the refusal in an error and its status, after it has set Retry-After.
func refusal(w http.ResponseWriter, err error) (*domain.Error, int) {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok || e.Kind != domain.RateLimited {
		if !ok {
			e = errWrong
		}
		return e, http.StatusUnauthorized
	}
	w.Header().Set("Retry-After", strconv.Itoa(max(int((e.RetryAfter+time.Second-1)/time.Second), 1)))
	return e, http.StatusTooManyRequests
}

// client returns the address of who sent a request. No header decides about it.
func client(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return at.Addr().Unmap()
}

// tokenOf returns the sign-in that a request has; empty: none.
func tokenOf(r *http.Request) string {
	for _, name := range []string{secureCookie, cookie} {
		if c, err := r.Cookie(name); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

// setCookie sets the cookie of a sign-in, for 0 seconds to end it. The Origin header has how the browser reached the
// pages, also behind a reverse proxy.
func setCookie(w http.ResponseWriter, r *http.Request, token string, lifetime time.Duration) {
	c := &http.Cookie{Name: cookie, Value: token, Path: "/", MaxAge: int(lifetime.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
	if strings.HasPrefix(r.Header.Get("Origin"), "https://") {
		c.Name, c.Secure = secureCookie, true
	}
	if lifetime == 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// nextPage returns where to go after the sign-in: a page of this listener.
func nextPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.Contains(text, `\`) || strings.HasPrefix(u.Path, signInPath) {
		return "/"
	}
	return u.RequestURI()
}

// form is what the page shows.
type form struct {
	Next  string
	Link  bool // it signs in by the link of the page
	Users bool // there are users with a name
	Name  string
}

func (g *Gate) show(w http.ResponseWriter, status int, problem *ui.Problem, f form) {
	frame := ui.Frame{Brand: "agentproxy operator", Title: "Sign in", Problem: problem, Data: f}
	if err := g.pages.Render(w, status, "signin", frame); err != nil {
		g.log.Error("the sign-in of the admin listener", "err", err)
		plain(w, http.StatusInternalServerError, "something failed; the log has the cause\n")
	}
}

func (g *Gate) signInPage(w http.ResponseWriter, r *http.Request) {
	g.show(w, http.StatusOK, nil, form{Next: nextPage(r.URL.Query().Get("next")), Users: g.hasUsers(), Name: Operator})
}

// signIn takes a password and sets the cookie.
func (g *Gate) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	name, next := strings.TrimSpace(r.PostFormValue("user")), nextPage(r.PostFormValue("next"))
	u, err := g.check(r.Context(), client(r), name, strings.TrimSpace(r.PostFormValue("password")))
	if err != nil {
		e, status := refusal(w, err)
		message := "Too many wrong passwords. Wait " + w.Header().Get("Retry-After") + " seconds and try again."
		if status == http.StatusUnauthorized {
			message = "The user or the password is wrong."
		}
		f := form{Next: next, Users: g.hasUsers(), Name: Operator}
		g.show(w, status, &ui.Problem{Code: e.Code, Message: message}, f)
		return
	}
	g.enter(w, r, u, next)
}

// enter ends the sign-in that the browser had, and begins a new one.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request, u User, next string) {
	g.end(tokenOf(r))
	conns.Of(r.Context()).Trust()
	setCookie(w, r, g.start(u), Lifetime)
	g.log.Info("signed in at the admin listener", "user", u.Name, "client", client(r).String())
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// linkPage shows a button: what only loads the page, as a preview does, uses no link up.
func (g *Gate) linkPage(w http.ResponseWriter, _ *http.Request) {
	g.show(w, http.StatusOK, nil, form{Link: true})
}

func (g *Gate) signInByLink(w http.ResponseWriter, r *http.Request) {
	if !g.useLink(r.PathValue("link")) {
		g.show(w, http.StatusGone, &ui.Problem{Code: "SIGN_IN_LINK_USED",
			Message: "This link was used, or is older than five minutes. Restart the service for another one, or sign in " +
				"with the token."}, form{Next: "/", Users: g.hasUsers(), Name: Operator})
		return
	}
	g.enter(w, r, User{Operator, Act}, "/")
}

func (g *Gate) signOut(w http.ResponseWriter, r *http.Request) {
	g.end(tokenOf(r))
	setCookie(w, r, "", 0)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}

func plain(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
