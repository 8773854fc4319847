package ports

import (
	"context"
	"time"

	"agentproxy/domain/traffic"
)

// Peers keeps who connected to sessions and what they connected to.
type Peers interface {
	// Add adds what was counted on a day. Of a session at most traffic.MaxClients clients, and
	// traffic.MaxHosts hosts a day, are kept apart. An unknown session is passed over.
	Add(ctx context.Context, sessionID string, day time.Time, p *traffic.Peers) error
	// Clients lists the clients of a session, the last one first.
	Clients(ctx context.Context, sessionID string) ([]traffic.Client, error)
	// Hosts sums the hosts of a session since a day, the most bytes first.
	Hosts(ctx context.Context, sessionID string, since time.Time) ([]traffic.Host, error)
	// Purge removes up to limit clients and as many hosts that were last seen before the times, and
	// returns how many.
	Purge(ctx context.Context, clients, hosts time.Time, limit int) (int, error)
}
