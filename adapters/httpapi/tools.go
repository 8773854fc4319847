package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

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
var toolsOperation = &operation{ID: "call-tools"}

// mostMessages bounds a batch, which versions of the protocol before 2025-06-18 have.
const mostMessages = 20

// waiter is a writer that notes when the answer begins: the client may read it slowly.
type waiter struct {
	http.ResponseWriter
	call *call
}

// WriteHeader begins the answer.
func (w waiter) WriteHeader(status int) {
	if w.call.conn.ShouldClose() {
		w.Header()["Connection"] = closing
	}
	w.call.conn.Wait()
	w.ResponseWriter.WriteHeader(status)
}

var errOrigin = errCrossSite.Msgf(
	"the Origin header names another site; call this path from a program, without the header")

// serveTools adds the path of the tools and the metadata of RFC 9728 that its 401 names. They are
// outside the API's prefix.
func (s *Server) serveTools() {
	if s.Tools == nil {
		return
	}
	s.engine.POST(toolsPath, func(g *gin.Context) {
		c := callOf(g)
		c.op = toolsOperation
		c.challenge = fmt.Sprintf("Bearer resource_metadata=%q", s.baseURL(g.Request)+metadataPath+toolsPath)
		if err := s.admitTools(c); err != nil {
			s.refuse(c, err)
			return
		}
		g.Request.Body, g.Request.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		g.Header("Cache-Control", "no-store")
		g.Header("X-Content-Type-Options", "nosniff")
		s.Tools(waiter{g.Writer, c}, g.Request, &Agent{s: s, c: c})
	})
	serve := func(g *gin.Context) {
		g.Header("Cache-Control", "no-cache")
		g.Header("X-Content-Type-Options", "nosniff")
		base := s.baseURL(g.Request)
		g.JSON(http.StatusOK, map[string]any{"resource": base + toolsPath, "resource_name": "agentproxy",
			"scopes_supported": account.Scopes, "bearer_methods_supported": []string{"header"},
			"resource_documentation": base + "/docs"})
	}
	for _, path := range []string{metadataPath, metadataPath + toolsPath} {
		s.engine.GET(path, serve)
		s.engine.HEAD(path, serve)
	}
}

// admitTools does what admit does for an operation.
func (s *Server) admitTools(c *call) error {
	r := c.gin.Request
	if origin := r.Header.Get("Origin"); origin != "" && !s.ownOrigin(r, origin) {
		return errOrigin
	}
	if err := s.authenticate(c); err != nil {
		return err
	}
	c.conn.Trust()
	if err := s.takeRate(c); err != nil {
		return err
	}
	if r.ContentLength > bodyLimit {
		return errTooLarge.Msgf("the body is larger than %d bytes; send less at a time", bodyLimit)
	}
	body, err := readAll(r.Body, int(max(r.ContentLength, 0)), bodyLimit)
	if err != nil {
		return err
	}
	c.body = body
	c.conn.Work()
	return s.takeBatch(c)
}

// takeBatch counts each message of a batch after the first like a request.
func (s *Server) takeBatch(c *call) error {
	if body := bytes.TrimSpace(c.body); len(body) == 0 || body[0] != '[' {
		return nil
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(c.body, &messages); err != nil {
		return domain.ErrInvalid.Msgf("the body is not valid JSON")
	}
	if len(messages) > mostMessages {
		return domain.ErrInvalid.Msgf("a batch has at most %d messages; send them one by one", mostMessages)
	}
	for range max(len(messages)-1, 0) {
		if err := s.takeRate(c); err != nil {
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

// baseURL returns where clients reach the service: the configured address, or the one that the
// request used.
func (s *Server) baseURL(r *http.Request) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimSuffix(s.cfg.PublicURL, "/")
	}
	return "http://" + r.Host
}

// Agent runs operations of the API for the agent of one request, inside the process.
type Agent struct {
	s *Server
	c *call
}

// May reports whether the credential of the request has a permission.
func (a *Agent) May(scope string) bool { return a.c.caller.May(account.Scope(scope)) == nil }

// agentKey finds the call of the tools in the context of an operation that it runs.
type agentKey struct{}

// outerCall returns the call that an operation runs for, or nil.
func outerCall(ctx context.Context) *call {
	outer, _ := ctx.Value(agentKey{}).(*call)
	return outer
}

// Run runs an operation: its path is relative to the API's prefix and may have a query, key is its
// Idempotency-Key or empty. It returns the HTTP status and the body of the answer. The caller of Run
// has checked the permission, and the request was counted already.
func (a *Agent) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	ctx = context.WithValue(ctx, agentKey{}, a.c)
	r, err := http.NewRequestWithContext(ctx, method, Prefix+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Host, r.RemoteAddr = a.c.gin.Request.Host, a.c.gin.Request.RemoteAddr
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	a.s.engine.ServeHTTP(w, r)
	return w.status, w.body.Bytes(), nil
}

// StoreCredentials makes a link that shows the credentials of a session once, and returns it with its end.
func (a *Agent) StoreCredentials(ctx context.Context, sessionID string) (string, time.Time, error) {
	l, err := a.s.Reveals.Issue(ctx, a.c.caller.AgentID, sessionID)
	if err != nil {
		return "", time.Time{}, a.s.refusalOf(a.c, err)
	}
	return a.s.baseURL(a.c.gin.Request) + Prefix + "/reveal/" + l.Token, l.Expires, nil
}

// Reveal returns the credentials of a session for the answer itself. allowed is false unless the
// operator has allowed it.
func (a *Agent) Reveal(ctx context.Context, sessionID string) (list []connect.Proxy, allowed bool, err error) {
	if !a.s.cfg.RevealSecrets {
		return nil, false, nil
	}
	v, err := a.s.Reveals.Reveal(ctx, a.c.caller.AgentID, sessionID)
	if err != nil {
		return nil, true, a.s.refusalOf(a.c, err)
	}
	return a.s.proxies(v), true, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (r *recorder) Header() http.Header { return r.header }

// Write adds to the body.
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }
