package telemetry_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

func TestClientsAndHostsAreStored(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	page := domain.Page{Number: 1, Size: 10}
	see := func(client, host, kind string, bytes int64) {
		w.Observer.Observe(traffic.Observation{SessionID: v.ID, AgentID: agent, At: w.Clock.Now(), Type: kind, Host: host, Bytes: bytes,
			Client: netip.MustParseAddr(client)})
	}
	see("192.0.2.1", "a.example", traffic.Tunnelled, 10)
	see("192.0.2.2", "b.example", traffic.Unmet, 0)
	w.Clock.Advance(2 * time.Second)
	apptest.OK(t, w.Observer.Flush(t.Context()))
	see("192.0.2.1", "a.example", traffic.Requested, 5)
	apptest.OK(t, w.Observer.FlushAll(t.Context()))
	clients, err := w.Sessions.Clients(t.Context(), agent, v.ID, page)
	apptest.OK(t, err)
	hosts, err := w.Sessions.Hosts(t.Context(), agent, v.ID, page)
	apptest.OK(t, err)
	start := w.Clock.Now().Add(-2 * time.Second)
	diff := cmp.Diff([]traffic.Client{
		{Address: "192.0.2.1", FirstAt: start, LastAt: w.Clock.Now(), Connections: 2, Bytes: 15},
		{Address: "192.0.2.2", FirstAt: start, LastAt: start, Connections: 1}}, clients.Items)
	diff += cmp.Diff([]traffic.Host{
		{Name: "a.example", Connections: 2, Bytes: 15}, {Name: "b.example", Connections: 1, Failures: 1}}, hosts.Items)
	if diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	other := w.Register()
	if _, err := w.Sessions.Clients(t.Context(), other, v.ID, page); err == nil {
		t.Error("another agent sees the clients")
	}
}
