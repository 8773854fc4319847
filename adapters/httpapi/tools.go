package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/connect"
)

// Tools serves POST /mcp for an agent that was authenticated, with a body within bodyLimit.
type Tools func(w http.ResponseWriter, r *http.Request, a *Agent)

const (
	toolsPath    = "/mcp"
	metadataPath = "/.well-known/oauth-protected-resource"
)

// toolsOperation names the path in metrics. The document does not have it: its messages are those of
// the protocol.
var toolsOperation = &endpoint.Operation{ID: "call-tools"}

// mostMessages bounds a batch, which versions of the protocol before 2025-06-18 have.
const mostMessages = 20

var errOrigin = endpoint.ErrCrossSite.Msgf(
	"the Origin header names another site; call this path from a program, without the header")

// serveTools adds the path of the tools and the metadata of RFC 9728 that its 401 names. They are
// outside the API's prefix.
func (s *Server) serveTools() {
	if s.Tools == nil {
		return
	}
	s.api.Route(http.MethodPost, toolsPath, toolsOperation, func(c *endpoint.Call) {
		r := c.Request()
		c.Challenge = fmt.Sprintf("Bearer resource_metadata=%q", s.base()+metadataPath+toolsPath)
		if err := s.admitTools(c); err != nil {
			s.api.Refuse(c, err)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(c.Body)), int64(len(c.Body))
		w := c.Writer()
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		s.Tools(w, r, &Agent{s: s, c: c})
	})
	serve := func(g *gin.Context) {
		g.Header("Cache-Control", "no-cache")
		g.Header("X-Content-Type-Options", "nosniff")
		base := s.base()
		g.JSON(http.StatusOK, map[string]any{"resource": base + toolsPath, "resource_name": "agentproxy",
			"scopes_supported": account.Scopes, "bearer_methods_supported": []string{"header"},
			"resource_documentation": base + "/docs"})
	}
	for _, path := range []string{metadataPath, metadataPath + toolsPath} {
		s.both(path, serve)
	}
}

// admitTools does what comes before an operation of the API: credentials, limits and the reading of the body.
func (s *Server) admitTools(c *endpoint.Call) error {
	r := c.Request()
	if origin := r.Header.Get("Origin"); origin != "" && !s.ownOrigin(r, origin) {
		return errOrigin
	}
	if err := s.api.Identify(c); err != nil {
		return err
	}
	if err := c.ReadWhole(); err != nil {
		return err
	}
	return s.takeBatch(c)
}

// takeBatch counts each message of a batch after the first like a request.
func (s *Server) takeBatch(c *endpoint.Call) error {
	if body := bytes.TrimSpace(c.Body); len(body) == 0 || body[0] != '[' {
		return nil
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(c.Body, &messages); err != nil {
		return domain.ErrInvalid.Msgf("the body is not valid JSON")
	}
	if len(messages) > mostMessages {
		return domain.ErrInvalid.Msgf("a batch has at most %d messages; send them one by one", mostMessages)
	}
	for range max(len(messages)-1, 0) {
		if err := s.api.TakeRate(c); err != nil {
			return err
		}
	}
	return nil
}

// ownOrigin reports whether an Origin header names this service.
func (s *Server) ownOrigin(r *http.Request, origin string) bool {
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" {
		return false
	}
	public, err := url.Parse(s.cfg.PublicURL)
	return from.Host == r.Host || err == nil && from.Scheme == public.Scheme && from.Host == public.Host
}

// Agent runs operations of the API for the agent of one request, inside the process.
type Agent struct {
	s *Server
	c *endpoint.Call
}

// May reports whether the credential of the request has a permission.
func (a *Agent) May(scope string) bool { return a.c.Caller.May(account.Scope(scope)) == nil }

// Run runs an operation: its path is relative to the API's prefix and may have a query, key is its
// Idempotency-Key or empty. It returns the HTTP status and the body of the answer. The caller of Run
// has checked the permission, and the request was counted already.
func (a *Agent) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	return a.s.api.Run(ctx, a.c, method, path, key, body)
}

// StoreCredentials makes a link that shows the credentials of a session once, and returns it with its end.
func (a *Agent) StoreCredentials(ctx context.Context, sessionID string) (string, time.Time, error) {
	if err := a.s.api.Sees(ctx, a.c, sessionID); err != nil {
		return "", time.Time{}, a.s.api.RefusalOf(a.c, err)
	}
	l, err := a.s.Reveals.Issue(ctx, a.c.Caller, sessionID)
	if err != nil {
		return "", time.Time{}, a.s.api.RefusalOf(a.c, err)
	}
	return a.s.base() + endpoint.Prefix + "/reveal/" + l.Token, l.Expires, nil
}

// Reveal returns the credentials of a session for the answer itself. allowed is false unless the
// operator has allowed it.
func (a *Agent) Reveal(ctx context.Context, sessionID string) (list []connect.Proxy, allowed bool, err error) {
	if !a.s.cfg.RevealSecrets {
		return nil, false, nil
	}
	if err := a.s.api.Sees(ctx, a.c, sessionID); err != nil {
		return nil, true, a.s.api.RefusalOf(a.c, err)
	}
	v, err := a.s.Reveals.Reveal(ctx, a.c.Caller, sessionID)
	if err != nil {
		return nil, true, a.s.api.RefusalOf(a.c, err)
	}
	return a.s.gateway().Proxies(v), true, nil
}
