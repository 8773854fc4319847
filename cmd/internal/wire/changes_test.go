package wire_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/gateway"
	"agentproxy/app/accounts"
	"agentproxy/cmd/internal/wire"
)

// What ends sessions reaches their open tunnels as a change, of this process and of another on the same database:
// the gateway here asks by itself once a day.
func TestChangesReachOpenTunnels(t *testing.T) {
	t.Parallel()
	settings := serviceSettings(t)
	api, graph := startService(t, settings, fx.Decorate(func(c gateway.Config) gateway.Config {
		const never = 24 * time.Hour
		c.Timing.Heartbeat, c.Timing.Report, c.Timing.IdleGive, c.Timing.StopAfter = never, never, never, never
		return c
	}))
	defer graph()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var agent struct {
		ID     string `json:"agent_id"`
		APIKey string `json:"api_key"`
	}
	post(t, api+"/account/register", "", `{"name":"watched"}`, &agent)
	// tunnel opens an idle tunnel of a new session, and returns a channel that is closed when it ends.
	tunnel := func() (id string, ended <-chan struct{}) {
		t.Helper()
		var s struct {
			SessionID string `json:"session_id"`
			Proxy     struct {
				HTTPURL string `json:"http_url"`
			}
		}
		post(t, api+"/sessions", agent.APIKey, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`, &s)
		proxy, err := url.Parse(s.Proxy.HTTPURL)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		password, _ := proxy.User.Password()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", silent.Addr(), silent.Addr(),
			base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
		r := bufio.NewReader(c)
		if resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
			t.Fatalf("a tunnel: %v, %v", resp, err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = io.Copy(io.Discard, r)
		}()
		return s.SessionID, over
	}
	wait := func(what string, ended <-chan struct{}) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Errorf("the tunnel of %s is still open", what)
		}
	}
	id, terminated := tunnel()
	_, kept := tunnel()
	post(t, api+"/sessions/"+id+"/terminate", agent.APIKey, "", nil)
	wait("a session that was terminated", terminated)
	select {
	case <-kept:
		t.Error("the tunnel of another session has ended")
	default:
	}
	var others *accounts.Service
	command := fx.New(wire.Core(settings, slog.New(slog.DiscardHandler)), fx.Populate(&others))
	if err := command.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Stop(context.Background()) }()
	if err := others.Disable(t.Context(), agent.ID, "abuse"); err != nil {
		t.Fatal(err)
	}
	wait("an account that another process disabled", kept)
}
