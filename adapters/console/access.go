package console

import (
	"net/http"
	"strings"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/webhooks"
	"agentproxy/domain/account"
	"agentproxy/domain/webhook"
)

// accessData is the page of the account, its keys and its webhook.
type accessData struct {
	accounts.Info
	Now        time.Time
	Keys       []account.Key
	Endpoint   webhooks.EndpointView
	Status     string
	Deliveries []webhook.Delivery
	Pages      pager
	Key        string // of the forms
	MayWrite   bool
}

func (c *Console) access(v *view) error { return c.showAccess(v, nil) }

func (c *Console) showAccess(v *view, cause error) error {
	id := v.caller.AgentID
	d := accessData{Now: c.Clock.Now(), Key: c.IDs.New("form_"), MayWrite: v.may(account.AccountWrite),
		Status: v.r.URL.Query().Get("status")}
	var err error
	if d.Info, err = c.Accounts.Info(v, id); err != nil {
		return err
	}
	if d.Keys, err = c.Accounts.Keys.List(v, id); err != nil {
		return err
	}
	if d.Endpoint, err = c.Webhooks.Endpoint(v, id); err != nil {
		return err
	}
	page := v.pageOf("page")
	list, err := c.Webhooks.Deliveries(v, id, webhook.Status(d.Status), page)
	if err != nil {
		return err
	}
	d.Deliveries, d.Pages = list.Items, v.pager("page", page, list.Total, "deliveries")
	return v.showAgain("access", v.frame("Access", d), cause)
}

func (c *Console) rotateSecretPage(v *view) error {
	return v.show(http.StatusOK, "rotatesecret", v.frame("Rotate the API secret?", nil))
}

// rotateSecret shows the new secret once. Every sign-in ends with the old one, this one included.
func (c *Console) rotateSecret(v *view) error {
	if d := c.Limits.TakeRotation(v.caller.AgentID, v.caller.PerMinute); !d.Allowed {
		return account.ErrRateLimited.Msgf("too many new secrets; wait %d seconds", seconds(d.RetryAfter)).After(d.RetryAfter)
	}
	secret, _, err := c.Accounts.RotateSecret(v, v.caller, strings.TrimSpace(v.r.PostFormValue("api_secret")))
	if err != nil {
		return err
	}
	c.setCookie(v.w, "", -1)
	f := v.frame("Your new API secret", onceData{What: "API secret", Text: secret, SignedOut: true})
	f.Nav, f.Who, f.SignOut = nil, "", ""
	return v.show(http.StatusOK, "secret", f)
}

func (c *Console) testWebhook(v *view) error {
	call, err := v.formCall()
	if err != nil {
		return err
	}
	if _, err := c.Webhooks.TestOnce(v, v.caller.AgentID, call); err != nil {
		return c.showAccess(v, err)
	}
	return v.leave("/access", "tested")
}

func (c *Console) redeliver(v *view) error {
	id := v.r.PathValue("delivery_id")
	if len(id) > 64 || !plain(id) {
		return webhook.ErrNotFound
	}
	call, err := v.formCall()
	if err != nil {
		return err
	}
	if _, err := c.Webhooks.RedeliverOnce(v, v.caller.AgentID, id, call); err != nil {
		return c.showAccess(v, err)
	}
	return v.leave("/access", "redelivered")
}
