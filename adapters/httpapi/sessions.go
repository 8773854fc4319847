package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/app/ledger"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// sessionPath is the path of every operation on one session.
type sessionPath struct {
	SessionID string `path:"session_id" doc:"The session, prefix sess_."`
}

// OneSession is sessionPath under an exported name, by which huma reads it where it is embedded.
type OneSession = sessionPath

// id returns the session's id, or an error if the text cannot be one.
func (p sessionPath) id() (string, error) {
	if len(p.SessionID) > 64 || !strictjson.IsName(p.SessionID) {
		return "", session.ErrNotFound
	}
	return p.SessionID, nil
}

type createInput struct {
	Purchase
	Body createBody
}

type sessionsInput struct {
	Paging
	Status    session.Status `query:"status"`
	Type      session.Type   `query:"type"`
	ProductNo string         `query:"product_no" maxLength:"64"`
	Country   string         `query:"country" pattern:"^[A-Za-z]{2}$" patternDescription:"an ISO 3166-1 alpha-2 code"`
	Label     string         `query:"label" maxLength:"97" doc:"key:value, a label that the session has."`
	From      string         `query:"created_from" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive."`
	To        string         `query:"created_to" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive."`
}

// filter returns what a list of sessions is narrowed to.
func (in *sessionsInput) filter(ctx context.Context) (f ports.SessionFilter, err error) {
	f = ports.SessionFilter{Status: in.Status, Type: in.Type, ProductNo: in.ProductNo,
		Country: strings.ToUpper(in.Country)}
	if _, given := callIn(ctx).gin.GetQuery("label"); given {
		if f.LabelKey, f.LabelValue, err = session.ParseLabel(in.Label); err != nil {
			return f, err
		}
	}
	f.From, f.To, err = between(ctx, "created_from", "created_to")
	return f, err
}

// between reads two dates of the query, the second exclusive. What is not given is the zero time.
func between(ctx context.Context, from, to string) (a, b time.Time, err error) {
	for name, at := range map[string]*time.Time{from: &a, to: &b} {
		if text, given := callIn(ctx).gin.GetQuery(name); given {
			if *at, err = ledger.ParseDate(name, text); err != nil {
				return a, b, err
			}
		}
	}
	if !a.IsZero() && !b.IsZero() && !a.Before(b) {
		return a, b, domain.InvalidField(from, "must be before %s", to)
	}
	return a, b, nil
}

type sessionsReply struct {
	Items      []sessionReply  `json:"items"`
	Pagination paginationReply `json:"pagination"`
}

// declareSessions declares buying and reading sessions.
func (s *Server) declareSessions() {
	opResult(s, createOperation(), s.createSession)
	op(s, operation{
		ID:      "list-sessions",
		Method:  http.MethodGet,
		Path:    "/sessions",
		Tag:     "sessions",
		Summary: "The agent's sessions, newest first",
		Doc:     "Ended sessions are in the list, too; filter by status to leave them out.",
		Scope:   account.SessionsRead,
		OK: []reply{
			{
				Status: ok,
				Doc:    "A page of sessions.",
				Data:   sessionsReply{[]sessionReply{exampleDynamic}, examplePagination},
			},
		},
	}, s.listSessions)
	op(s, operation{
		ID:      "get-session",
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}",
		Tag:     "sessions",
		Summary: "One session",
		Doc:     "With proxy, which holds the credential, while the session is active.",
		Scope:   account.SessionsRead,
		Refuses: ofSession,
		OK:      []reply{{Status: ok, Doc: "The session.", Data: exampleStatic}},
	}, s.session)
	op(s, operation{
		ID:      "get-session-usage",
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/usage",
		Tag:     "sessions",
		Summary: "What a session used and has left",
		Doc:     "Bytes, time and cost. as_of is when the figures were taken.",
		Scope:   account.SessionsRead,
		Refuses: ofSession,
		OK:      []reply{{Status: ok, Doc: "The usage.", Data: exampleDynamic.Usage}},
	}, s.sessionUsage)
}

