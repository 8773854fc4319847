package contract

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

var peerClaims = []claim{
	{"clients and hosts of a session are added up, bounded and purged", peersAddUp},
}

func peersAddUp(t *testing.T, st ports.Store) {
	list := manySessions("agt_1", 2)
	addSessions(t, st, list...)
	day := storeNow.Truncate(24 * time.Hour)
	add := func(id string, day, at time.Time, first, n int) {
		for ; n > 0; n, first = n-50, first+50 {
			var p traffic.Peers
			for i := range min(n, 50) {
				p.Add(traffic.Observation{Type: traffic.Tunnelled, At: at, Bytes: 10, Host: fmt.Sprintf("h%d.example", first+i),
					Client: netip.AddrFrom4([4]byte{10, 0, byte((first + i) >> 8), byte(first + i)})})
			}
			update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Peers().Add(ctx, id, day, &p) })
		}
	}
	add("sess_none", day, storeNow, 0, 1)
	add(list[0].ID, day.Add(-8*24*time.Hour), storeNow.Add(-time.Hour), 1, 1)
	add(list[0].ID, day, storeNow, 0, 2)
	add(list[0].ID, day, storeNow.Add(time.Second), 1, 1)
	read := func(id string) (clients []traffic.Client, hosts []traffic.Host) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			if clients, err = tx.Peers().Clients(ctx, id); err == nil {
				hosts, err = tx.Peers().Hosts(ctx, id, day.Add(-7*24*time.Hour))
			}
			return err
		})
		return clients, hosts
	}
	clients, hosts := read(list[0].ID)
	wantClients := []traffic.Client{
		{Address: "10.0.0.1", FirstAt: storeNow.Add(-time.Hour), LastAt: storeNow.Add(time.Second), Connections: 3, Bytes: 30},
		{Address: "10.0.0.0", FirstAt: storeNow, LastAt: storeNow, Connections: 1, Bytes: 10}}
	wantHosts := []traffic.Host{{Name: "h1.example", Connections: 2, Bytes: 20}, {Name: "h0.example", Connections: 1, Bytes: 10}}
	if diff := cmp.Diff(wantClients, clients) + cmp.Diff(wantHosts, hosts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	const many = traffic.MaxHosts + 60
	add(list[1].ID, day, storeNow, 0, many)
	clients, hosts = read(list[1].ID)
	if len(clients) > traffic.MaxClients+1 || len(hosts) > traffic.MaxHosts+1 {
		t.Errorf("%d clients and %d hosts are kept", len(clients), len(hosts))
	}
	var bytes int64
	for _, c := range clients {
		bytes += c.Bytes
	}
	for _, h := range hosts {
		bytes += h.Bytes
	}
	if bytes != 2*10*many {
		t.Errorf("%d bytes, want %d", bytes, 2*10*many)
	}

	purged := 0
	update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		purged, err = tx.Peers().Purge(ctx, storeNow, day.Add(-7*24*time.Hour), 10)
		return err
	})
	if _, hosts = read(list[0].ID); purged != 1 || len(hosts) != 2 {
		t.Errorf("%d purged, %d hosts left", purged, len(hosts))
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		purged, err = tx.Peers().Purge(ctx, storeNow.Add(time.Millisecond), day.Add(time.Hour), 10_000)
		return err
	})
	if clients, hosts = read(list[0].ID); purged < many-100 || len(clients) != 1 || len(hosts) != 0 {
		t.Errorf("%d purged, %d clients and %d hosts left", purged, len(clients), len(hosts))
	}
}
