package endpoint

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/binding"
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
