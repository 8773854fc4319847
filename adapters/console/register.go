package console

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
)

// registerData is the form that opens an account.
type registerData struct {
	Form     url.Values
	ByCode   bool // an account needs a referral code
	MayEnter bool // accounts are opened here
}

// registration reports whether people may open accounts themselves, and whether they need a code for it.
func (c *Console) registration() (open, byCode bool) {
	way := accounts.Visitors{Accounts: c.Accounts, Limits: c.Limits}.Registration()
	return way != account.ClosedRegistration, way == account.ReferralRegistration
}

func (c *Console) registerPage(w http.ResponseWriter, r *http.Request) {
	c.showRegister(w, nil, nil, http.StatusOK)
}

func (c *Console) showRegister(w http.ResponseWriter, form url.Values, problem *ui.Problem, status int) {
	d := registerData{Form: form}
	d.MayEnter, d.ByCode = c.registration()
	c.showOutside(w, status, "register", ui.Frame{Title: "Open an account", Problem: problem, Data: d})
}

// showOutside answers a page without a sign-in.
func (c *Console) showOutside(w http.ResponseWriter, status int, name string, f ui.Frame) {
	f.Base, f.Brand, f.Help = Base, c.brand(), helpAt
	if err := c.pages.Render(w, status, name, f); err != nil {
		c.Log.Error("a page failed", "err", err)
		http.Error(w, errInternal.Message, http.StatusInternalServerError)
	}
}

// register opens an account within the limits of the API, and signs in. The credentials are shown once.
func (c *Console) register(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	who := identityOf(r.Context())
	visitors := accounts.Visitors{Accounts: c.Accounts, Limits: c.Limits}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // none is no address of an exit
	admitted, err := visitors.Admit(r.Context(), accounts.Visitor{Addr: who.client,
		Peer: peer.Addr().Unmap().WithZone(""), UserAgent: r.UserAgent()})
	text := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	var out accounts.Registered
	if err == nil {
		out, err = visitors.Register(r.Context(), admitted, accounts.Register{ReferralCode: text("referral_code"),
			Profile: account.Profile{Name: text("name"), ContactEmail: text("contact_email")}})
	}
	if err != nil {
		p, status := (&view{Context: r.Context(), c: c, w: w, r: r}).problem(err)
		c.showRegister(w, r.PostForm, p, status)
		return
	}
	conns.Of(r.Context()).Trust()
	who.agentID = out.Agent.ID
	token, _, err := c.Accounts.SignIns.Start(r.Context(), out.APIKey, func() error { return nil },
		func(accounts.Caller) error { return nil })
	if err == nil { // else they sign in with the key that the page shows
		c.setCookie(w, token, int(accounts.SignInLifetime.Seconds()))
	}
	c.showOutside(w, http.StatusOK, "registered", ui.Frame{Title: "Your account is open", Data: out})
}