func createOperation() operation {
	return operation{
		ID:         "create-session",
		Method:     http.MethodPost,
		Path:       "/sessions",
		Tag:        "sessions",
		Summary:    "Buy a proxy session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		Doc:        createDoc,
		OK: []reply{
			{
				Status: http.StatusOK,
				Doc:    "A dry run, or the session attached to by provisioning_mode existing.",
				Data:   exampleDryRun,
				Or:     exampleDynamic,
			},
			{Status: http.StatusCreated, Doc: "The session is active.", Data: exampleDynamic},
			{Status: http.StatusAccepted, Doc: "The session is being created; poll Location.", Data: exampleCreating},
		},
		Refuses: refusals(
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			account.ErrTierRequired,
			sessions.ErrPriceMismatch,
			billing.ErrInsufficientBalance,
			billing.ErrBudgetExceeded,
			session.ErrLimit,
			session.ErrOver,
			ports.ErrProvider,
			ports.ErrTimeout,
		),
		Example: map[string]any{
			"type":   "dynamic",
			"config": map[string]any{"product_no": "dyn_global_1", "traffic_gb": 1, "country": "US"},
		},
	}
}

func (s *Server) session(ctx context.Context, in *sessionPath) (int, sessionReply, error) {
	v, err := s.readSession(ctx, in)
	return ok, s.toSession(v), err
}

func (s *Server) sessionUsage(ctx context.Context, in *sessionPath) (int, usageReply, error) {
	v, err := s.readSession(ctx, in)
	return ok, toUsage(v), err
}

func (s *Server) listSessions(ctx context.Context, in *sessionsInput) (int, sessionsReply, error) {
	page, err := in.page(ctx)
	if err != nil {
		return 0, sessionsReply{}, err
	}
	filter, err := in.filter(ctx)
	if err != nil {
		return 0, sessionsReply{}, err
	}
	list, err := s.Sessions.List(ctx, sessions.List{AgentID: caller(ctx), Page: page, Filter: filter})
	if err != nil {
		return 0, sessionsReply{}, err
	}
	items, pagination := toItems(list, s.toSession)
	return ok, sessionsReply{items, pagination}, nil
}

func (s *Server) readSession(ctx context.Context, in *sessionPath) (sessions.View, error) {
	id, err := in.id()
	if err != nil {
		return sessions.View{}, err
	}
	return s.Sessions.Read(ctx, caller(ctx), id)
}

func (s *Server) createSession(ctx context.Context, in *createInput) (result[any], error) {
	key, dry, err := in.terms(ctx)
	if err != nil {
		return result[any]{}, err
	}
	request, err := in.Body.request()
	if err != nil {
		return result[any]{}, err
	}
	create := sessions.Create{AgentID: caller(ctx), Form: request, Call: key, DryRun: dry}
	if b := in.Body.Policy; b != nil {
		create.Policy = new(b.own())
	}
	done, err := s.Sessions.Create(ctx, create)
	return s.bought(done, renamed(err, in.Body.path))
}

// outcomeStatus is the HTTP status of an outcome.
var outcomeStatus = map[ports.Outcome]int{
	ports.Completed: http.StatusOK,
	ports.Created:   http.StatusCreated,
	ports.Pending:   http.StatusAccepted,
}

// bought returns the result of a call that buys: a dry run, or the session with
// where to poll it while it is not ready.
func (s *Server) bought(d sessions.Done, err error) (result[any], error) {
	switch {
	case err != nil:
		return result[any]{}, err
	case d.Quote != nil:
		return result[any]{Status: ok, Data: toQuote(d.Quote), Replayed: d.Replayed}, nil
	}
	r := result[any]{Status: outcomeStatus[d.Outcome], Data: s.toSession(d.View), Replayed: d.Replayed}
	if d.Outcome == ports.Pending {
		r.Location = Prefix + "/sessions/" + d.View.ID
	}
	return r, nil
}
