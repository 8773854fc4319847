package console

import (
	"net/http"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

func (c *Console) rotate(v *visit) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	call, err := v.formCall()
	if err != nil {
		return err
	}
	_, err = c.Sessions.Rotate(v, sessions.Rotate{AgentID: v.caller.AgentID, SessionID: id,
		Reason: health.RotationReason(v.r.PostFormValue("reason")), Call: call})
	if err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "rotated")
}

// endData is what comes of ending a session.
type endData struct {
	sessions.View
	Back domain.Money // what is released or refunded at least, as far as it is known
}

func (c *Console) endPage(v *visit) error {
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
func (c *Console) end(v *visit) error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	if _, err := c.Sessions.Terminate(v, v.caller.AgentID, id); err != nil {
		return err
	}
	return v.leave("/sessions/"+id, "ended")
}
