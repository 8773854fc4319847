package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
)

// cookieName returns the name of the cookie. Browsers take one that begins with __Host- by TLS
// and for this host alone, so that no other name of the domain can set it.
func (c *Console) cookieName() string {
	if c.cfg.Dev {
		return "console"
	}
	return "__Host-console"
}

// token returns the sign-in that a request carries; empty: none.
func (c *Console) token(r *http.Request) string {
	cookie, err := r.Cookie(c.cookieName())
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (c *Console) setCookie(w http.ResponseWriter, token string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(), Value: token, Path: "/", MaxAge: seconds, HttpOnly: true,
		Secure: !c.cfg.Dev, SameSite: http.SameSiteStrictMode})
}

// askToSignIn redirects to the sign-in page, which redirects back to the requested page.
func (c *Console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if c.token(r) != "" {
		c.setCookie(w, "", -1)
	}
	to := Base + "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != Base+"/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	if r.Header.Get("HX-Request") != "" { // a part of a page that updates itself
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// nextPage returns where to go after the sign-in: a page of this console.
func nextPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Base+"/") ||
		strings.Contains(u.Path, "..") || strings.Contains(text, `\`) {
		return Base + "/"
	}
	return u.RequestURI()
}

func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	c.askKey(w, r.URL.Query().Get("next"), nil, http.StatusOK)
}

// signInData is the form that signs in.
type signInData struct {
	Next     string
	Register bool // people may open accounts themselves
}

// askKey shows the form that signs in.
func (c *Console) askKey(w http.ResponseWriter, next string, problem *ui.Problem, status int) {
	open, _ := c.registration()
	c.showOutside(w, status, "signin", ui.Frame{Title: "Sign in", Problem: problem,
		Data: signInData{nextPage(next), open}})
}

// signIn takes an API key and sets the cookie. Keys that are not known count as those of the API do.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	who := identityOf(r.Context())
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	key, next := strings.TrimSpace(r.PostFormValue("api_key")), r.PostFormValue("next")
	lookedUp := false
	token, _, err := c.Accounts.SignIns.Start(r.Context(), key, func() error {
		if d := c.Limits.WrongKeys().Left(who.client); !d.Allowed {
			return account.ErrRateLimited.Msgf("too many wrong API keys from this address; wait %d seconds",
				seconds(d.RetryAfter)).After(d.RetryAfter)
		}
		lookedUp = true
		return nil
	}, func(caller accounts.Caller) error {
		conns.Of(r.Context()).Trust()
		who.agentID = caller.AgentID
		if d := c.Limits.Take(caller.AgentID, caller.PerMinute); !d.Allowed {
			return account.ErrRateLimited.After(d.RetryAfter)
		}
		return caller.MayAsFree()
	})
	if lookedUp && errors.Is(err, account.ErrInvalidKey) {
		c.Limits.WrongKeys().Record(who.client)
	}
	if err != nil {
		c.refuseSignIn(w, r, next, err)
		return
	}
	c.setCookie(w, token, int(accounts.SignInLifetime.Seconds()))
	http.Redirect(w, r, nextPage(next), http.StatusSeeOther)
}

func (c *Console) refuseSignIn(w http.ResponseWriter, r *http.Request, next string, err error) {
	if errors.Is(err, account.ErrInvalidKey) {
		c.askKey(w, next, &ui.Problem{Code: account.ErrInvalidKey.Code,
			Message: "No account has this API key. Copy all of it: it begins with " + account.APIKeyPrefix + "."},
			http.StatusUnauthorized)
		return
	}
	p, status := (&view{Context: r.Context(), c: c, w: w, r: r}).problem(err)
	c.askKey(w, next, p, status)
}

// signOut ends the sign-in on every replica.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	if err := c.Accounts.SignIns.End(r.Context(), c.token(r)); err != nil {
		c.Log.ErrorContext(r.Context(), "a sign-in was not ended", "err", err)
		identityOf(r.Context()).outage = err
		http.Error(w, "You are still signed in. "+sentence(errInternal.Message), http.StatusServiceUnavailable)
		return
	}
	c.setCookie(w, "", -1)
	http.Redirect(w, r, Base+"/sign-in", http.StatusSeeOther)
}
