package endpoint

import (
	"bytes"
	"context"
	"net/http"
)

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

// Run runs an operation inside the process for the agent of a call. Its path is relative to Prefix and may
// have a query, key is its Idempotency-Key or empty. It returns the HTTP status and the body of the answer.
// It neither counts the request nor checks the permission again.
func (a *API) Run(ctx context.Context, c *Call, method, path, key string, body []byte) (int, []byte, error) {
	ctx = context.WithValue(ctx, agentKey{}, c)
	r, err := http.NewRequestWithContext(ctx, method, Prefix+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Host, r.RemoteAddr = c.gin.Request.Host, c.gin.Request.RemoteAddr
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	a.Engine.ServeHTTP(w, r)
	return w.status, w.body.Bytes(), nil
}
