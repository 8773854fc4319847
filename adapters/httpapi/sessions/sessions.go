// Package sessions declares the operations that buy, change, end and show sessions.
package sessions

import (
	"context"
	"net/http"
	"strings"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/policies"
	"agentproxy/app/replacements"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

type createInput struct {
	endpoint.Purchase
	Body createBody
}

type sessionsInput struct {
	endpoint.Paging
	Status    session.Status `query:"status" doc:"Only sessions in this state."`
	Type      session.Type   `query:"type" doc:"Only sessions of this type."`
	ProductNo string         `query:"product_no" maxLength:"64" doc:"Only sessions of this product."`
	Key       string         `query:"key" maxLength:"64" doc:"Only sessions that this key bought."`
	By        string         `query:"by" enum:"key" doc:"key adds by_key, the number of each key's sessions."`
	Country   string         `query:"country" pattern:"^[A-Za-z]{2}$" patternDescription:"an ISO 3166-1 alpha-2 code" doc:"Only sessions bought for it."`
	Label     string         `query:"label" maxLength:"97" doc:"key:value, a label that the session has."`
	From      string         `query:"created_from" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, inclusive."`
	To        string         `query:"created_to" maxLength:"40" doc:"YYYY-MM-DD or RFC 3339, exclusive."`
	View      string         `query:"view" enum:"full,summary" doc:"summary leaves out proxy and ip_list, with their passwords."`
}

// filter returns what a list of sessions is narrowed to.
func (in *sessionsInput) filter(ctx context.Context) (f ports.SessionFilter, err error) {
	f = ports.SessionFilter{Status: in.Status, Type: in.Type, ProductNo: in.ProductNo,
		Country: strings.ToUpper(in.Country), Key: endpoint.KeyOf(ctx, in.Key)}
	if _, given := endpoint.CallIn(ctx).Query("label"); given {
		if f.LabelKey, f.LabelValue, err = session.ParseLabel(in.Label); err != nil {
			return f, err
		}
	}
	f.From, f.To, err = endpoint.Between(ctx, "created_from", "created_to")
	return f, err
}

type sessionsReply struct {
	Items      []sessionview.Session `json:"items" doc:"This page."`
	Pagination endpoint.Pagination   `json:"pagination" doc:"Where this page is in the list."`
	ByKey      *[]keySessionsReply   `json:"by_key,omitempty" doc:"With by=key: those of the whole list; together they are its total."`
}

type keySessionsReply struct {
	KeyID    value.MaybeText `json:"key_id" doc:"null: of sessions whose key is not known."`
	Sessions int             `json:"sessions" doc:"How many there are."`
	Live     int             `json:"sessions_live" doc:"How many of them live."`
}

func toKeySessions(k ports.KeySessions) keySessionsReply {
	return keySessionsReply{value.MaybeText(k.Key), k.Total, k.Live}
}

// UseCases are the use cases that the operations on sessions call.
type UseCases struct {
	Sessions     *sessions.Service
	Policies     *policies.Service
	Checks       *sessions.Checks
	Reveals      *reveals.Service
	Replacements *replacements.Service
}

// service serves the operations on sessions.
type service struct {
	UseCases
	sessionview.Gateway
	api *endpoint.API
}

// Declare declares the operations on sessions, whose proxies are at a gateway.
func Declare(a *endpoint.API, u UseCases, g sessionview.Gateway) {
	s := &service{u, g, a}
	s.declareSessions()
	s.declarePolicy()
	s.declareChanges()
	s.declareSettings()
	s.declareTopUp()
	s.declareReplace()
	s.declarePeers()
	s.declareSessionViews()
	s.declareReveal()
	s.declareConnect()
}

// declareSessions declares buying and reading sessions.
func (s *service) declareSessions() {
	endpoint.DeclareResult(s.api, createOperation(), s.createSession)
	s.api.Document(func() { documentForms(s.api.OpenAPI().Components.Schemas.Map()) })
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-sessions",
		Usage:   true,
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/sessions",
		Tag:     "sessions",
		Summary: "The agent's sessions, newest first",
		Doc:     "Ended sessions are in the list, too; filter by status to leave them out.",
		Scope:   account.SessionsRead,
		OK: []endpoint.Reply{
			{
				Status: http.StatusOK,
				Doc:    "A page of sessions.",
				Data: sessionsReply{Items: []sessionview.Session{sessionview.ExampleDynamic},
					Pagination: endpoint.ExamplePagination},
			},
		},
	}, s.listSessions)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-session",
		Usage:   true,
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}",
		Tag:     "sessions",
		Summary: "One session",
		Doc:     "With proxy, which holds the credential, while the session is active.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The session.", Data: sessionview.ExampleStatic}},
	}, s.session)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-session-usage",
		Usage:   true,
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/usage",
		Tag:     "sessions",
		Summary: "What a session used and has left",
		Doc:     "Bytes, time and cost. as_of is when the figures were taken.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The usage.", Data: sessionview.ExampleDynamic.Usage}},
	}, s.sessionUsage)
}

