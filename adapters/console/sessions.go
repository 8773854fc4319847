package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// rows is how many rows a list shows at a time.
const rows = 25

// pager leads through the pages of a list.
type pager struct {
	Number, Pages, Total int
	Prev, Next           string // empty: there is none
}

// pageOf returns the page that a query asks for under a name.
func (v *view) pageOf(name string) domain.Page {
	n, err := strconv.Atoi(v.r.URL.Query().Get(name))
	if err != nil || n < 1 {
		n = 1
	}
	return domain.Page{Number: n, Size: rows}
}

// pager returns the links beside a page of a list. They keep the rest of the query.
func (v *view) pager(name string, page domain.Page, total int, anchor string) pager {
	p := pager{Number: page.Number, Total: total, Pages: max((total+page.Size-1)/page.Size, 1)}
	link := func(n int) string {
		q := v.r.URL.Query()
		q.Del("done")
		q.Set(name, strconv.Itoa(n))
		return (&url.URL{Path: v.r.URL.Path, RawQuery: q.Encode(), Fragment: anchor}).String()
	}
	if page.Number > 1 {
		p.Prev = link(min(page.Number-1, p.Pages))
	}
	if page.Number < p.Pages {
		p.Next = link(page.Number + 1)
	}
	return p
}

// sessionData is everything about one session.
type sessionData struct {
	sessions.View
	Now                                 time.Time
	Key                                 string // of the forms
	Range                               string
	Hours                               *usageData
	Left                                int64 // of the traffic that was bought
	Events                              []eventlog.Event
	Pages                               pager
	Policy                              policy.Own
	Connect                             *connectData
	MayWrite                            bool
	Reasons                             []health.RotationReason
	WorkerList                          domain.List[workers.View]
	Hosts                               domain.List[traffic.Host]
	Clients                             domain.List[traffic.Client]
	WorkerPages, HostPages, ClientPages pager
}

// sessionID returns the id of the path. What cannot be one is not looked for.
func (v *view) sessionID() (string, error) {
	id := v.r.PathValue("session_id")
	if len(id) > 64 || !plain(id) {
		return "", session.ErrNotFound
	}
	return id, nil
}

// plain reports whether a text has letters, digits and underscores alone.
func plain(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != ""
}

func (c *Console) readSession(v *view) (sessions.View, error) {
	id, err := v.sessionID()
	if err != nil {
		return sessions.View{}, err
	}
	return c.Sessions.Read(v, v.caller.AgentID, id)
}

func (c *Console) session(v *view) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := sessionData{View: s, Now: c.Clock.Now(), Key: c.IDs.New("form_"), Range: "24h",
		Left: max(s.Bytes-s.Usage.Used(), 0), MayWrite: v.may(account.SessionsWrite),
		Reasons: []health.RotationReason{health.RotationManual, "http_403", "http_429", "captcha", "timeout", "block"}}
	hours := 24
	if v.r.URL.Query().Get("range") == "7d" {
		d.Range, hours = "7d", 7*24
	}
	list, err := c.Overview.Hours(v, v.caller.AgentID, s.ID, hours)
	if err != nil {
		return err
	}
	d.Hours = newUsage(list, "an hour")
	page := v.pageOf("page")
	events, err := c.Sessions.Events(v, v.caller.AgentID, s.ID, page)
	if err != nil {
		return err
	}
	d.Events, d.Pages = events.Items, v.pager("page", page, events.Total, "events")
	if err = c.readPeers(v, &d); err != nil {
		return err
	}
	if d.Policy, err = c.Policies.Get(v, v.caller.AgentID, s.ID); err != nil {
		return err
	}
	v.chargeRead(len(list) + len(d.Events) + len(d.WorkerList.Items) + len(d.Hosts.Items) + len(d.Clients.Items))
	if s.Status == session.Active {
		d.Connect = c.connect(s, v.r.URL.Query().Get("reveal") == "1")
	}
	f := v.frame("Session "+s.ID, d)
	if s.Status == session.Creating {
		f.Refresh = 5
	}
	return v.show(http.StatusOK, "session", f)
}

// readPeers reads the workers of a session, the hosts that it reached and the addresses that use it.
func (c *Console) readPeers(v *view, d *sessionData) (err error) {
	list, hosts, clients := v.pageOf("workers"), v.pageOf("hosts"), v.pageOf("clients")
	if d.View.Type == session.Dynamic {
		if d.WorkerList, err = c.Workers.List(v, v.caller.AgentID, d.ID, "", list); err != nil {
			return err
		}
	}
	if d.Hosts, err = c.Sessions.Hosts(v, v.caller.AgentID, d.ID, hosts); err != nil {
		return err
	}
	if d.Clients, err = c.Sessions.Clients(v, v.caller.AgentID, d.ID, clients); err != nil {
		return err
	}
	d.WorkerPages = v.pager("workers", list, d.WorkerList.Total, "workers-title")
	d.HostPages = v.pager("hosts", hosts, d.Hosts.Total, "hosts-title")
	d.ClientPages = v.pager("clients", clients, d.Clients.Total, "clients-title")
	return nil
}
