package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// identity is who makes a request.
type identity struct {
	client  netip.Addr
	agentID string // set when the sign-in was found
	outage  error  // why the answer is 503
}

type identityKey struct{}

func with(ctx context.Context, who *identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

func identityOf(ctx context.Context) *identity {
	who, _ := ctx.Value(identityKey{}).(*identity)
	return who
}

// page is what answers a request of a person who is signed in. Its error is shown on a page of its
// own.
type page struct {
	show  func(*view) error
	scope account.Scope // empty: none is needed
}

// view is one request of a person who is signed in.
type view struct {
	context.Context
	c      *Console
	w      http.ResponseWriter
	r      *http.Request
	caller accounts.Caller
	name   string // of the account
}

// maxForm bounds the body of a form in bytes.
const maxForm = 64 << 10

// signedIn answers by a page if the request has a sign-in, and leads to the sign-in otherwise.
func (c *Console) signedIn(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &view{Context: r.Context(), c: c, w: w, r: r}
		var err error
		v.caller, err = c.Accounts.SignIns.Caller(r.Context(), c.token(r))
		if errors.Is(err, accounts.ErrSignedOut) {
			c.askToSignIn(w, r)
			return
		}
		identityOf(r.Context()).agentID = v.caller.AgentID
		v.Context = ports.WithAgent(v.Context, v.caller.AgentID)
		if err == nil {
			err = v.admit(p.scope)
		}
		if err == nil {
			err = p.show(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// admit counts the request against the agent's limit and checks what its key may.
func (v *view) admit(scope account.Scope) error {
	conn := conns.Of(v)
	conn.Trust()
	if err := v.decided(v.c.Limits.Take(v.caller.AgentID, v.caller.PerMinute), 1); err != nil {
		return err
	}
	if err := v.caller.MayAsFree(); err != nil {
		return err
	}
	if scope != "" {
		if err := v.caller.May(scope); err != nil {
			return account.ErrScope.Msgf(
				"the API key that you signed in with has no permission %s; sign in with one that has it", scope)
		}
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return domain.ErrInvalid.Msgf("the form could not be read; go back and send it again")
	}
	conn.Work()
	info, err := v.c.Accounts.Info(v, v.caller.AgentID)
	v.name = info.Agent.Name
	return err
}

// decided returns the refusal of a request, and counts its cost for the network of an account on trial.
func (v *view) decided(d ratelimit.Decision, cost int) error {
	if !d.Allowed {
		return account.ErrRateLimited.Msgf("too many requests; wait %d seconds", seconds(d.RetryAfter)).After(d.RetryAfter)
	}
	if d := v.c.Limits.TakeTrials(v.caller.TrialNetwork(), cost); !d.Allowed {
		return account.ErrRateLimited.Msgf("too many requests of accounts on trial from your network; wait %d seconds",
			seconds(d.RetryAfter)).After(d.RetryAfter)
	}
	return nil
}

// charge counts items that a request is about to change or to read, before it does: too many for what is left of the
// limit are refused.
func (v *view) charge(items int) error {
	cost := ratelimit.Beyond(items)
	if cost == 0 {
		return nil
	}
	return v.decided(v.c.Limits.TakeMore(v.caller.AgentID, v.caller.PerMinute, cost), cost)
}

// chargeRead counts items that a request has read, or what is left of the limit if that is less.
func (v *view) chargeRead(items int) {
	if cost := ratelimit.Beyond(items); cost > 0 {
		v.c.Limits.Debit(v.caller.AgentID, v.caller.PerMinute, cost)
		v.c.Limits.DebitTrials(v.caller.TrialNetwork(), cost)
	}
}

// storing refuses what adds rows to an agent that had as much stored as it may.
func storing(show func(*view) error) func(*view) error {
	return func(v *view) error {
		if err := v.c.Limits.Stored.Check(v, v.caller.AgentID); err != nil {
			return err
		}
		return show(v)
	}
}

// may reports whether the key of the sign-in has a permission.
func (v *view) may(s account.Scope) bool { return v.caller.May(s) == nil }

// brand returns the name on the pages.
func (c *Console) brand() string { return cmp.Or(c.cfg.Shop, "agentproxy") }

// frame returns the layout of a page.
func (v *view) frame(title string, data any) ui.Frame {
	f := ui.Frame{Base: Base, Brand: v.c.brand(), Title: title, Who: v.name, SignOut: Base + "/sign-out", Data: data,
		Help:   helpOf(strings.TrimPrefix(v.r.URL.Path, Base)),
		Notice: doneTexts[v.r.URL.Query().Get("done")]}
	for _, l := range []struct {
		path, text string
		scope      account.Scope
	}{{"/", "Overview", account.AccountRead}, {"/sessions", "Sessions", account.SessionsRead},
		{"/money", "Money", account.BillingRead}, {"/access", "Access", account.AccountRead}} {
		if v.may(l.scope) {
			at := v.r.URL.Path
			f.Nav = append(f.Nav, ui.Link{Href: Base + l.path, Text: l.text,
				Current: at == Base+l.path || l.path != "/" && strings.HasPrefix(at, Base+l.path+"/")})
		}
	}
	return f
}

// helpAt is the page of documentation for beginners.
const helpAt = "/docs/quickstart.md"

// helpOf returns the page of documentation about a page of the console.
func helpOf(path string) string {
	for _, of := range [][2]string{{"/sessions", "sessions"}, {"/money", "money"}, {"/access/keys", "money"},
		{"/access", "webhooks"}} {
		if path == of[0] || strings.HasPrefix(path, of[0]+"/") {
			return "/docs/" + of[1] + ".md"
		}
	}
	return helpAt
}

// doneTexts are the messages after an action, by the parameter done of the redirect.
var doneTexts = map[string]string{
	"bought":         "The session is bought.",
	"rotated":        "The session has a new exit.",
	"worker-rotated": "The worker has a new exit.",
	"password":       "The session has a new password; the old one ends within a second.",
	"renewed":        "The session is renewed.",
	"settings":       "The session is changed.",
	"added":          "The traffic is added.",
	"ended":          "The session has ended.",
	"ended-all":      "The sessions have ended.",
	"budget":         "The budget is set.",
	"ordered":        "The order waits for its money.",
	"account":        "The account is changed.",
	"key":            "The limits of the key are set.",
	"revoked":        "The key is revoked.",
	"webhook":        "The address of the webhook is set.",
	"tested":         "A test event is on its way.",
	"redelivered":    "The event is sent again.",
}

// show answers a page.
func (v *view) show(status int, name string, f ui.Frame) error {
	return v.c.pages.Render(v.w, status, name, f)
}

// showAgain writes a page with a form, and why what the form asked for was refused; nil: it asked for nothing.
func (v *view) showAgain(name string, f ui.Frame, cause error) error {
	status := http.StatusOK
	if cause != nil {
		f.Problem, status = v.problem(cause)
	}
	return v.show(status, name, f)
}

// leave leads to another page of the console after an action. The browser reads it by GET, so that to
// load it again repeats nothing.
func (v *view) leave(path, done string) error {
	http.Redirect(v.w, v.r, Base+path+"?done="+done, http.StatusSeeOther)
	return nil
}

// statusOf gives each kind of refusal its status.
var statusOf = map[domain.Kind]int{
	domain.Invalid:         http.StatusBadRequest,
	domain.Unauthorized:    http.StatusUnauthorized,
	domain.PaymentRequired: http.StatusPaymentRequired,
	domain.Forbidden:       http.StatusForbidden,
	domain.NotFound:        http.StatusNotFound,
	domain.Conflict:        http.StatusConflict,
	domain.Gone:            http.StatusGone,
	domain.RateLimited:     http.StatusTooManyRequests,
	domain.BadGateway:      http.StatusBadGateway,
	domain.Unavailable:     http.StatusServiceUnavailable,
	domain.UpstreamTimeout: http.StatusGatewayTimeout,
}

var errInternal = &domain.Error{Code: "INTERNAL_ERROR",
	Message: "the service failed; try again, and contact its operator if the problem persists"}

// problem returns an error as a person may see it, and its status. Any error that is not a refusal is
// logged; why the service is unavailable is returned to the caller of Serve.
func (v *view) problem(err error) (*ui.Problem, int) {
	var e *domain.Error
	if !errors.As(err, &e) || statusOf[e.Kind] == 0 {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			e = domain.ErrUnavailable
		} else {
			v.c.Log.ErrorContext(v, "a page failed", slog.String("agent_id", v.caller.AgentID), slog.Any("err", err))
			e = errInternal
		}
	}
	if e.RetryAfter > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds(e.RetryAfter)))
	}
	status := statusOf[e.Kind]
	switch status {
	case 0:
		status = http.StatusInternalServerError
	case http.StatusServiceUnavailable:
		identityOf(v.r.Context()).outage = err
	}
	p := &ui.Problem{Code: e.Code, Message: sentence(e.Message)}
	if issues, ok := e.Details["fields"].([]domain.FieldIssue); ok {
		p.Message = "Please correct what is wrong:"
		for _, i := range issues {
			p.Fields = append(p.Fields, ui.Field{Name: strings.ReplaceAll(i.Field, ".", " "), Issue: i.Issue})
		}
	}
	return p, status
}

// sentence begins a message with a capital and ends it with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

func seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }

// fail answers an error by a page of its own.
func (v *view) fail(err error) {
	p, status := v.problem(err)
	f := v.frame("That did not work", backTo(v.r))
	f.Problem, f.Notice = p, ""
	if status == http.StatusNotFound {
		f.Title = "Not found"
	}
	if err := v.show(status, "problem", f); err != nil {
		v.c.Log.ErrorContext(v, "a page failed", slog.Any("err", err))
		http.Error(v.w, errInternal.Message, http.StatusInternalServerError)
	}
}

// backTo returns the page of this console that a request came from, else the overview.
func backTo(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err == nil && from.Host == r.Host && strings.HasPrefix(from.Path, Base+"/") && from.Path != r.URL.Path {
		return from.RequestURI()
	}
	return Base + "/"
}

// nothing answers what is not a page.
func (c *Console) nothing(*view) error {
	return &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND", Message: "there is no such page"}
}
