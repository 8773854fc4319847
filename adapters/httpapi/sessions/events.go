package sessions

import (
	"cmp"
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

type eventsInput struct {
	sessionview.OneSession
	endpoint.Paging
}

type eventReply struct {
	EventID    string           `json:"event_id" doc:"Names the event."`
	At         value.Stamp      `json:"at" doc:"When the service received it."`
	OccurredAt value.MaybeStamp `json:"occurred_at" doc:"As the agent reported; null otherwise."`
	Source     string           `json:"source" enum:"gateway,agent,service" enumName:"EventSource" doc:"Who saw it: the gateway, the agent, or the service."`
	Type       string           `json:"type" doc:"What kind it is."`
	TargetHost value.MaybeText  `json:"target_host" doc:"The host of the request, or null."`
	StatusCode value.MaybeInt   `json:"status_code" doc:"null when there was no answer."`
	Code       value.MaybeText  `json:"code" doc:"Of an answer of the gateway itself."`
	Bytes      int64            `json:"bytes" doc:"What the connection moved in both directions."`
	LatencyMS  value.MaybeInt   `json:"latency_ms" doc:"Milliseconds until the answer."`
	ExitIP     value.MaybeText  `json:"exit_ip" doc:"The address that targets see; null if it is not known."`
	Worker     value.MaybeText  `json:"worker" doc:"Whose event it is; null: the session's own."`
	Message    value.MaybeText  `json:"error_message" doc:"What the client saw, or null."`
	Retryable  bool             `json:"retryable" doc:"Whether the same connection may succeed later."`
	HowToFix   value.MaybeText  `json:"how_to_fix" doc:"What to do next, or null."`
	Count      int              `json:"count" minimum:"1" doc:"How many connections it is: equal ones that moved nothing are one, those beyond what is kept one a minute, without target_host."`
}

type eventsReply struct {
	Items      []eventReply        `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

type checkReply struct {
	OK        bool                  `json:"ok" doc:"Whether the target was reached through the session."`
	ExitIP    string                `json:"exit_ip" doc:"The address that targets see."`
	Country   value.MaybeText       `json:"country" doc:"As measured; null: not."`
	Declared  value.MaybeText       `json:"declared_country" doc:"As sold; null: none."`
	LatencyMS int64                 `json:"latency_ms" doc:"Milliseconds until the answer."`
	Protocol  session.Protocol      `json:"protocol" doc:"The protocol that was checked."`
	Exit      sessionview.ExitFacts `json:"exit" doc:"What was measured of the exit."`
}

// declareSessionViews declares what shows how a session fares.
func (s *service) declareSessionViews() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-session-events",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/events",
		Tag:     "sessions",
		Summary: "The last things that happened to a session",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		Doc:     "Newest first, kept 7 days. What an HTTP client hides about a failed CONNECT is readable here.",
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of events.", Data: exampleEvents}},
	}, func(ctx context.Context, in *eventsInput) (int, eventsReply, error) {
		list, err := s.Sessions.Events(ctx, endpoint.Caller(ctx), in.SessionID, in.Asked())
		if err != nil {
			return 0, eventsReply{}, err
		}
		items, pagination := endpoint.PageOf(list, toEvent)
		return http.StatusOK, eventsReply{items, pagination}, nil
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "check-session",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/check",
		Tag:     "sessions",
		Summary: "Try one connection through the exit",
		Scope:   account.SessionsWrite,
		Doc:     "To the service's own echo. Free; 10 a minute.",
		Refuses: endpoint.And(sessionview.OfLive, account.ErrRateLimited, worker.ErrLimit, ports.ErrProvider,
			ports.ErrTimeout),
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The exit " +
			"works.", Data: checkReply{OK: true, ExitIP: "203.0.113.7", Country: "LT", Declared: "TH", LatencyMS: 42,
			Protocol: "http", Exit: sessionview.ExampleExit}}},
		EmptyBody: true, Example: map[string]any{"worker": "w1"},
	}, s.checkSession)
	s.declareExit()
}

// declareExit declares what is known about an exit.
func (s *service) declareExit() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID: "get-session-exit", Keys: endpoint.OwnSession,
		Method: http.MethodGet, Path: "/sessions/{session_id}/exit", Tag: "sessions",
		Summary: "What was measured of the exit", Scope: account.SessionsRead,
		Doc: "If nothing was yet, it measures as check does.",
		Refuses: endpoint.And(sessionview.OfLive, account.ErrRateLimited, worker.ErrNotFound, ports.ErrProvider,
			ports.ErrTimeout),
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The facts.", Data: sessionview.ExampleExit}},
	}, func(ctx context.Context, in *exitInput) (int, sessionview.ExitFacts, error) {
		m, err := s.Checks.Exit(ctx, endpoint.Caller(ctx), in.SessionID, in.Worker, func() error { return s.mayCheck(ctx) })
		if err != nil {
			return 0, sessionview.ExitFacts{}, err
		}
		return http.StatusOK, sessionview.ToExit(m), nil
	})
}

// mayCheck counts a check, and refuses one too many.
func (s *service) mayCheck(ctx context.Context) error {
	if d := s.api.Limits.TakeCheck(endpoint.Caller(ctx)); !d.Allowed {
		return account.ErrRateLimited.Msgf("at most 10 checks a minute; wait for the seconds in Retry-After").
			After(d.RetryAfter)
	}
	return nil
}

// exitInput is a session, or a worker of it.
type exitInput struct {
	sessionview.OneSession
	Worker string `query:"worker" doc:"Its exit in place of the session's."`
}

// checkInput is a session, and which exit of it.
type checkInput struct {
	sessionview.OneSession
	Worker string `query:"worker" deprecated:"true" doc:"That of the body."`
	Body   checkBody
}

type checkBody struct {
	Worker string `json:"worker,omitempty" nullable:"true" doc:"Its exit in place of the session's; made if it is new."`
	IP     string `json:"ip,omitempty" nullable:"true" doc:"An address of a static session in place of its first."`
}

// check returns what is asked for.
func (in *checkInput) check(agentID, id string) (sessions.Check, error) {
	if in.Worker != "" && in.Body.Worker != "" && in.Worker != in.Body.Worker {
		return sessions.Check{}, domain.InvalidField("worker", "differs from that of the query; send one of them")
	}
	return sessions.Check{AgentID: agentID, SessionID: id, Worker: cmp.Or(in.Body.Worker, in.Worker), IP: in.Body.IP}, nil
}

func (s *service) checkSession(ctx context.Context, in *checkInput) (int, checkReply, error) {
	check, err := in.check(endpoint.Caller(ctx), in.SessionID)
	if err != nil {
		return 0, checkReply{}, err
	}
	if err := s.mayCheck(ctx); err != nil {
		return 0, checkReply{}, err
	}
	v, err := s.Checks.Check(ctx, check)
	if err != nil {
		return 0, checkReply{}, err
	}
	e := sessionview.ToExit(v.Exit)
	return http.StatusOK, checkReply{OK: true, ExitIP: e.IP, Country: e.Country, Declared: e.Declared,
		LatencyMS: v.Latency.Milliseconds(), Protocol: v.Protocol, Exit: e}, nil
}

func toEvent(e eventlog.Event) eventReply {
	r := eventReply{EventID: e.ID, At: value.Stamp(e.At), OccurredAt: value.MaybeStamp(e.OccurredAt),
		Source: e.Source.String(),
		Type:   e.Type, TargetHost: value.MaybeText(e.TargetHost), StatusCode: value.MaybeInt(e.StatusCode),
		Code:  value.MaybeText(e.Code),
		Bytes: e.Bytes, LatencyMS: value.MaybeInt(e.LatencyMS), ExitIP: value.MaybeText(e.ExitIP),
		Worker: value.MaybeText(e.Worker), Count: max(e.Count, 1),
		Message: value.MaybeText(e.Message), Retryable: e.Retryable, HowToFix: value.MaybeText(e.HowToFix)}
	if e.StatusCode == 0 {
		r.StatusCode = -1
	}
	return r
}

var exampleEvents = eventsReply{
	[]eventReply{{EventID: "evt_" + openapi.ExampleID, At: value.Stamp(openapi.ExampleTime), Source: "gateway",
		Type:       "tunnel",
		TargetHost: "shop.example", StatusCode: 200, Bytes: 48_213, LatencyMS: 31, ExitIP: "203.0.113.7", Count: 1}},
	endpoint.ExamplePagination,
}
