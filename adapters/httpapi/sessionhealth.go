package httpapi

import (
	"context"
	"net/http"

	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

type eventsInput struct {
	OneSession
	Paging
}

type eventReply struct {
	EventID    string     `json:"event_id"`
	At         stamp      `json:"at" doc:"When the service received it."`
	OccurredAt maybeStamp `json:"occurred_at" doc:"As the agent reported; null otherwise."`
	Source     string     `json:"source" enum:"gateway,agent,service"`
	Type       string     `json:"type"`
	TargetHost maybeText  `json:"target_host"`
	StatusCode maybeInt   `json:"status_code" doc:"null when there was no answer."`
	Code       maybeText  `json:"code" doc:"Of an answer of the gateway itself."`
	Bytes      int64      `json:"bytes"`
	LatencyMS  maybeInt   `json:"latency_ms"`
	ExitIP     maybeText  `json:"exit_ip"`
	Worker     maybeText  `json:"worker" doc:"Whose event it is; null: the session's own."`
	Message    maybeText  `json:"error_message"`
	Retryable  bool       `json:"retryable"`
	HowToFix   maybeText  `json:"how_to_fix"`
	Count      int        `json:"count" minimum:"1" doc:"How many connections it represents: equal ones that moved nothing are one event, and those beyond what is kept are counted in one without target_host a minute."`
}

type eventsReply struct {
	Items      []eventReply    `json:"items"`
	Pagination paginationReply `json:"pagination"`
}

type checkReply struct {
	OK        bool             `json:"ok"`
	ExitIP    string           `json:"exit_ip"`
	Country   maybeText        `json:"country" doc:"null when the session has none."`
	LatencyMS int64            `json:"latency_ms"`
	Protocol  session.Protocol `json:"protocol"`
}

// declareSessionViews declares what shows how a session fares.
func (s *sessionsService) declareSessionViews() {
	op(s.api, operation{
		ID:      "list-session-events",
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/events",
		Tag:     "sessions",
		Summary: "The last things that happened to a session",
		Scope:   account.SessionsRead,
		Refuses: ofSession,
		Doc:     "Newest first, kept 7 days. What an HTTP client hides about a failed CONNECT is readable here.",
		OK:      []reply{{Status: ok, Doc: "A page of events.", Data: exampleEvents}},
	}, func(ctx context.Context, in *eventsInput) (int, eventsReply, error) {
		id, err := in.id()
		if err != nil {
			return 0, eventsReply{}, err
		}
		page, err := in.page(ctx)
		if err != nil {
			return 0, eventsReply{}, err
		}
		list, err := s.Sessions.Events(ctx, caller(ctx), id, page)
		if err != nil {
			return 0, eventsReply{}, err
		}
		items, pagination := toItems(list, toEvent)
		return ok, eventsReply{items, pagination}, nil
	})
	op(s.api, operation{
		ID:      "check-session",
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/check",
		Tag:     "sessions",
		Summary: "Try one connection through the exit",
		Scope:   account.SessionsWrite,
		Doc:     "To the service's own echo. Free; 10 a minute.",
		Refuses: and(ofLive, account.ErrRateLimited, worker.ErrLimit, ports.ErrProvider, ports.ErrTimeout),
		OK: []reply{{Status: ok, Doc: "The exit " +
			"works.", Data: checkReply{true, "203.0.113.7", "US", 42, "http"}}},
	}, s.checkSession)
}

// checkInput is a session, or a worker of it.
type checkInput struct {
	OneSession
	Worker string `query:"worker" doc:"Its exit in place of the session's; made if it is new."`
}

func (s *sessionsService) checkSession(ctx context.Context, in *checkInput) (int, checkReply, error) {
	id, err := in.id()
	if err != nil {
		return 0, checkReply{}, err
	}
	if d := s.api.Limits.TakeCheck(caller(ctx)); !d.Allowed {
		return 0, checkReply{}, account.ErrRateLimited.Msgf(
			"at most 10 checks a minute; wait for the seconds in Retry-After",
		).After(
			d.RetryAfter,
		)
	}
	v, err := s.Checks.Check(ctx, caller(ctx), id, in.Worker)
	if err != nil {
		return 0, checkReply{}, err
	}
	return ok, checkReply{true, v.ExitIP, maybeText(v.Country), v.Latency.Milliseconds(), v.Protocol}, nil
}

func toEvent(e eventlog.Event) eventReply {
	r := eventReply{EventID: e.ID, At: stamp(e.At), OccurredAt: maybeStamp(e.OccurredAt), Source: e.Source.String(),
		Type: e.Type, TargetHost: maybeText(e.TargetHost), StatusCode: maybeInt(e.StatusCode), Code: maybeText(e.Code),
		Bytes: e.Bytes, LatencyMS: maybeInt(e.LatencyMS), ExitIP: maybeText(e.ExitIP),
		Worker: maybeText(e.Worker), Count: max(e.Count, 1),
		Message: maybeText(e.Message), Retryable: e.Retryable, HowToFix: maybeText(e.HowToFix)}
	if e.StatusCode == 0 {
		r.StatusCode = -1
	}
	return r
}

var exampleEvents = eventsReply{
	[]eventReply{{EventID: "evt_" + exampleID, At: stamp(exampleTime), Source: "gateway", Type: "tunnel",
		TargetHost: "shop.example", StatusCode: 200, Bytes: 48_213, LatencyMS: 31, ExitIP: "203.0.113.7", Count: 1}},
	examplePagination,
}