// Refusals with the details that they always have, as the document shows them.
var (
	errBalance = billing.ErrInsufficientBalance.With("required", domain.MustMoney("25")).
			With("available", domain.MustMoney("9.75")).With("currency", domain.Currency)
	errPrice = sessions.ErrPriceMismatch.With("cost", domain.MustMoney("2")).With("max_cost", domain.MustMoney("1.5"))
)

func createOperation() endpoint.Operation {
	return endpoint.Operation{
		ID:         "create-session",
		Keys:       endpoint.AnyKey,
		Stores:     true,
		Method:     http.MethodPost,
		Path:       "/sessions",
		Tag:        "sessions",
		Summary:    "Buy a proxy session",
		Scope:      account.SessionsWrite,
		Idempotent: true,
		Doc:        createDoc,
		OK: []endpoint.Reply{
			{
				Status: http.StatusOK,
				Doc:    "A dry run, or the session attached to by provisioning_mode existing.",
				Data:   endpoint.ExampleDryRun,
				Or:     sessionview.ExampleDynamic,
			},
			{Status: http.StatusCreated, Doc: "The session is active.", Data: sessionview.ExampleDynamic},
			{Status: http.StatusAccepted, Doc: "The session is being created; poll Location.",
				Data: sessionview.ExampleCreating},
		},
		Refuses: endpoint.Refusals(
			catalog.ErrProductNotFound,
			catalog.ErrOutOfStock,
			exit.ErrNotMet,
			account.ErrTierRequired,
			errPrice,
			errBalance,
			billing.ErrBudgetExceeded,
			account.ErrKeyRestricted,
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

func (s *service) session(ctx context.Context, in *sessionview.OneSession) (int, sessionview.Session, error) {
	v, err := in.Read(ctx, s.Sessions)
	return http.StatusOK, s.ToSession(v), err
}

func (s *service) sessionUsage(ctx context.Context, in *sessionview.OneSession) (int, sessionview.Usage, error) {
	v, err := in.Read(ctx, s.Sessions)
	return http.StatusOK, sessionview.ToUsage(v), err
}

func (s *service) listSessions(ctx context.Context, in *sessionsInput) (int, sessionsReply, error) {
	filter, err := in.filter(ctx)
	if err != nil {
		return 0, sessionsReply{}, err
	}
	list, err := s.Sessions.List(ctx, sessions.List{AgentID: endpoint.Caller(ctx), Page: in.Asked(), Filter: filter})
	if err != nil {
		return 0, sessionsReply{}, err
	}
	workers := 0
	for _, v := range list.Items {
		workers += v.Workers.Total
	}
	endpoint.ChargeWorkers(ctx, workers)
	items, pagination := endpoint.PageOf(list, s.ToSession)
	if in.View == "summary" {
		for i := range items {
			items[i] = items[i].WithoutAccess()
		}
	}
	r := sessionsReply{Items: items, Pagination: pagination}
	if in.By != "" {
		counts, err := sessions.ListByKey(ctx, s.Sessions, endpoint.Caller(ctx), filter)
		if err != nil {
			return 0, sessionsReply{}, err
		}
		r.ByKey = new(value.Each(counts, toKeySessions))
	}
	return http.StatusOK, r, nil
}

func (s *service) createSession(ctx context.Context, in *createInput) (endpoint.Result[any], error) {
	request, err := in.Body.request()
	if err != nil {
		return endpoint.Result[any]{}, err
	}
	create := sessions.Create{AgentID: endpoint.Caller(ctx), By: endpoint.Spender(ctx), Form: request,
		Call: in.Call(), DryRun: in.IsDry()}
	if rule, err := in.Body.Require.Rule(); err != nil {
		return endpoint.Result[any]{}, err
	} else if rule != nil {
		create.Require = *rule
	}
	if b := in.Body.Policy; b != nil {
		create.Policy = new(b.own())
		if err := endpoint.Charge(ctx, create.Policy.Rules()); err != nil {
			return endpoint.Result[any]{}, err
		}
		if endpoint.CallIn(ctx).Caller.Trial {
			if err := create.Policy.CheckTrial("policy."); err != nil {
				return endpoint.Result[any]{}, err
			}
		}
	}
	done, err := s.Sessions.Create(ctx, create)
	return s.bought(ctx, done, renamed(err, in.Body.path))
}

// bought returns the result of a call that buys: a dry run, or the session with
// where to poll it while it is not ready.
func (s *service) bought(ctx context.Context, d sessions.Done, err error) (endpoint.Result[any], error) {
	switch {
	case err != nil:
		return endpoint.Result[any]{}, err
	case d.Quote != nil:
		return endpoint.Result[any]{Status: http.StatusOK, Data: endpoint.ToDryRun(ctx, d.Quote), Replayed: d.Replayed}, nil
	}
	r := endpoint.Result[any]{Status: endpoint.OutcomeStatus[d.Outcome], Data: s.ToSession(d.View), Replayed: d.Replayed}
	if d.Outcome == ports.Pending {
		r.Location = endpoint.Prefix + "/sessions/" + d.View.ID
	}
	return r, nil
}
