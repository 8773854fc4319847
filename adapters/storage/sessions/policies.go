package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"agentproxy/adapters/storage/work"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// policies keeps the rules of sessions.
type policies struct{ *work.Unit }

// Policies returns the rules of sessions in a unit.
func Policies(u *work.Unit) ports.Policies { return policies{u} }

// policyBody is what of a policy is stored as JSON.
type policyBody struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	Ports []string `json:"ports,omitempty"`
}

func (r policies) Get(_ context.Context, sessionID string) (policy.Own, error) {
	var mode, text string
	err := r.Row(`SELECT mode, body FROM session_policies WHERE session_id = ?1`, sessionID).Scan(&mode, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return policy.Own{}, nil
	}
	if err != nil {
		return policy.Own{}, fmt.Errorf("read the policy of %s: %w", sessionID, err)
	}
	var b policyBody
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return policy.Own{}, fmt.Errorf("read the policy of %s: %w", sessionID, err)
	}
	return policy.Own{Mode: policy.Mode(mode), Allow: b.Allow, Deny: b.Deny, Ports: b.Ports}, nil
}

// putPolicy finds the session too, so that an unknown one changes no row.
const putPolicy = `INSERT INTO session_policies (session_id, mode, body)
	SELECT s.id, ?2, ?3 FROM sessions s WHERE s.id = ?1
	ON CONFLICT (session_id) DO UPDATE SET mode = excluded.mode, body = excluded.body`

func (r policies) Put(_ context.Context, sessionID string, own policy.Own) error {
	body, err := json.Marshal(policyBody{own.Allow, own.Deny, own.Ports})
	if err != nil {
		return fmt.Errorf("store the policy of %s: %w", sessionID, err)
	}
	n, err := r.Exec(putPolicy, sessionID, string(own.Mode), string(body))
	if err != nil {
		return fmt.Errorf("store the policy of %s: %w", sessionID, err)
	}
	if n == 0 {
		return session.ErrNotFound
	}
	return r.NoteChange("", sessionID)
}
