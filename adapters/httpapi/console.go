package httpapi

import (
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"agentproxy/domain"
)

// Console serves the pages for people below /console, for a client address. It returns the id of the
// agent that is signed in, empty if none is, and why it answered 503, nil if it did not.
type Console func(w http.ResponseWriter, r *http.Request, client netip.Addr) (agentID string, outage error)

const consolePath = "/console"

// consoleOperation names the pages in metrics. The document does not have them.
var consoleOperation = &operation{ID: "console"}

// serveConsole adds the pages. They are outside the API's prefix.
func (s *Server) serveConsole() {
	if s.Console == nil {
		return
	}
	serve := func(g *gin.Context) {
		c := callOf(g)
		c.op = consoleOperation
		var outage error
		c.caller.AgentID, outage = s.Console(waiter{g.Writer, c}, g.Request, s.clientAddr(g.Request))
		if outage != nil {
			s.outages.note(c, domain.ErrUnavailable, outage)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		s.engine.Handle(method, consolePath, serve)
		s.engine.Handle(method, consolePath+"/*page", serve)
	}
}
