// Package rest runs the operations of the API over HTTP, for clients of a service that may run
// elsewhere: the tools over stdio, and apx.
package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentproxy/adapters/mcp"
	"agentproxy/domain/connect"
)

// Config is where the service is and what a client may do.
type Config struct {
	URL    string // of the API, with or without /v1
	Key    string // an API key or an access token; empty: none is sent
	Dir    string // of the files with credentials; created with mode 0700
	Reveal bool   // whether answers of tools may hold credentials
}

// Client calls one service. It implements mcp.Backend.
type Client struct {
	cfg  Config
	base string
	http *http.Client
}

var _ mcp.Backend = (*Client)(nil)

const (
	timeout   = 2 * time.Minute // a provider may be slow to deliver
	maxAnswer = 8 << 20         // bytes
)

// New returns a client, and an error if the URL cannot be one. It connects to nothing.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("the URL of the service must be http:// or https:// and a host, such as http://127.0.0.1:8080")
	}
	base := strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1")
	return &Client{cfg: cfg, base: base + "/v1", http: &http.Client{
		Timeout: timeout,
		// The variables for proxies may name a session that this very client bought. Redirects would
		// send the key elsewhere.
		Transport:     &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 20 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// May returns true: the service checks what the credential may do.
func (*Client) May(string) bool { return true }

// Run runs an operation. Its error names no secret.
func (c *Client) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	switch {
	case strings.HasPrefix(c.cfg.Key, "ak_"):
		r.Header.Set("X-API-Key", c.cfg.Key)
	case c.cfg.Key != "":
		r.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("call the service: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of the service: %w", err)
	}
	return resp.StatusCode, answer, nil
}

// StoreCredentials writes the credentials of a session into a file that a shell evaluates, readable
// by its owner alone, and returns its path.
func (c *Client) StoreCredentials(ctx context.Context, sessionID string) (string, time.Time, error) {
	list, err := mcp.Proxies(ctx, c, sessionID)
	if err != nil {
		return "", time.Time{}, err
	}
	path, err := c.write(sessionID+".env", connect.Env(list))
	return path, time.Time{}, err
}

// write replaces a file as a whole.
func (c *Client) write(name, text string) (string, error) {
	dir, err := filepath.Abs(c.cfg.Dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	path := filepath.Join(dir, filepath.Base(name))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return path, nil
}

// Reveal returns the credentials of a session, if the configuration allows it.
func (c *Client) Reveal(ctx context.Context, sessionID string) ([]connect.Proxy, bool, error) {
	if !c.cfg.Reveal {
		return nil, false, nil
	}
	list, err := mcp.Proxies(ctx, c, sessionID)
	return list, true, err
}
