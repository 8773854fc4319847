// Package telemetry declares what agents report of their requests, and the health that follows from it.
package telemetry

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/telemetry"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// batchBodyLimit is the size of the largest telemetry batch.
const batchBodyLimit = 2 << 20

// eventFields are the fields that a single event and one of a batch share.
type eventFields struct {
	EventType    health.Type   `json:"event_type" doc:"What came of the request."`
	StatusCode   value.Decimal `json:"status_code,omitempty" nullable:"true" minimum:"0" maximum:"599" multipleOf:"1" doc:"0: no answer."`
	LatencyMS    value.Decimal `json:"latency_ms,omitempty" nullable:"true" minimum:"0" maximum:"600000" doc:"Rounded to milliseconds."`
	TargetHost   string        `json:"target_host,omitempty" nullable:"true" maxLength:"253" doc:"The host of the request, or null."`
	ErrorMessage string        `json:"error_message,omitempty" nullable:"true" maxLength:"1000" doc:"What the client saw, or null."`
	Worker       string        `json:"worker,omitempty" nullable:"true" maxLength:"32" doc:"Whose request it was; left out: the session's own exit."`
	OccurredAt   string        `json:"occurred_at,omitempty" nullable:"true" format:"date-time" doc:"Only shown. More than 5 minutes ahead is refused."`
}

// EventFields is eventFields under an exported name, by which huma reads it where it is embedded.
type EventFields = eventFields

type reportInput struct {
	sessionview.OneSession
	Body eventBody
}

type eventBody struct {
	_         struct{} `json:"-" additionalProperties:"true"`
	SessionID string   `json:"session_id,omitempty" nullable:"true" doc:"May be left out; another than in the path is refused."`
	EventFields
}

type batchBody struct {
	_      struct{}         `json:"-" additionalProperties:"true"`
	Events []batchEventBody `json:"events" minItems:"1" maxItems:"1000" doc:"The events, oldest first."`
}

type batchEventBody struct {
	_         struct{} `json:"-" additionalProperties:"true"`
	SessionID string   `json:"session_id" minLength:"1" doc:"The session."`
	EventFields
}

type reportedReply struct {
	EventID       string             `json:"event_id" doc:"Names the event."`
	SessionHealth sessionHealthShort `json:"session_health" doc:"The health after this event."`
}

type sessionHealthShort struct {
	sessionview.SessionHealthBrief
	Reason health.Reason `json:"reason" doc:"What the recommendation follows from most."`
}

type batchReply struct {
	Processed int           `json:"processed" doc:"Events that were accepted."`
	Rejected  int           `json:"rejected" doc:"How many events were refused."`
	Results   []resultReply `json:"results" doc:"One for each event, in their order."`
}

type resultReply struct {
	Index     int               `json:"index" doc:"The position in the batch, from 0."`
	SessionID string            `json:"session_id" doc:"The session."`
	Status    string            `json:"status" enum:"accepted,rejected" enumName:"EventOutcome" doc:"Its state."`
	Error     *resultErrorReply `json:"error" doc:"Why it was refused; null if it was accepted."`
}

type resultErrorReply struct {
	Code    string `json:"code" enum:"SESSION_NOT_FOUND,SESSION_EXPIRED" enumName:"EventRefusal" doc:"For programs; it does not change."`
	Message string `json:"message" doc:"For people: what is wrong and what to do."`
}

// UseCases are the use cases that the operations on telemetry call.
type UseCases struct{ Telemetry *telemetry.Service }

// service serves the operations on telemetry.
type service struct {
	UseCases
	api *endpoint.API
}

// Declare declares what agents report, and the health that follows from it.
func Declare(a *endpoint.API, u UseCases) {
	s := &service{u, a}
	s.declareReports()
	s.declareHealth()
}

// declareReports declares what agents report.
func (s *service) declareReports() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "report-event",
		Keys:    endpoint.OwnSession,
		Stores:  true,
		Method:  http.MethodPost,
		Path:    "/sessions/{session_id}/report-event",
		Tag:     "telemetry",
		Summary: "Report what came of one request",
		Doc: "One request's outcome. Report failures and successes: the score is a rate. The batch takes " +
			"up to 1,000 at once.",
		Scope:   account.TelemetryWrite,
		Refuses: endpoint.And(sessionview.OfSession, session.ErrOver),
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "Counted, and what follows from it.", Data: exampleReported}},
		Example: map[string]any{
			"event_type":  "http_error",
			"status_code": 403,
			"latency_ms":  812,
			"target_host": "shop.example",
		},
	}, s.report)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "report-batch",
		Keys:      endpoint.AnyKey,
		Stores:    true,
		Method:    http.MethodPost,
		Path:      "/telemetry/batch",
		Tag:       "telemetry",
		Summary:   "Report up to 1,000 events",
		Scope:     account.TelemetryWrite,
		OwnBody:   batchBody{},
		BodyLimit: batchBodyLimit,
		Doc: "A malformed event refuses the whole call. One for a session that is unknown or over is rejected " +
			"alone. " +
			"At most 2 MiB.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "What was accepted.", Data: exampleBatch}},
		Example: map[string]any{
			"events": []any{map[string]any{"session_id": "sess_" + openapi.ExampleID, "event_type": "success",
				"status_code": 200, "latency_ms": 240, "target_host": "shop.example"}},
		},
	}, s.reportBatch)
}

