// Package console serves the operator's web console. It belongs on the admin listener, which checks the Host header
// and who signed in.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/exitlogs"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/app/ordering"
	"agentproxy/app/payments"
	"agentproxy/app/policies"
	"agentproxy/app/reconcile"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Job is a background job.
type Job struct {
	ID                          int64
	Kind, State, Subject, Error string
	Attempt, MaxAttempts        int
	ScheduledAt                 time.Time
}

// Parked is the state of a job that failed every time.
const Parked = "discarded"

// Jobs is what the console does with background jobs.
type Jobs interface {
	// List lists jobs, the newest first; an empty state or kind is any.
	List(ctx context.Context, state, kind string, limit int) ([]Job, error)
	Retry(ctx context.Context, id int64) error
	Discard(ctx context.Context, id int64) error
}

// Host is the process that serves the console.
type Host struct {
	Version string // of the program
	// Backup copies the database to a new file of this name beside it, and returns its path.
	Backup func(ctx context.Context, name string) (path string, err error)
	// Send makes a transfer on the development chain; nil where payments come from elsewhere.
	Send func(ctx context.Context, to string, amount domain.Money) (recharge.Transfer, error)
}

// Deps are the use cases behind the pages.
type Deps struct {
	fx.In

	Sessions  *operator.Sessions
	Money     *operator.Money
	Trail     *operator.Trail
	Accounts  *accounts.Service
	Referrers *accounts.Referrers
	Wallet    *ledger.Wallet
	Orders    *ordering.Desk
	Exits     *exitlogs.Service
	Recharges *payments.Orders
	Payments  *payments.Watcher
	Proof     ports.Audit
	Owed      *reconcile.Watch
	Reconcile *reconcile.Service
	Catalog   *catalogs.Catalog
	Policy    *policies.Published
	Access    *fulfilment.Service
	Jobs      Jobs
	Host      Host
	IDs       ports.IDs
	Clock     ports.Clock
	Log       *slog.Logger
}

// Console is an http.Handler of all pages, below "/".
type Console struct {
	use     Deps
	pages   ui.Pages
	handler http.Handler
	sellers *sellerCache
}

// slowTimeout is for pages and actions that wait for a seller, the chain or the whole ledger. The
// listener allows half a minute.
const slowTimeout = 10 * time.Minute

// allowSlow lets an answer take longer than the listener allows.
func allowSlow(w http.ResponseWriter) {
	// A writer without deadlines has none that would be too short.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowTimeout))
}

// ServeHTTP serves the pages to who signed in.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !signin.Of(r.Context()).May(signin.Read) {
		http.Error(w, "the operator's console needs a sign-in", http.StatusUnauthorized)
		return
	}
	c.handler.ServeHTTP(w, r)
}

// serve shows a page, or why it cannot be shown.
func (c *Console) serve(show func(*http.Request) (page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allowSlow(w)
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

// problemOf returns what of an error is shown. What is not a refusal is logged and not shown; why the
// service is unavailable is logged.
func (c *Console) problemOf(err error) (*ui.Problem, int) {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok || e.Kind == domain.Internal && e.Code == "" {
		c.use.Log.Error("the operator's console", "err", err)
		return &ui.Problem{Message: "Something failed; the log has the cause.", Code: "INTERNAL_ERROR"},
			http.StatusInternalServerError
	}
	if e.Kind == domain.Unavailable {
		c.use.Log.Warn("the operator's console is unavailable", "err", err)
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
	user := signin.Of(r.Context())
	if !user.May(signin.Act) {
		p = p.withoutActions()
	}
	f := ui.Frame{Brand: "agentproxy operator", Title: p.Title, Notice: p.notice, Problem: p.problem, Data: p,
		Who: user.Name, SignOut: signin.SignOutPath}
	for _, l := range links {
		l.Current = l.Href == r.URL.Path || l.Href != "/" && strings.HasPrefix(r.URL.Path, l.Href+"/")
		f.Nav = append(f.Nav, l)
	}
	if name := r.URL.Query().Get("done"); f.Notice == "" && r.Method == http.MethodGet && actions[name].Done != "" {
		f.Notice = actions[name].Done
	}
	if err := c.pages.Render(w, status, "page", f); err != nil {
		c.use.Log.Error("the operator's console", "err", err)
		http.Error(w, "Something failed; the log has the cause.", http.StatusInternalServerError)
	}
}

// missing answers for what is not there.
func (c *Console) missing(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, http.StatusNotFound, page{Title: "There is no such page", Sections: []section{{
		Note: "The address may be mistyped. Everything can be reached from the menu."}}})
}
