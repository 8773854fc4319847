package mcp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions are what a client shows a model once.
const instructions = `agentproxy sells proxy sessions: an address that web traffic leaves from. Money is real.
Start with find_products, then quote, create_session (max_cost and purchase_id guard the money), connect.
The proxy password never passes through you: connect gives a link or a file for your program.
When a request fails call report with what you saw and follow its verdict. Call end_session when you are done:
unused traffic of a dynamic session comes back, the days left of a static one do not.`

// listTTL is how long a client may keep tools/list, in milliseconds. The list depends on the
// credential, so it is private.
const listTTL = 5 * 60 * 1000

// maxBody bounds a request of the HTTP transport, in bytes.
const maxBody = 1 << 20

// Handler serves the tools by stateless Streamable HTTP: any replica answers any call.
type Handler struct {
	version string
	log     *slog.Logger
	http    *sdk.StreamableHTTPHandler
	mu      sync.Mutex
	servers map[string]*sdk.Server // by the permissions of the credential
}

// NewHandler returns a handler of a version of the service. It logs faults of the program.
func NewHandler(version string, log *slog.Logger) *Handler {
	h := &Handler{version: version, log: log, servers: map[string]*sdk.Server{}}
	h.http = sdk.NewStreamableHTTPHandler(h.serverOf, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody,
		// The caller has checked Host and Origin.
		DisableLocalhostProtection: true,
	})
	return h
}

// backendKey finds the Backend of a request in its context.
type backendKey struct{}

// Serve answers one request of an agent that the caller has authenticated.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, b Backend) {
	a := &answer{ResponseWriter: w, status: http.StatusOK}
	s := &secrets{}
	ctx := context.WithValue(r.Context(), backendKey{}, &api{Backend: b, secrets: s})
	h.http.ServeHTTP(a, r.WithContext(ctx))
	body := a.body.String()
	if !s.revealed() {
		body = s.hide(body)
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, body) // an error means that the client is gone
}

// serverOf returns the server of the tools that a credential may call. There are few sets of
// permissions, so each is made once.
func (h *Handler) serverOf(r *http.Request) *sdk.Server {
	a, _ := r.Context().Value(backendKey{}).(*api)
	if a == nil {
		return nil
	}
	var scopes []string
	for _, scope := range scopesOf(tools) {
		if a.May(scope) {
			scopes = append(scopes, scope)
		}
	}
	key := strings.Join(scopes, " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.servers[key] == nil {
		h.servers[key] = newServer(h.version, h.log, a.May, func(ctx context.Context) *api {
			a, _ := ctx.Value(backendKey{}).(*api)
			return a
		})
	}
	return h.servers[key]
}

// ServeStdio serves the tools over a pair of streams, a message a line, until the input ends.
func ServeStdio(
	ctx context.Context, version string, log *slog.Logger, b Backend, in io.ReadCloser, out io.WriteCloser,
) error {
	s := newServer(version, log, b.May, func(context.Context) *api { return &api{Backend: b, secrets: &secrets{}} })
	return s.Run(ctx, &sdk.IOTransport{Reader: in, Writer: scrubbed{out}})
}

// scrubbed hides what looks like a secret in the messages that the SDK writes by itself, which repeat
// what a client sent.
type scrubbed struct{ io.WriteCloser }

// Write writes whole messages: the SDK calls it once for each.
func (s scrubbed) Write(b []byte) (int, error) {
	if _, err := io.WriteString(s.WriteCloser, scrub(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// newServer returns a server of the tools that may be called.
func newServer(
	version string, log *slog.Logger, may func(scope string) bool, apiOf func(context.Context) *api,
) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "agentproxy", Title: "Agent Proxy Session Service", Version: version},
		&sdk.ServerOptions{
			Instructions: instructions,
			// Without it the SDK offers logging; the list of tools changes with the credential alone.
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
				c.TTLMs, c.CacheScope = listTTL, "private"
			},
		})
	for _, t := range tools {
		if may(t.scope) {
			s.AddTool(t.declared(), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return t.call(ctx, log, apiOf(ctx), r.Params.Arguments), nil
			})
		}
	}
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if c, ok := r.(*sdk.CallToolRequest); ok && c.Params != nil && !isTool(c.Params.Name, may) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
					Message: "unknown tool, or the credential lacks its permission; tools/list has the tools"}
			}
			return next(ctx, method, r)
		}
	})
	return s
}

// answer keeps what the SDK writes, so that it can be scrubbed as a whole.
type answer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Write keeps a part of the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// WriteHeader keeps the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Flush does nothing: the answer is one JSON text.
func (a *answer) Flush() {}
