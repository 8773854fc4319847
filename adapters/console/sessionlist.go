package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"agentproxy/app/overview"
	"agentproxy/app/sessions"
	"agentproxy/app/settlement"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// search is what a list of sessions is narrowed to and how it is sorted, as its form has it.
type search struct {
	Status, Type, Product, Country, Risk, Sort string
	Label                                      string // key:value
	Key                                        string // id of the one that bought them
	Text                                       string // a whole id, or of live sessions a part of one or of an exit
}

func searchOf(form url.Values) search {
	text := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	return search{Status: text("status"), Type: text("type"), Product: text("product"), Risk: text("risk"),
		Sort: text("sort"), Label: text("label"), Key: text("key"), Text: text("q"),
		Country: strings.ToUpper(text("country"))}
}

// Fields returns the search as fields of another form.
func (s search) Fields() []formValue {
	var list []formValue
	for _, f := range []formValue{{"status", s.Status}, {"type", s.Type}, {"product", s.Product},
		{"country", s.Country}, {"risk", s.Risk}, {"sort", s.Sort}, {"label", s.Label}, {"key", s.Key}, {"q", s.Text}} {
		if f.Value != "" {
			list = append(list, f)
		}
	}
	return list
}

// filter returns what storage narrows the list to.
func (s search) filter() (f ports.SessionFilter, err error) {
	f = ports.SessionFilter{Status: session.Status(s.Status), Type: session.Type(s.Type), ProductNo: s.Product,
		Country: s.Country, Part: s.Text, Key: s.Key}
	if s.Label != "" {
		f.LabelKey, f.LabelValue, err = session.ParseLabel(s.Label)
	}
	return f, err
}

// pageOf returns a page of sessions. Searching by a part, by the risk, and every order but the newest first
// list live sessions alone: ended ones are too many to walk.
func (c *Console) pageOf(v *view, s search, page domain.Page) (list domain.List[sessions.View], err error) {
	if len(s.Text) > 64 {
		return list, domain.InvalidField("q", "must have at most 64 characters")
	}
	if strings.HasPrefix(s.Text, "sess_") && plain(s.Text) {
		one, err := c.Sessions.Read(v, v.caller.AgentID, s.Text)
		if err == nil {
			return domain.List[sessions.View]{Items: []sessions.View{one}, Total: 1, Page: page}, nil
		}
		if !errors.Is(err, session.ErrNotFound) {
			return list, err
		}
	}
	filter, err := s.filter()
	if err != nil {
		return list, err
	}
	if s.Risk == "" && s.Sort == "" && s.Text == "" {
		return c.Sessions.List(v, sessions.List{AgentID: v.caller.AgentID, Page: page, Filter: filter})
	}
	ids, err := c.Overview.Live(v, overview.Live{AgentID: v.caller.AgentID, Risk: health.Risk(s.Risk), Filter: filter,
		Order: overview.Order(s.Sort), Page: page})
	list.Total = ids.Total
	for _, id := range ids.Items {
		var one sessions.View
		if err == nil {
			one, err = c.Sessions.Read(v, v.caller.AgentID, id)
		}
		list.Items = append(list.Items, one)
	}
	return list, err
}

// sessionsData is a page of the list of sessions.
type sessionsData struct {
	search
	Products []catalog.Product
	Keys     []keyChoice
	Items    []sessions.View
	Pages    pager
	MayBuy   bool
	MayEnd   bool // one of the page lives
}

// mostIPs is how many addresses of a session a list shows.
const mostIPs = 3

// IPs returns the first addresses of a static session, and how many more it has.
func (sessionsData) IPs(s sessions.View) []string {
	var list []string
	for i, e := range s.Exits {
		if s.Type != session.Static || !e.IP.IsValid() {
			break
		}
		if i == mostIPs {
			return append(list, fmt.Sprintf("and %d more", len(s.Exits)-mostIPs))
		}
		list = append(list, e.IP.String())
	}
	return list
}

