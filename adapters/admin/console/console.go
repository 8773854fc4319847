// Package console serves the operator's web console. Whoever reaches it is the operator: it belongs on
// the admin listener, which judges the Host header.
package console

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/app/catalog"
	"agentproxy/app/exitlog"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/payments"
	"agentproxy/app/procurement"
	"agentproxy/app/reconcile"
	"agentproxy/domain"
	"agentproxy/domain/policy"
	"agentproxy/ports"
)

//go:embed all:pages
var embedded embed.FS

// Job is a background job.
type Job struct {
	ID                          int64
	Kind, State, Subject, Error string
	Attempt, MaxAttempts        int
	ScheduledAt                 time.Time
}

// Jobs is what the console does with background jobs.
type Jobs interface {
	// Parked lists jobs that failed every time, the newest first.
	Parked(ctx context.Context, limit int) ([]Job, error)
	Retry(ctx context.Context, id int64) error
	Discard(ctx context.Context, id int64) error
}

// Deps are the use cases behind the pages.
type Deps struct {
	Sessions  *operator.Sessions
	Money     *operator.Money
	Trail     *operator.Trail
	Accounts  *accounts.Service
	Referrers *accounts.Referrers
	Wallet    *ledger.Wallet
	Orders    *procurement.Desk
	Exits     *exitlog.Service
	Recharges *payments.Orders
	Payments  *payments.Watcher
	Proof     ports.Audit
	Owed      *reconcile.Watch
	Reconcile *reconcile.Service
	Catalog   *catalog.Catalog
	Policy    func() *policy.Shared // the rules that hold now; nil for none
	Jobs      Jobs
	IDs       ports.IDs
	Clock     ports.Clock
	User      string // who acts unless the form names another user
	Log       *slog.Logger
}

// Console is an http.Handler of all pages, below "/".
type Console struct {
	Deps
	pages   ui.Pages
	handler http.Handler
	sellers *sellerCache
}

// New returns the console.
func New(d Deps) *Console {
	files, err := fs.Sub(embedded, "pages")
	if err != nil {
		panic("console: " + err.Error())
	}
	c := &Console{Deps: d, pages: ui.Parse(files, nil), sellers: &sellerCache{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", ui.Assets)
	for path, show := range map[string]func(*http.Request) (page, error){
		"/{$}": c.overview, "/agents": c.agents, "/agents/{id}": c.agent, "/sessions": c.allSessions,
		"/sessions/{id}": c.session, "/money": c.money, "/recharges": c.recharges, "/sellers": c.sellersPage,
		"/jobs": c.jobs, "/exits": c.exits, "/policy": c.policy, "/audit": c.audit,
	} {
		mux.HandleFunc("GET "+path, c.serve(show))
	}
	mux.HandleFunc("GET /do/{action}", c.ask)
	mux.HandleFunc("POST /do/{action}", c.act)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		c.render(w, r, http.StatusNotFound, page{Title: "There is no such page"})
	})
	c.handler = ui.Secure(mux)
	return c
}

// ServeHTTP serves the pages.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// serve shows a page, or why it cannot be shown.
func (c *Console) serve(show func(*http.Request) (page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := show(r)
		status := http.StatusOK
		if err != nil {
			p.problem, status = c.problemOf(err)
			if p.Title == "" {
				p.Title = "This cannot be shown"
			}
		}
		c.render(w, r, status, p)
	}
}

// statuses are those of refusals; any other kind is answered with 409.
var statuses = map[domain.Kind]int{domain.Invalid: http.StatusBadRequest, domain.NotFound: http.StatusNotFound,
	domain.Unavailable: http.StatusServiceUnavailable}

// problemOf returns what of an error is shown. What is no refusal is logged and not shown.
func (c *Console) problemOf(err error) (*ui.Problem, int) {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok || e.Kind == domain.Internal && e.Code == "" {
		c.Log.Error("the operator's console", "err", err)
		return &ui.Problem{Message: "Something failed; the log has the cause.", Code: "INTERNAL_ERROR"},
			http.StatusInternalServerError
	}
	p := &ui.Problem{Code: e.Code, Message: e.Message}
	if issues, ok := e.Details["fields"].([]domain.FieldIssue); ok {
		for _, f := range issues {
			p.Fields = append(p.Fields, ui.Field{Name: f.Field, Issue: f.Issue})
		}
	}
	status, known := statuses[e.Kind]
	if !known {
		status = http.StatusConflict
	}
	return p, status
}

// links is the navigation.
var links = []ui.Link{{Href: "/", Text: "Overview"}, {Href: "/agents", Text: "Agents"},
	{Href: "/sessions", Text: "Sessions"}, {Href: "/money", Text: "Money"}, {Href: "/recharges", Text: "Recharges"},
	{Href: "/sellers", Text: "Sellers"}, {Href: "/jobs", Text: "Jobs"}, {Href: "/exits", Text: "Exits"},
	{Href: "/policy", Text: "Policy"}, {Href: "/audit", Text: "Audit"}}

func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, p page) {
	f := ui.Frame{Brand: "agentproxy operator", Title: p.Title, Notice: p.notice, Problem: p.problem, Data: p}
	for _, l := range links {
		l.Current = l.Href == r.URL.Path || l.Href != "/" && strings.HasPrefix(r.URL.Path, l.Href+"/")
		f.Nav = append(f.Nav, l)
	}
	if name := r.URL.Query().Get("done"); f.Notice == "" && r.Method == http.MethodGet && actions[name].Done != "" {
		f.Notice = actions[name].Done
	}
	if err := c.pages.Render(w, status, "page", f); err != nil {
		c.Log.Error("the operator's console", "err", err)
		http.Error(w, "Something failed; the log has the cause.", http.StatusInternalServerError)
	}
}
