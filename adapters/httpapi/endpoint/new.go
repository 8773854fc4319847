package endpoint

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// New returns an API without operations.
func New(cfg Config) *API {
	a := &API{Config: cfg, Engine: newEngine(), ops: map[string]*Operation{}, metrics: newMetrics()}
	a.outages = newOutages(cfg.Log, cfg.Clock, a.metrics)
	a.Engine.Use(a.observe, a.guard)
	a.Engine.NoRoute(a.refuseRoute)
	a.Engine.NoMethod(func(c *gin.Context) {
		allow := strings.Split(c.Writer.Header().Get("Allow"), ", ")
		slices.Sort(allow)
		a.Refuse(CallOf(c), errNoMethod.With("allow", allow))
	})
	a.newDocument()
	return a
}

func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false // see ClientAddr
	return e
}

// guard refuses what is not meant for this server.
func (a *API) guard(c *gin.Context) {
	if a.Misplaced == nil {
		return
	}
	if err := a.Misplaced(c.Request); err != nil {
		c.Writer.Header()["Connection"] = []string{"close"}
		a.Refuse(CallOf(c), err)
		c.Abort()
	}
}

// Route adds a path that the document does not have: o names it in metrics and in the limits of its body.
func (a *API) Route(method, path string, o *Operation, serve func(*Call)) {
	a.Engine.Handle(method, path, func(g *gin.Context) {
		c := CallOf(g)
		c.op = o
		serve(c)
	})
}
