package httpapi

import (
	"net/http"
	"net/netip"

	"agentproxy/adapters/httpapi/endpoint"
)

// Console serves the pages for people below /console, for a client address. It returns the id of the
// agent that is signed in, empty if none is, and why it answered 503, nil if it did not.
type Console func(w http.ResponseWriter, r *http.Request, client netip.Addr) (agentID string, outage error)

const consolePath = "/console"

// consoleOperation names the pages in metrics. The document does not have them.
var consoleOperation = &endpoint.Operation{ID: "console"}

// serveConsole adds the pages. They are outside the API's prefix.
func (s *Server) serveConsole() {
	if s.Console == nil {
		return
	}
	serve := func(c *endpoint.Call) {
		var outage error
		c.Caller.AgentID, outage = s.Console(c.Writer(), c.Request(), s.api.ClientAddr(c.Request()))
		if outage != nil {
			s.api.NoteOutage(c, outage)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		s.api.Route(method, consolePath, consoleOperation, serve)
		s.api.Route(method, consolePath+"/*page", consoleOperation, serve)
	}
}