func (c *Console) sessions(v *view) error {
	d := sessionsData{search: searchOf(v.r.URL.Query()), MayBuy: v.may(account.SessionsWrite)}
	page := v.pageOf("page")
	list, err := c.pageOf(v, d.search, page)
	if err != nil {
		return err
	}
	if d.Keys, err = c.keyChoices(v, d.Key); err != nil {
		return err
	}
	d.Products = c.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 1000}).Items
	d.Items, d.Pages = list.Items, v.pager("page", page, list.Total, "")
	v.chargeRead(len(d.Items))
	for _, s := range d.Items {
		d.MayEnd = d.MayEnd || d.MayBuy && !s.Status.Over()
	}
	return v.show(http.StatusOK, "sessions", v.frame("Sessions", d))
}

// mostProxies is of how many sessions a file has the proxies.
const mostProxies = 5000

// proxyList answers the proxies of the active sessions of a search, one in each line. It has passwords, so
// it is the answer to a form and is not stored.
func (c *Console) proxyList(v *view) error {
	s, page := searchOf(v.r.PostForm), domain.Page{Number: 1, Size: domain.MaxPageSize}
	if s.Status == "" {
		s.Status = string(session.Active)
	}
	list, err := c.pageOf(v, s, page)
	if err != nil {
		return err
	}
	if list.Total > mostProxies {
		return domain.ErrInvalid.Msgf("%d sessions match, and a file has the proxies of %d at most; filter the list "+
			"before you download it", list.Total, mostProxies)
	}
	if err := v.charge(list.Total); err != nil {
		return err
	}
	var text strings.Builder
	for seen := 0; ; page.Number++ {
		for _, one := range list.Items {
			if one.Status != session.Active {
				continue
			}
			for _, p := range c.proxies(one) {
				fmt.Fprintf(&text, "%s:%d:%s:%s\n", p.Host, p.Port, p.Username, p.Password)
			}
		}
		if seen += len(list.Items); seen >= list.Total || len(list.Items) == 0 {
			break
		}
		page.After = list.Next // 0 where there is no cursor: the number of the page counts
		if list, err = c.pageOf(v, s, domain.Page{Number: page.Number + 1, Size: page.Size, After: page.After}); err != nil {
			return err
		}
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="proxies.txt"`)
	_, _ = v.w.Write([]byte(text.String())) // an error means that the client is gone
	return nil
}

// endAllData is what comes of ending several sessions.
type endAllData struct {
	Items               []endData
	Refunded, Forfeited domain.Money
}

// mostEnded is how many sessions a form ends.
const mostEnded = 100

// chosen returns the ids of the sessions that a form has ticked.
func (v *view) chosen(form url.Values) ([]string, error) {
	ids := form["id"]
	if len(ids) > mostEnded {
		return nil, domain.InvalidField("id", "must be at most %d sessions", mostEnded)
	}
	for _, id := range ids {
		if len(id) > 64 || !plain(id) {
			return nil, session.ErrNotFound
		}
	}
	return ids, nil
}

// endAllPage shows what ending the ticked sessions costs. Those that ended meanwhile are left out.
func (c *Console) endAllPage(v *view) error {
	ids, err := v.chosen(v.r.URL.Query())
	if err == nil {
		err = v.charge(len(ids))
	}
	if err != nil {
		return err
	}
	var d endAllData
	for _, id := range ids {
		s, err := c.Sessions.Read(v, v.caller.AgentID, id)
		if err != nil {
			return err
		}
		if s.Status.Over() {
			continue
		}
		var e settlement.Ending
		if e, err = (sessions.Endings{Service: c.Sessions}).Try(v, v.caller.AgentID, id); err != nil {
			return err
		}
		d.Items = append(d.Items, endData{s, e})
		d.Refunded, d.Forfeited = d.Refunded+e.Refunded, d.Forfeited+e.Forfeited
	}
	return v.show(http.StatusOK, "endall", v.frame(fmt.Sprintf("End %d sessions?", len(d.Items)), d))
}

// endAll ends sessions one after the other. Repeating it ends those that are left.
func (c *Console) endAll(v *view) error {
	ids, err := v.chosen(v.r.PostForm)
	if err == nil {
		err = v.charge(len(ids))
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := c.Sessions.Terminate(v, v.caller.AgentID, id); err != nil {
			return err
		}
	}
	return v.leave("/sessions", "ended-all")
}
