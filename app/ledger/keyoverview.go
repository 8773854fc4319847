package ledger

import (
	"context"
	"slices"

	"agentproxy/domain/health"
	"agentproxy/ports"
)

// healthAtOnce is of how many sessions the states of health are in memory at a time.
const healthAtOnce = 50

// KeyOverview is like Overview of the sessions that a key bought. The balance is what the key has left for one purchase
// if its money is limited; the reported events are those of the sessions that live.
func (s *Stats) KeyOverview(ctx context.Context, agentID, keyID string) (Overview, error) {
	var o Overview
	err := s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := s.clock.Now()
		b, err := balance(ctx, tx, agentID, now)
		if err != nil {
			return err
		}
		spent, err := tx.Sessions().SpentByKey(ctx, agentID)
		if err != nil {
			return err
		}
		counts, err := tx.Sessions().KeyCount(ctx, agentID, keyID)
		if err != nil {
			return err
		}
		o = Overview{Balance: b.Wallet.Balance(), Held: spent[keyID].Held, TotalSpent: spent[keyID].Spent,
			Active: counts.Active, Creating: counts.Creating, Total: counts.Total, UsedBytes: counts.Bytes,
			Rotations: counts.Rotations}
		k, restricted, err := tx.KeyWallets().Get(ctx, agentID, keyID)
		if err != nil {
			return err
		}
		if left, limited := k.Left(now); restricted && limited {
			o.Balance = left
		}
		o.EventsReported, o.SuccessRate, err = reportedOf(ctx, tx, agentID, keyID)
		return err
	})
	return o, err
}

// reportedOf counts what was reported of the live sessions that a key bought, and which part of what is scored was
// good, 1 if nothing is.
func reportedOf(ctx context.Context, tx repos, agentID, keyID string) (events int64, rate float64, err error) {
	list, err := tx.Health().LiveSummaries(ctx, agentID, ports.SessionFilter{Key: keyID})
	if err != nil {
		return 0, 1, err
	}
	var good, scored int64
	add := func(s health.State) {
		for of, n := range s.Stats().Session.Reported.ByType {
			events += n
			switch of {
			case health.Custom:
			case health.Success:
				good, scored = good+n, scored+n
			default:
				scored += n
			}
		}
	}
	for part := range slices.Chunk(list, healthAtOnce) {
		var ids, crews []string
		for _, s := range part {
			if ids = append(ids, s.ID); s.Workers {
				crews = append(crews, s.ID)
			}
		}
		states, err := tx.Health().Get(ctx, agentID, ids)
		if err != nil {
			return 0, 1, err
		}
		workers, err := tx.Workers().HealthOf(ctx, crews)
		if err != nil {
			return 0, 1, err
		}
		for id, s := range states {
			add(s.State)
			for _, w := range workers[id] {
				add(w.State)
			}
		}
	}
	if scored == 0 {
		return events, 1, nil
	}
	return events, float64(good) / float64(scored), nil
}
