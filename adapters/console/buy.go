package console

import (
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// formCall makes a form take effect once: it carries a key that the page chose. Of a call with the
// same key and other values the second is refused.
func (v *view) formCall() (idempotency.Call, error) {
	key := v.r.PostFormValue("key")
	if len(key) > 64 || !plain(key) {
		return idempotency.Call{}, domain.ErrInvalid.Msgf(
			"the form is incomplete; go back, load the page again and repeat it")
	}
	sum := sha256.Sum256([]byte(v.r.URL.Path + "\n" + v.r.PostForm.Encode()))
	return idempotency.Call{Key: key, Path: v.r.URL.Path, Hash: sum[:]}, nil
}

// sessionCall returns the session of the path and the call of the form.
func (v *view) sessionCall() (id string, call idempotency.Call, err error) {
	if id, err = v.sessionID(); err != nil {
		return id, call, err
	}
	call, err = v.formCall()
	return id, call, err
}

// buyData is the form that buys a session.
type buyData struct {
	Products []catalog.Product
	Product  *catalog.Product // that was chosen
	Regions  map[string]string
	Form     url.Values
	MayBuy   bool
}

func (c *Console) buyPage(v *view) error { return c.showBuy(v, v.r.URL.Query(), nil) }

// showBuy shows the products, and the form of the one that was chosen.
func (c *Console) showBuy(v *view, form url.Values, cause error) error {
	d := buyData{Form: form, Regions: map[string]string{}, MayBuy: v.may(account.SessionsWrite)}
	d.Products = c.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 1000}).Items
	for _, r := range c.Catalog.Regions() {
		d.Regions[r.Code] = r.Name
	}
	title := "Buy a session"
	if no := form.Get("product_no"); no != "" {
		p, err := c.Catalog.Product(no)
		if err != nil {
			return err
		}
		p.Countries = slices.SortedFunc(slices.Values(p.Countries), func(a, b string) int {
			return strings.Compare(d.Regions[a], d.Regions[b])
		})
		d.Product, title = &p, "Buy "+p.Name
	}
	return v.showAgain("buy", v.frame(title, d), cause)
}

// createForm reads the values of the form as the domain checks them.
func (c *Console) createForm(form url.Values) (r session.CreateRequest, err error) {
	p, err := c.Catalog.Product(form.Get("product_no"))
	if err != nil {
		return r, err
	}
	whole := func(name string) *int {
		n := number(form, name, 0)
		if n == nil {
			return nil
		}
		return new(int(*n))
	}
	r = session.CreateRequest{Type: p.Type, ProductNo: p.No, Protocol: session.Protocol(form.Get("protocol")),
		Location: session.Location{Country: form.Get("country"), City: strings.TrimSpace(form.Get("city"))},
		MaxCost:  (*domain.Money)(number(form, "max_cost", 6))}
	if p.Type == session.Static {
		r.Quantity, r.Days = whole("quantity"), whole("duration_days")
		return r, nil
	}
	r.Bytes, r.RotationMode = number(form, "traffic_gb", 9), session.RotationMode(form.Get("rotation_mode"))
	if n := number(form, "rotation_minutes", 3); n != nil && r.RotationMode == session.Timed {
		most := int64(session.MaxInterval/time.Millisecond) + 1
		r.RotationInterval = new(time.Duration(min(*n, most)*60) * time.Millisecond)
	}
	return r, nil
}

// quoteData is what a purchase costs.
type quoteData struct {
	ledger.Quote
	Product *catalog.Product
	Form    []formValue // as it was filled in
	Key     string
	Action  string
	Back    string
}

type formValue struct{ Name, Value string }

// purchaseFields are the values of the form that a purchase depends on.
var purchaseFields = []string{"product_no", "traffic_gb", "quantity", "duration_days", "country", "city", "protocol",
	"rotation_mode", "rotation_minutes"}

func (c *Console) quotePage(v *view) error {
	form := v.r.URL.Query()
	request, err := c.createForm(form)
	if err != nil {
		return err
	}
	err = noComma(form, "traffic_gb", "rotation_minutes")
	var done sessions.Done
	if err == nil {
		done, err = c.Sessions.Create(v, sessions.Create{AgentID: v.caller.AgentID, By: v.caller.Spender(),
			Form: request, DryRun: true})
	}
	if err != nil {
		return c.showBuy(v, form, err)
	}
	p, err := c.Catalog.Product(request.ProductNo)
	if err != nil {
		return err
	}
	d := quoteData{Quote: *done.Quote, Product: &p, Key: c.IDs.New("form_"), Action: Base + "/sessions",
		Back: Base + "/sessions/new?" + form.Encode()}
	for _, name := range purchaseFields {
		if name == "rotation_minutes" && request.RotationInterval == nil {
			continue // the exit does not change by itself
		}
		if value := form.Get(name); value != "" {
			d.Form = append(d.Form, formValue{name, value})
		}
	}
	return v.show(http.StatusOK, "quote", v.frame("Buy "+p.Name+"?", d))
}

// buy buys what was quoted, for that cost at most.
func (c *Console) buy(v *view) error {
	call, err := v.formCall()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	request, err := c.createForm(form)
	if err != nil {
		return err
	}
	done, err := c.Sessions.Create(v, sessions.Create{AgentID: v.caller.AgentID, By: v.caller.Spender(), Form: request,
		Call: call})
	if err != nil {
		return c.showBuy(v, form, err)
	}
	return v.leave("/sessions/"+done.View.ID, "bought")
}

// renewData is the form that extends a static session.
type renewData struct {
	sessions.View
	Days  int
	Terms []catalog.Duration // nil: the product is not sold any more
	Quote *ledger.Quote      // nil: it cannot be renewed at the moment
	Key   string
}

func (c *Console) renewPage(v *view) error {
	return c.showRenew(v, v.r.URL.Query().Get("duration_days"), nil)
}

func (c *Console) showRenew(v *view, days string, cause error) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := renewData{View: s, Days: s.Days, Key: c.IDs.New("form_")}
	if n, err := strconv.Atoi(days); err == nil {
		d.Days = n
	}
	if p, err := c.Catalog.Product(s.ProductNo); err == nil {
		d.Terms = p.Durations
	}
	done, err := c.Sessions.Renew(v, sessions.Renew{AgentID: v.caller.AgentID, By: v.caller.Spender(), SessionID: s.ID,
		Days: strconv.Itoa(d.Days), DryRun: true})
	if err == nil {
		d.Quote = done.Quote
	} else if cause == nil {
		cause = err
	}
	return v.showAgain("renew", v.frame("Renew "+s.ID, d), cause)
}

func (c *Console) renew(v *view) error {
	id, call, err := v.sessionCall()
	if err != nil {
		return err
	}
	in := sessions.Renew{AgentID: v.caller.AgentID, By: v.caller.Spender(), SessionID: id,
		Days: v.r.PostFormValue("duration_days"), Call: call}
	if m, err := domain.ParseMoney(v.r.PostFormValue("max_cost")); err == nil && m > 0 {
		in.MaxCost = &m
	}
	if _, err = c.Sessions.Renew(v, in); err != nil {
		return c.showRenew(v, in.Days, err)
	}
	return v.leave("/sessions/"+id, "renewed")
}
