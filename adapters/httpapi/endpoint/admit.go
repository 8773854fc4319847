package endpoint

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/binding"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
)

// serve adds the route of an operation.
func (a *API) serve(o *Operation, handle func(*Call)) {
	path := Prefix + strings.NewReplacer("{", ":", "}", "").Replace(o.Path)
	serve := func(g *gin.Context) {
		c := CallOf(g)
		for _, p := range g.Params {
			if p.Value == "" { // a path such as /sessions//usage, which gin takes
				a.refuseRoute(g)
				return
			}
		}
		c.op = o
		if err := a.admit(c); err != nil {
			a.Refuse(c, err)
			return
		}
		handle(c)
	}
	a.Engine.Handle(o.Method, path, serve)
	if o.Method == http.MethodGet && !o.Once { // the server leaves out the body
		a.Engine.Handle(http.MethodHead, path, serve)
	}
}

// admit does what comes before the handler: credentials, limits, and the
// judgement of what was sent.
func (a *API) admit(c *Call) error {
	o := c.op
	if o.Open && o.Method != http.MethodGet && !c.inside && a.CrossSite != nil && a.CrossSite(c.gin.Request) {
		return ErrCrossSite
	}
	if !o.Open && !c.inside {
		if err := a.Identify(c); err != nil {
			return err
		}
		if o.Scope != "" {
			if err := c.Caller.May(o.Scope); err != nil {
				return err
			}
		}
	}
	if err := a.mayKey(c); err != nil {
		return err
	}
	if o.Stores {
		if err := a.mayStore(c); err != nil {
			return err
		}
	}
	if err := o.names.CheckQuery(c.gin.Request.URL.RawQuery); err != nil {
		return err
	}
	if o.Idempotent {
		if err := binding.CheckKeyHeader(c.gin.Request.Header); err != nil {
			return err
		}
	}
	if o.Before != nil {
		if err := o.Before(c); err != nil {
			return err
		}
	}
	if o.hasBody || o.Method != http.MethodGet && c.gin.Request.ContentLength != 0 {
		if err := a.readBody(c); err != nil {
			return err
		}
	}
	c.conn.Work()
	return nil
}

// mayStore refuses a call that adds rows for an agent that had as much stored as it may. A dry run adds none, and
// one under an Idempotency-Key may repeat an earlier call, which has its answer: it is refused where it is found to be
// the first.
func (a *API) mayStore(c *Call) error {
	if dry, _ := c.Query("dry_run"); dry == "true" {
		return nil
	}
	err := a.Limits.Stored.Check(c, c.Caller.AgentID)
	if err != nil && c.op.Idempotent && c.gin.GetHeader("Idempotency-Key") != "" {
		c.overBudget = err
		return nil
	}
	return err
}

// mayKey refuses a restricted key what its operation is not for.
func (a *API) mayKey(c *Call) error {
	limits := c.Caller.Limits()
	if c.op.Open || !limits.Restricted() {
		return nil
	}
	switch rule := c.op.Keys; {
	case rule == FreeKeys, rule == WholeKeys && limits.Own:
		return account.ErrKeyRestricted
	case rule == OwnSession:
		return a.Sees(c, c, c.gin.Param("session_id"))
	}
	return nil
}

// Sees returns session.ErrNotFound for a session that does not exist for the key of a call. Any other answer is left to
// who reads it.
func (a *API) Sees(ctx context.Context, c *Call, sessionID string) error {
	own := c.Caller.Spender().OwnKey()
	if own == "" {
		return nil
	}
	buyer, err := a.BoughtBy(ctx, c.Caller.AgentID, sessionID)
	if err == nil && buyer != own {
		err = session.ErrNotFound
	}
	return err
}

// Spender returns the key that makes a call, for whose budget counts what it buys.
func Spender(ctx context.Context) account.Spender { return CallIn(ctx).Caller.Spender() }

// noKey is the id of no key.
const noKey = "key_"

// KeyOf returns the key whose sessions a call asks for, which may be empty: its own where others do not exist for it.
func KeyOf(ctx context.Context, asked string) string {
	own := Spender(ctx).OwnKey()
	switch {
	case own == "" || asked == own:
		return asked
	case asked == "":
		return own
	}
	return noKey
}
