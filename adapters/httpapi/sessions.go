package httpapi

import (
	"context"
	"net/http"
	"strings"

	"agentproxy/app/policy"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

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
	if _, given := callIn(ctx).query("label"); given {
		if f.LabelKey, f.LabelValue, err = session.ParseLabel(in.Label); err != nil {
			return f, err
		}
	}
	f.From, f.To, err = between(ctx, "created_from", "created_to")
	return f, err
}

type sessionsReply struct {
	Items      []sessionReply  `json:"items"`
	Pagination paginationReply `json:"pagination"`
}

// sessionsUses are the use cases that the operations on sessions call.
type sessionsUses struct {
	Sessions *sessions.Service
	Policies *policy.Service
	Checks   *sessions.Checks
	Reveals  *reveals.Service
}

// sessionsService serves the operations on sessions.
type sessionsService struct {
	sessionsUses
	gateway
	api *API
}

// declareSessionsFamily declares the operations on sessions, whose proxies are at a gateway.
func declareSessionsFamily(a *API, u sessionsUses, g gateway) {
	s := &sessionsService{u, g, a}
	s.declareSessions()
	s.declarePolicy()
	s.declareChanges()
	s.declareSettings()
	s.declareTopUp()
	s.declarePeers()
	s.declareSessionViews()
	s.declareReveal()
	s.declareConnect()
}

// declareSessions declares buying and reading sessions.
func (s *sessionsService) declareSessions() {
	opResult(s.api, createOperation(), s.createSession)
	op(s.api, operation{
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
	op(s.api, operation{
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
	op(s.api, operation{
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

func (s *sessionsService) session(ctx context.Context, in *sessionPath) (int, sessionReply, error) {
	v, err := in.read(ctx, s.Sessions)
	return ok, s.toSession(v), err
}

func (s *sessionsService) sessionUsage(ctx context.Context, in *sessionPath) (int, usageReply, error) {
	v, err := in.read(ctx, s.Sessions)
	return ok, toUsage(v), err
}

func (s *sessionsService) listSessions(ctx context.Context, in *sessionsInput) (int, sessionsReply, error) {
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

func (s *sessionsService) createSession(ctx context.Context, in *createInput) (result[any], error) {
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

// bought returns the result of a call that buys: a dry run, or the session with
// where to poll it while it is not ready.
func (s *sessionsService) bought(d sessions.Done, err error) (result[any], error) {
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
