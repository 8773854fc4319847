package mcp

import (
	"context"

	"agentproxy/domain/diagnose"
)

func diagnoseFailure(ctx context.Context, a *api, in struct {
	SessionID string `json:"session_id"`
	ErrorText string `json:"error_text"`
	Status    int    `json:"status"`
	Client    string `json:"client"`
	Host      string `json:"target_host"`
}) (reply, error) {
	seen := diagnose.Observation{Error: in.ErrorText, Status: in.Status, Client: in.Client, Host: in.Host}
	s, causes, err := a.causes(ctx, in.SessionID, seen)
	if err != nil {
		return reply{}, err
	}
	return reply{data: map[string]any{"session_id": s.SessionID, "session_status": s.Status, "causes": causes},
		next: afterCause(s.Status, causes[0])}, nil
}

// causes joins what a client reports with the event log of a session. Ages are by the service's clock.
func (a *api) causes(ctx context.Context, id string, seen diagnose.Observation) (sessionData, []diagnose.Cause, error) {
	s, err := a.session(ctx, id)
	if err != nil {
		return s, nil, err
	}
	events, err := a.events(ctx, id)
	if err != nil {
		return s, nil, err
	}
	list := make([]diagnose.Event, len(events))
	for i, e := range events {
		list[i] = diagnose.Event{Age: a.now.Sub(e.At), Source: e.Source, Type: e.Type, Host: value(e.TargetHost),
			Status: value(e.StatusCode), Code: value(e.Code), HowToFix: value(e.HowToFix), Bytes: e.Bytes}
	}
	return s, diagnose.Causes(seen, diagnose.Session{Status: s.Status, Reason: value(s.StatusReason)}, list), nil
}

func afterCause(status string, c diagnose.Cause) string {
	switch {
	case status == "creating":
		return "Call get_session until the status is active."
	case status != "active":
		return "Call create_session for another session."
	case c.Certainty == diagnose.Possible:
		return "Call check_proxy: if the exit works, the fault is at the target or in the client."
	case c.Retry:
		return "Do what_to_do, try again, and call report with what comes of it."
	}
	return "Do what_to_do before another request; check_proxy shows whether the exit works."
}

// Diagnose returns why a request through a session failed, for a client of the API.
func Diagnose(ctx context.Context, b Backend, id string, seen diagnose.Observation) ([]diagnose.Cause, error) {
	_, causes, err := (&api{Backend: b, secrets: &secrets{}}).causes(ctx, id, seen)
	return causes, err
}
