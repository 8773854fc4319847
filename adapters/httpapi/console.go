package httpapi

import (
	"net/http"
	"net/netip"
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
	serve := func(c *call) {
		var outage error
		c.caller.AgentID, outage = s.Console(c.writer(), c.request(), s.api.clientAddr(c.request()))
		if outage != nil {
			s.api.noteOutage(c, outage)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		s.api.route(method, consolePath, consoleOperation, serve)
		s.api.route(method, consolePath+"/*page", consoleOperation, serve)
	}
}
