package console

import (
	"net/http"

	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
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
	Back domain.Money // what is released or refunded at least, as far as it is known
}

func (c *Console) endPage(v *view) error {
	s, err := c.readSession(v)
	if err != nil {
		return err
	}
	d := endData{View: s}
	if s.Type == session.Dynamic {
		d.Back = s.Cost.Held
	}
	return v.show(http.StatusOK, "end", v.frame("End "+s.ID+"?", d))
}

// end ends a session. Repeating it changes nothing.
func (c *Console) end(v *view) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	if _, err := c.Sessions.Terminate(v, v.caller.AgentID, id); err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "ended")
}
