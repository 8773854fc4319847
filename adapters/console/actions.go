package console

import (
	"net/http"

	"agentproxy/app/sessions"
	"agentproxy/app/settlement"
	"agentproxy/app/workers"
	"agentproxy/domain/account"
	"agentproxy/domain/health"
)

func (c *Console) rotate(v *view) error {
	id, call, err := v.sessionCall()
	if err != nil {
		return err
	}
	_, err = c.Sessions.Rotate(v, sessions.Rotate{AgentID: v.caller.AgentID, SessionID: id,
		Reason: health.RotationReason(v.r.PostFormValue("reason")), Call: call,
		CloseConnections: v.r.PostFormValue("close_connections") == "yes"})
	if err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "rotated")
}

// rotateWorker gives a worker another exit.
func (c *Console) rotateWorker(v *view) error {
	id, call, err := v.sessionCall()
	if err != nil {
		return err
	}
	_, _, err = c.Workers.Rotate(v, workers.Rotate{AgentID: v.caller.AgentID, SessionID: id,
		Name: v.r.PathValue("worker"), Call: call})
	if err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "worker-rotated")
}

func (c *Console) passwordPage(v *view) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := sessionData{View: s, Key: c.IDs.New("form_")}
	return v.show(http.StatusOK, "password", v.frame("A new proxy password?", d))
}

// replacePassword gives a session another password, which the page of the session reveals.
func (c *Console) replacePassword(v *view) error {
	id, call, err := v.sessionCall()
	if err != nil {
		return err
	}
	if d := c.Limits.TakePassword(v.caller.AgentID, v.caller.PerMinute); !d.Allowed {
		return account.ErrRateLimited.Msgf("too many new passwords; wait %d seconds", seconds(d.RetryAfter)).
			After(d.RetryAfter)
	}
	_, err = c.Sessions.ReplacePassword(v, sessions.ReplacePassword{AgentID: v.caller.AgentID, SessionID: id, Call: call,
		CloseConnections: v.r.PostFormValue("close_connections") == "yes"})
	if err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "password")
}

// endData is what comes of ending a session.
type endData struct {
	sessions.View
	settlement.Ending
}

func (c *Console) endPage(v *view) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	e, err := sessions.Endings{Service: c.Sessions}.Try(v, v.caller.AgentID, s.ID)
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, "end", v.frame("End "+s.ID+"?", endData{s, e}))
}

// endSession ends a session. Repeating it changes nothing.
func (c *Console) endSession(v *view) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	if _, err := c.Sessions.Terminate(v, v.caller.AgentID, id); err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "ended")
}