func (s *service) report(ctx context.Context, in *reportInput) (int, reportedReply, error) {
	if in.Body.SessionID != "" && in.Body.SessionID != in.SessionID {
		return 0, reportedReply{}, domain.InvalidField(
			"session_id",
			"differs from the session in the path; leave it out",
		)
	}
	report, err := in.Body.report()
	if err != nil {
		return 0, reportedReply{}, err
	}
	event := telemetry.ReportedEvent{SessionID: in.SessionID, Worker: in.Body.Worker, Report: report}
	out, err := s.reports(ctx).Report(ctx, endpoint.Caller(ctx), event)
	return http.StatusOK, reportedReply{
		out.EventID,
		sessionHealthShort{sessionview.ToHealthBrief(out.Verdict), out.Verdict.Reason},
	}, err
}

// reporting takes reports.
type reporting interface {
	Report(ctx context.Context, agentID string, e telemetry.ReportedEvent) (telemetry.Reported, error)
	Batch(ctx context.Context, agentID string, events []telemetry.ReportedEvent) ([]telemetry.EventResult, error)
}

// reports returns what takes the reports of the caller.
func (s *service) reports(ctx context.Context) reporting {
	if endpoint.CallIn(ctx).Caller.Trial {
		return telemetry.OnTrial{Service: s.Telemetry}
	}
	return s.Telemetry
}

// report converts the fields to what the domain checks.
func (e eventFields) report() (health.Report, error) {
	r := health.Report{Type: string(e.EventType), TargetHost: e.TargetHost, ErrorMessage: e.ErrorMessage}
	if e.StatusCode.Given() {
		r.StatusCode = new(statusCode([]byte(e.StatusCode)))
	}
	if e.LatencyMS.Given() {
		r.LatencyMS = new(latency([]byte(e.LatencyMS)))
	}
	if e.OccurredAt != "" {
		t, issue := value.ParseTime(e.OccurredAt)
		if issue != "" {
			return r, domain.InvalidField("occurred_at", "%s", issue)
		}
		r.OccurredAt = &t
	}
	return r, nil
}

func (s *service) reportBatch(ctx context.Context, _ *struct{}) (int, batchReply, error) {
	events, err := decodeBatch(endpoint.CallIn(ctx).Body, endpoint.CallIn(ctx).BodyFields())
	if err != nil {
		return 0, batchReply{}, err
	}
	if err := endpoint.Charge(ctx, len(events)); err != nil {
		return 0, batchReply{}, err
	}
	seen, err := s.seen(ctx, events)
	if err != nil {
		return 0, batchReply{}, err
	}
	results, err := s.reports(ctx).Batch(ctx, endpoint.Caller(ctx), seen)
	if err != nil {
		return 0, batchReply{}, err
	}
	r := batchReply{Results: make([]resultReply, len(results))}
	for i, one := range results {
		r.Results[i] = resultReply{Index: i, SessionID: events[i].SessionID, Status: "accepted"}
		if one.Err == nil {
			r.Processed++
			continue
		}
		r.Rejected++
		r.Results[i].Status, r.Results[i].Error = "rejected", &resultErrorReply{one.Err.Code, one.Err.Message}
	}
	return http.StatusOK, r, nil
}

// unseen is no session.
const unseen = "sess_unseen"

// seen returns the events with those of sessions that do not exist for the key of the call as of no session.
func (s *service) seen(ctx context.Context, events []telemetry.ReportedEvent) ([]telemetry.ReportedEvent, error) {
	c := endpoint.CallIn(ctx)
	if !c.Caller.Limits().Own {
		return events, nil
	}
	hidden := map[string]bool{}
	out := slices.Clone(events)
	for i, e := range events {
		if _, known := hidden[e.SessionID]; !known {
			err := s.api.Sees(ctx, c, e.SessionID)
			if err != nil && !errors.Is(err, session.ErrNotFound) {
				return nil, err
			}
			hidden[e.SessionID] = err != nil
		}
		if hidden[e.SessionID] && e.SessionID != "" {
			out[i].SessionID = unseen
		}
	}
	return out, nil
}

var (
	exampleReported = reportedReply{"evt_" + openapi.ExampleID,
		sessionHealthShort{sessionview.ExampleVerdict, "block_rate"}}
	exampleBatch = batchReply{1, 1, []resultReply{{0, openapi.ExampleSession, "accepted", nil},
		{
			1,
			"sess_unknown",
			"rejected",
			&resultErrorReply{"SESSION_NOT_FOUND", "no session has this id; list your sessions to find it"},
		}}}
)
