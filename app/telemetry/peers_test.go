package telemetry_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/app/maintenance"
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

// The addresses of a session's clients are kept for as long as the operator decides.
func TestClientsAreKeptForTheirDays(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	tasks := maintenance.New(maintenance.Config{ClientDays: 45}, w.Base(), w.Transitions, w.Traffic, w.Hub, w.Limits)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
		w.Observer.Observe(traffic.Observation{SessionID: v.ID, AgentID: agent, At: w.Clock.Now(), Type: traffic.Tunnelled,
			Host: "a.example", Bytes: 10, Client: netip.MustParseAddr(client)})
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
		w.Clock.Advance(time.Second)
	}
	kept := func() (list []string) {
		t.Helper()
		apptest.OK(t, tasks.Purge(t.Context()))
		clients, err := w.Sessions.Clients(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 10})
		apptest.OK(t, err)
		for _, c := range clients.Items {
			list = append(list, c.Address)
		}
		return list
	}
	w.Clock.Advance(45*24*time.Hour - 2*time.Second)
	apptest.Equal(t, "after 45 days", fmt.Sprint(kept()), "[192.0.2.2 192.0.2.1]")
	w.Clock.Advance(time.Second)
	apptest.Equal(t, "later", fmt.Sprint(kept()), "[192.0.2.2]")
}

// Clients and hosts that are used while their lists are read are neither repeated nor skipped, but for
// hosts that outgrow those that were read.
func TestClientsAndHostsAreReadOn(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	see := func(n int, bytes int64) {
		w.Observer.Observe(traffic.Observation{SessionID: v.ID, AgentID: agent, At: w.Clock.Now(), Type: traffic.Tunnelled,
			Host: fmt.Sprintf("h%d.example", n), Bytes: bytes, Client: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})})
		w.Clock.Advance(3 * time.Second)
		apptest.OK(t, w.Observer.FlushAll(t.Context()))
	}
	for n := range 5 {
		see(n, int64(10+n))
	}
	page := domain.Page{Number: 1, Size: 2}
	clients, err := w.Sessions.Clients(t.Context(), agent, v.ID, page)
	apptest.OK(t, err)
	hosts, err := w.Sessions.Hosts(t.Context(), agent, v.ID, page)
	apptest.OK(t, err)
	see(9, 1000) // a new one, which is the first of both lists now
	see(4, 1000) // those that were read
	see(3, 1000)
	see(0, 0) // one that was not
	var addresses, names []string
	for _, c := range clients.Items {
		addresses = append(addresses, c.Address)
	}
	for _, h := range hosts.Items {
		names = append(names, h.Name)
	}
	for clients.Next > 0 {
		page.After, page.Tie = clients.Next, clients.Tie
		clients, err = w.Sessions.Clients(t.Context(), agent, v.ID, page)
		apptest.OK(t, err)
		for _, c := range clients.Items {
			addresses = append(addresses, c.Address)
		}
	}
	for hosts.Next > 0 {
		page.After, page.Tie = hosts.Next, hosts.Tie
		hosts, err = w.Sessions.Hosts(t.Context(), agent, v.ID, page)
		apptest.OK(t, err)
		for _, h := range hosts.Items {
			names = append(names, h.Name)
		}
	}
	diff := cmp.Diff([]string{"192.0.2.4", "192.0.2.3", "192.0.2.2", "192.0.2.1", "192.0.2.0"}, addresses)
	diff += cmp.Diff([]string{"h4.example", "h3.example", "h2.example", "h1.example", "h0.example"}, names)
	if diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
