// Package rest runs the operations of the API over HTTP, for clients of a service that may run
// elsewhere: the tools over stdio, and apx.
package rest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"agentproxy/adapters/apiclient"
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
	API *apiclient.Client
	cfg Config
}

var _ mcp.Backend = (*Client)(nil)

// New returns a client, and an error if the URL cannot be one. It connects to nothing.
func New(cfg Config) (*Client, error) {
	api, err := apiclient.New(cfg.URL, cfg.Key)
	return &Client{api, cfg}, err
}

// May returns true: the service checks what the credential may do.
func (*Client) May(string) bool { return true }

// Run runs an operation. Its error names no secret.
func (c *Client) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	a, err := c.API.Do(ctx, method, path, key, body)
	return a.Status, a.Body, err
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
