package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// newKeyData is the form that issues a further key.
type newKeyData struct {
	Scopes []account.Scope // that it can have
	Terms  []int           // days after which it may end
	Form   url.Values
	Limits limitsForm
}

// Limited reports whether a limit was typed.
func (d newKeyData) Limited() bool {
	l := d.Limits
	return l.Narrowed || l.Own || l.Total+l.Daily+l.PerPurchase+l.MaxSessions != ""
}

// Has reports whether a permission is ticked.
func (d newKeyData) Has(s account.Scope) bool {
	for _, chosen := range d.Form["permission"] {
		if chosen == string(s) {
			return true
		}
	}
	return false
}

// keyTerms are the days after which a key may end.
var keyTerms = []int{1, 7, 30, 90, 365}

func (c *Console) newKeyPage(v *view) error { return c.showNewKey(v, url.Values{}, nil) }

func (c *Console) showNewKey(v *view, form url.Values, cause error) error {
	d := newKeyData{Terms: keyTerms, Form: form, Limits: c.limitsOf(form)}
	for _, s := range account.Scopes {
		if v.may(s) {
			d.Scopes = append(d.Scopes, s)
		}
	}
	return v.showAgain("newkey", v.frame("A new API key", d), cause)
}

// createKey issues a key and shows it once. Without a ticked permission it is refused: the use case
// would take all of the caller's.
func (c *Console) createKey(v *view) error {
	form := v.r.PostForm
	limits, err := readLimits(form)
	if err != nil {
		return c.showNewKey(v, form, err)
	}
	in := accounts.NewKey{Name: strings.TrimSpace(form.Get("name")), Limits: limits}
	for _, s := range form["permission"] {
		in.Scopes = append(in.Scopes, account.Scope(s))
	}
	if len(in.Scopes) == 0 {
		return c.showNewKey(v, form, domain.InvalidField("permissions", "must be one at least"))
	}
	if days, err := strconv.Atoi(form.Get("days")); err == nil && days > 0 && days <= 3650 {
		in.Expires = c.Clock.Now().Add(time.Duration(days) * 24 * time.Hour)
	} else if form.Get("days") != "" {
		return c.showNewKey(v, form, domain.InvalidField("days", "must be one of the list"))
	}
	_, text, err := c.Accounts.Keys.Create(v, v.caller, in)
	if err != nil {
		return c.showNewKey(v, form, err)
	}
	return v.showOnce("Your new API key", "API key", text)
}

// onceData is a text that is shown once.
type onceData struct {
	What, Text string
	SignedOut  bool // by what was done
}

func (v *view) showOnce(title, what, text string) error {
	return v.show(http.StatusOK, "secret", v.frame(title, onceData{What: what, Text: text}))
}

// revokeData is the key that a page asks about.
type revokeData struct{ account.Key }

func (c *Console) revokePage(v *view) error {
	list, err := c.Accounts.Keys.List(v, v.caller.AgentID)
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.ID == v.r.PathValue("key_id") {
			return v.show(http.StatusOK, "revoke", v.frame("Revoke "+k.Name+"?", revokeData{k}))
		}
	}
	return account.ErrKeyNotFound
}

// revoke ends a key. Repeating it changes nothing.
func (c *Console) revoke(v *view) error {
	id, err := v.keyID()
	if err == nil {
		err = c.Accounts.Keys.Delete(v, v.caller, id, accounts.Children(v.r.PostFormValue("children")),
			accounts.Fate(v.r.PostFormValue("sessions")))
	}
	if err != nil && !errors.Is(err, account.ErrKeyNotFound) {
		return err
	}
	return v.leave("/access", "revoked")
}

// editAccount changes the name, the address and the description of the account.
func (c *Console) editAccount(v *view) error {
	form := v.r.PostForm
	u := account.Update{Name: new(strings.TrimSpace(form.Get("name"))),
		ContactEmail: new(strings.TrimSpace(form.Get("contact_email"))),
		Description:  new(strings.TrimSpace(strings.ReplaceAll(form.Get("description"), "\r\n", "\n")))}
	if _, err := c.Accounts.Update(v, accounts.Update{AgentID: v.caller.AgentID, Update: u}); err != nil {
		return c.showAccess(v, err)
	}
	return v.leave("/access", "account")
}

// setWebhook sets where events go. The first address comes with the secret that signs them.
func (c *Console) setWebhook(v *view) error {
	u := account.Update{WebhookURL: new(strings.TrimSpace(v.r.PostFormValue("webhook_url")))}
	out, err := c.Accounts.Update(v, accounts.Update{AgentID: v.caller.AgentID, Update: u})
	switch {
	case err != nil:
		return c.showAccess(v, err)
	case out.WebhookSecret != "":
		return v.showOnce("The secret of your webhook", "Webhook secret", out.WebhookSecret)
	}
	return v.leave("/access", "webhook")
}

func (c *Console) rotateHookSecretPage(v *view) error {
	return v.show(http.StatusOK, "rotatehook", v.frame("Rotate the webhook secret?", nil))
}

// rotateHookSecret shows the next secret once. The one before signs too for a day.
func (c *Console) rotateHookSecret(v *view) error {
	err := v.caller.MayChangeCredentials()
	var secret string
	if err == nil {
		secret, _, err = c.Webhooks.RotateSecret(v, v.caller.AgentID)
	}
	if err != nil {
		return c.showAccess(v, err)
	}
	return v.showOnce("The new secret of your webhook", "Webhook secret", secret)
}
