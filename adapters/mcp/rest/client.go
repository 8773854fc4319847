// Package rest runs the operations of the API over HTTP, for clients of a service that may run
// elsewhere: the tools over stdio, and apx.
package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentproxy/adapters/apiclient"
	"agentproxy/adapters/mcp"
	"agentproxy/domain/connect"
)

// Config is where the service is and what a client may do.
type Config struct {
	URL    string // of the API, with or without /v1
	Key    string // an API key or an access token; empty: none is sent
	Dir    string // of the files with credentials; created with mode 0700; empty: none are written
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

// Run runs an operation. Its error names no secret, and what to set where the service or the key is a wrong one.
func (c *Client) Run(ctx context.Context, method, path, key string, body []byte) (int, []byte, error) {
	a, err := c.API.Do(ctx, method, path, key, body)
	switch {
	case err != nil && ctx.Err() == nil:
		dial, ok := errors.AsType[*net.OpError](err)
		return 0, nil, mcp.Refuse("SERVICE_UNAVAILABLE", "the service at "+c.cfg.URL+" cannot be reached",
			"Check that it runs, and that AGENTPROXY_URL is the address of its API; with the same purchase_id a repeated "+
				"call buys once.", !ok || dial.Op != "dial")
	case err == nil && !isAnswer(a.Header.Get("Content-Type")):
		return 0, nil, mcp.Refuse("SERVICE_UNAVAILABLE", "what answers at "+c.cfg.URL+" is not the API of the service",
			"Set AGENTPROXY_URL to the address of the API and start this program again.", false)
	case err == nil && a.Status == http.StatusUnauthorized && c.cfg.Key == "":
		return 0, nil, mcp.Refuse("AUTH_INVALID_KEY", "this program has no API key",
			"Set AGENTPROXY_API_KEY, or run apx register, which opens an account and keeps its key; then start this program "+
				"again.", false)
	case err == nil && a.Status == http.StatusUnauthorized:
		return 0, nil, mcp.Refuse("AUTH_INVALID_KEY", "the service at "+c.cfg.URL+" does not take the API key",
			"Check AGENTPROXY_API_KEY, or the key that apx register stored, and start this program again.", false)
	}
	return a.Status, a.Body, err
}

// isAnswer reports whether a content is one that the API has: JSON, or the picture of an address.
func isAnswer(kind string) bool {
	return strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "image/")
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
	if c.cfg.Dir == "" {
		return "", mcp.Refuse("NO_FOLDER", "this program has no folder of its own for the credentials",
			"Set HOME or XDG_CONFIG_HOME to a folder of the user that runs it, and start it again.", false)
	}
	dir, err := filepath.Abs(c.cfg.Dir)
	if err == nil {
		err = OwnFolder(dir)
	}
	switch {
	case errors.Is(err, ErrFolder):
		return "", mcp.Refuse("NO_FOLDER", "others may write into "+dir+", so no credentials are stored there",
			"Make it a folder of the user that runs this program, with mode 0700.", false)
	case err != nil:
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
