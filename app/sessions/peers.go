package sessions

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Clients lists who connected to a session of an agent with the right password, the newest first.
func (u *Service) Clients(
	ctx context.Context, agentID, id string, page domain.Page,
) (domain.List[traffic.Client], error) {
	var all []traffic.Client
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		_, err := tx.Sessions().Get(ctx, agentID, id)
		if err == nil {
			all, err = tx.Peers().Clients(ctx, id)
		}
		return err
	})
	// When a client was last seen changes while a list is read; when it was first seen does not.
	first := func(c traffic.Client) int64 { return max(c.FirstAt.UnixMicro(), 0) }
	return domain.Ranked(all, page, first, func(c traffic.Client) string { return c.Address }), err
}

// Hosts lists what a session of an agent connected to in the last 7 UTC days, the most bytes first.
func (u *Service) Hosts(ctx context.Context, agentID, id string, page domain.Page) (domain.List[traffic.Host], error) {
	var all []traffic.Host
	since := billing.Day(u.clock.Now()).Add(-traffic.KeepHosts)
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		_, err := tx.Sessions().Get(ctx, agentID, id)
		if err == nil {
			all, err = tx.Peers().Hosts(ctx, id, since)
		}
		return err
	})
	bytes := func(h traffic.Host) int64 { return h.Bytes }
	return domain.Ranked(all, page, bytes, func(h traffic.Host) string { return h.Name }), err
}
