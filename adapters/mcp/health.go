package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"time"

	"agentproxy/domain"
)

type healthData struct {
	healthBrief
	SuccessRate       json.Number `json:"success_rate"`
	Reason            string      `json:"reason"`
	RetryAfterSeconds *int64      `json:"retry_after_seconds"`
	Workers           *struct {
		Total  int `json:"total"`
		AtRisk int `json:"at_risk"`
	} `json:"workers,omitempty"`
}

// eventData is what the tools read of an event. The agent's own error_message is not among it: it may
// hold a secret.
type eventData struct {
	At         time.Time `json:"at"`
	Source     string    `json:"source"`
	Type       string    `json:"type"`
	TargetHost *string   `json:"target_host"`
	StatusCode *int      `json:"status_code"`
	Code       *string   `json:"code"`
	ExitIP     *string   `json:"exit_ip"`
	Worker     *string   `json:"worker"`
	Bytes      int64     `json:"bytes"`
	Retryable  bool      `json:"retryable"`
	HowToFix   *string   `json:"how_to_fix"`
	Count      int       `json:"count"`
}

// events returns the newest events of a session, the newest first.
func (a *api) events(ctx context.Context, id string) ([]eventData, error) {
	var list struct {
		Items []eventData `json:"items"`
	}
	err := a.get(ctx, pathOf(id, "/events"), url.Values{"page_size": {"100"}}, &list)
	return list.Items, err
}

// exits returns the addresses that the last rotation of a session, or of a worker of it, left and took,
// as the events have them; nil where they have none.
func exits(newestFirst []eventData, worker string) (was, is *string) {
	rotated := false
	for _, e := range newestFirst {
		switch {
		case e.ExitIP == nil || value(e.Worker) != worker:
		case !rotated:
			is, rotated = e.ExitIP, e.Type == "rotated"
		case was == nil:
			was = e.ExitIP
		}
	}
	if !rotated {
		return nil, nil
	}
	return was, is
}

// Exits returns the addresses that the last rotation of a session left and took, for a client of the API; nil where
// its events have none.
func Exits(ctx context.Context, b Backend, id string) (was, is *string, err error) {
	events, err := (&api{Backend: b, secrets: &secrets{}}).events(ctx, id)
	was, is = exits(events, "")
	return was, is, err
}

const mostFailures = 5

// failures are the types of events that are failures, from any source.
var failures = map[string]bool{"http_error": true, "captcha": true, "timeout": true, "block": true, "rate_limit": true,
	"failed": true, "renewal_failed": true}

// failed returns the newest failures.
func failed(events []eventData) []failure {
	list := []failure{}
	for _, e := range events {
		bad := e.Code != nil || failures[e.Type] || e.StatusCode != nil && *e.StatusCode >= 400
		if !bad || e.Type == "rotated" {
			continue
		}
		if len(list) == mostFailures {
			break
		}
		list = append(list, failure{At: e.At, Source: e.Source, Type: e.Type, Host: hostOf(e.TargetHost),
			Status: e.StatusCode, Code: e.Code, Worker: e.Worker, HowToFix: e.HowToFix, Retryable: e.Retryable})
	}
	return list
}

type failure struct {
	At        time.Time `json:"at"`
	Source    string    `json:"source"`
	Type      string    `json:"type"`
	Host      *string   `json:"target_host,omitempty"`
	Status    *int      `json:"status_code,omitempty"`
	Code      *string   `json:"code,omitempty"`
	Worker    *string   `json:"worker,omitempty"`
	HowToFix  *string   `json:"how_to_fix,omitempty"`
	Retryable bool      `json:"retryable"`
}

var hostText = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,253}$`)

// hostOf returns a host that was reported, if it can be one.
func hostOf(host *string) *string {
	if host == nil || !hostText.MatchString(*host) {
		return nil
	}
	return host
}

func getSession(ctx context.Context, a *api, in ofSession) (reply, error) {
	s, err := a.session(ctx, in.SessionID)
	if err != nil {
		return reply{}, err
	}
	var h healthData
	if err := a.get(ctx, pathOf(in.SessionID, "/health"), nil, &h); err != nil {
		return reply{}, err
	}
	events, err := a.events(ctx, in.SessionID)
	if err != nil {
		return reply{}, err
	}
	return reply{data: map[string]any{"session_id": s.SessionID, "type": s.Type, "status": s.Status,
		"status_reason": s.StatusReason, "product_no": s.ProductNo, "location": s.Location, "rotation": s.Rotation,
		"usage": s.Usage, "cost": s.Cost, "expires_at": s.ExpiresAt, "failure": s.Failure, "health": h,
		"last_failures": failed(events)}, next: afterHealth(s.Status, h)}, nil
}

// afterHealth returns the next step for a state.
func afterHealth(status string, h healthData) string {
	switch {
	case status == "creating":
		return "Call get_session again in a few seconds."
	case status != "active":
		return "The session is over: call create_session for another one."
	case h.Recommendation == "rotate_now":
		return "Call rotate before the next request."
	case h.Recommendation == "consider_rotate":
		return "Go on, and call rotate if failures continue."
	case h.Recommendation == "pause":
		return "Wait for retry_after_seconds, then go on and call report."
	}
	return "Go on, and call report with what your requests meet."
}

func report(ctx context.Context, a *api, in struct {
	SessionID string           `json:"session_id"`
	Events    []map[string]any `json:"events"`
}) (reply, error) {
	for _, e := range in.Events {
		e["session_id"] = in.SessionID
	}
	var done struct {
		Processed int `json:"processed"`
		Results   []struct {
			Error *refusal `json:"error"`
		} `json:"results"`
	}
	if err := a.post(ctx, "/telemetry/batch", "", map[string]any{"events": in.Events}, &done); err != nil {
		return reply{}, err
	}
	if done.Processed == 0 && len(done.Results) > 0 && done.Results[0].Error != nil {
		return reply{}, done.Results[0].Error
	}
	var h healthData
	if err := a.get(ctx, pathOf(in.SessionID, "/health"), nil, &h); err != nil {
		return reply{}, err
	}
	return reply{data: map[string]any{"accepted": done.Processed, "verdict": h.Recommendation, "reason": h.Reason,
		"health_score": h.HealthScore, "risk_level": h.RiskLevel, "retry_after_seconds": h.RetryAfterSeconds},
		next: afterHealth("active", h)}, nil
}

// sum adds two amounts.
func sum(x, y json.Number) json.Number {
	a, err := domain.ParseMoney(x.String())
	if err != nil {
		return x
	}
	b, err := domain.ParseMoney(y.String())
	if err != nil {
		return x
	}
	return json.Number((a + b).String())
}
