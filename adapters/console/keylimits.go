package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
)

// limitsForm is what restricts a key, as a form shows it.
type limitsForm struct {
	Total, Daily, PerPurchase, MaxSessions string
	Own                                    bool
	Products                               []productChoice
	Narrowed                               bool // a product is chosen
}

// productChoice is a product that a key may be narrowed to.
type productChoice struct {
	No, Name string
	Chosen   bool
}

// limitsOf returns the form of limits. Products that are not sold any more stay in it while they are chosen.
func (c *Console) limitsOf(form url.Values) limitsForm {
	f := limitsForm{Total: form.Get("total"), Daily: form.Get("daily"), PerPurchase: form.Get("per_purchase"),
		MaxSessions: form.Get("max_sessions"), Own: form.Get("own") == "yes"}
	chosen := form["product"]
	for _, p := range c.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 1000}).Items {
		at := slices.Index(chosen, p.No)
		if at >= 0 {
			chosen = slices.Delete(slices.Clone(chosen), at, at+1)
		}
		f.Products = append(f.Products, productChoice{p.No, p.Name, at >= 0})
	}
	for _, no := range chosen {
		f.Products = append(f.Products, productChoice{no, no, true})
	}
	f.Narrowed = len(form["product"]) > 0
	return f
}

// valuesOf returns limits as the fields of a form have them.
func valuesOf(l account.Limits) url.Values {
	form := url.Values{"product": l.Products}
	for name, limit := range map[string]*domain.Money{"total": l.Budget.Total, "daily": l.Budget.Daily,
		"per_purchase": l.Budget.PerPurchase} {
		if limit != nil {
			form.Set(name, limit.String())
		}
	}
	if l.MaxSessions > 0 {
		form.Set("max_sessions", strconv.Itoa(l.MaxSessions))
	}
	if l.Own {
		form.Set("own", "yes")
	}
	return form
}

// readLimits reads the limits of a form. An empty field is no limit; one that is no number, or zero, is out of bounds.
func readLimits(form url.Values) (l account.Limits, err error) {
	err = noComma(form, "total", "daily", "per_purchase", "max_sessions")
	money := func(name string) *domain.Money { return (*domain.Money)(number(form, name, 6)) }
	l.Budget = account.KeyBudget{Total: money("total"), Daily: money("daily"), PerPurchase: money("per_purchase")}
	if n := number(form, "max_sessions", 0); n != nil {
		l.MaxSessions = -1
		if *n > 0 && *n <= account.MaxSessionsOfKey {
			l.MaxSessions = int(*n)
		}
	}
	l.Products, l.Own = form["product"], form.Get("own") == "yes"
	return l, err
}

// keysData is the page of what each key spent.
type keysData struct {
	Now    time.Time
	Keys   []accounts.KeyView
	Chart  ui.Chart
	Others *otherKeys // nil: what is of no key of the list must not be read
	May    bool       // change keys
}

// otherKeys is what sessions cost and hold whose key ended or is not known.
type otherKeys struct{ Spent, Held domain.Money }

// keys shows what each key spent, and what is left of it.
func (c *Console) keys(v *view) (err error) {
	d := keysData{Now: c.Clock.Now(), May: v.may(account.AccountWrite)}
	if d.Keys, err = c.Accounts.Keys.Views(v, v.caller.AgentID); err != nil {
		return err
	}
	v.chargeRead(len(d.Keys))
	var sum otherKeys
	d.Chart = ui.Chart{Title: "Spent by key", Unit: "usd", Names: []string{"Spent"}, Values: [][]float64{{}}}
	column := func(name string, spent domain.Money) {
		d.Chart.Times = append(d.Chart.Times, int64(len(d.Chart.Labels)))
		d.Chart.Labels = append(d.Chart.Labels, name)
		d.Chart.Values[0] = append(d.Chart.Values[0], float64(spent)/float64(domain.Dollar))
	}
	for _, k := range d.Keys {
		column(k.Name, k.Spent)
		sum.Spent, sum.Held = sum.Spent+k.Spent, sum.Held+k.Held
	}
	if v.may(account.BillingRead) {
		b, err := c.Wallet.Balance(v, v.caller.AgentID)
		if err != nil {
			return err
		}
		// What was read a moment later may be less: nothing is below zero.
		d.Others = &otherKeys{max(0, b.Spent-sum.Spent), max(0, b.Held-sum.Held)}
		if d.Others.Spent > 0 {
			column("others", d.Others.Spent)
		}
	}
	return v.show(http.StatusOK, "keys", v.frame("Spending of keys", d))
}

// keyData is the page of one key.
type keyData struct {
	accounts.KeyView
	Form limitsForm
	May  bool // change it
}

// Taken returns what is spent or held of the budget ever, in dollars for a meter.
func (d keyData) Taken() string { return (d.Spent + d.Held).String() }

// keyID returns the key of the path.
func (v *view) keyID() (string, error) {
	id := v.r.PathValue("key_id")
	if len(id) > 64 || !plain(id) {
		return "", account.ErrKeyNotFound
	}
	return id, nil
}

func (c *Console) keyPage(v *view) error { return c.showKey(v, nil, nil) }

// showKey shows a key with its limits, or with what was typed in place of them.
func (c *Console) showKey(v *view, form url.Values, cause error) error {
	id, err := v.keyID()
	if err != nil {
		return err
	}
	list, err := c.Accounts.Keys.Views(v, v.caller.AgentID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(k accounts.KeyView) bool { return k.ID == id })
	if at < 0 {
		return account.ErrKeyNotFound
	}
	if form == nil {
		form = valuesOf(list[at].Limits)
	}
	f := v.frame("Key "+list[at].Name, keyData{list[at], c.limitsOf(form), v.may(account.AccountWrite)})
	return v.showAgain("key", f, cause)
}

// changeKey replaces the limits of a key by those of a form. Repeating it changes nothing.
func (c *Console) changeKey(v *view) error {
	id, err := v.keyID()
	if err != nil {
		return err
	}
	l, err := readLimits(v.r.PostForm)
	if err == nil {
		err = c.Accounts.Keys.Change(v, v.caller, accounts.KeyChange{ID: id, Total: &l.Budget.Total,
			Daily: &l.Budget.Daily, PerPurchase: &l.Budget.PerPurchase, Products: &l.Products,
			MaxSessions: &l.MaxSessions, Own: &l.Own})
	}
	if err != nil {
		return c.showKey(v, v.r.PostForm, err)
	}
	return v.leave("/access/keys/"+id, "key")
}

// keyChoice is a key that a list of sessions is narrowed to.
type keyChoice struct{ ID, Name string }

// keyChoices lists the keys of the account, and the one that was chosen if it ended meanwhile.
func (c *Console) keyChoices(v *view, chosen string) (list []keyChoice, err error) {
	if v.may(account.AccountRead) {
		keys, err := c.Accounts.Keys.List(v, v.caller.AgentID)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			list = append(list, keyChoice{k.ID, k.Name})
		}
	}
	if chosen != "" && !slices.ContainsFunc(list, func(k keyChoice) bool { return k.ID == chosen }) {
		list = append(list, keyChoice{chosen, strings.TrimPrefix(chosen, account.KeyPrefix)})
	}
	return list, nil
}
