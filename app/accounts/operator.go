package accounts

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// SetTier verifies an account with the operator's evidence, or withdraws that, and returns the tier.
func (s *Service) SetTier(ctx context.Context, agentID string, to account.Tier,
	evidence string) (tier account.Tier, err error) {
	err = s.changeIn(ctx, agentID, func(ctx context.Context, tx repos, agent *account.Agent, _ time.Time) error {
		w, err := tx.Ledger().Wallet(ctx, agentID)
		if err != nil {
			return err
		}
		*agent, err = agent.SetTier(to, evidence, w.Credited(), s.cfg.FundedFrom)
		tier = agent.Tier(w.Credited(), s.cfg.FundedFrom)
		return err
	})
	return tier, err
}

// SetRateLimit gives an agent a rate limit of its own; 0 is unlimited.
func (s *Service) SetRateLimit(ctx context.Context, agentID string, perMinute int) error {
	if perMinute < 0 || perMinute > MaxPerMinute {
		return domain.InvalidField("per_minute", "must be 0 to %d", MaxPerMinute)
	}
	return s.change(ctx, agentID, func(agent *account.Agent, _ time.Time) { agent.PerMinute = &perMinute })
}

// MaxPerMinute bounds a rate limit.
const MaxPerMinute = 10_000_000

// Disable shuts an agent out and ends its sessions; the unused part is refunded.
func (s *Service) Disable(ctx context.Context, agentID, reason string) error {
	var ids []string
	err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := s.clock.Now()
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		agent.Status, agent.DisabledFor, agent.UpdatedAt = account.Disabled, reason, now
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		ids, err = endSessions(ctx, s, tx, agentID, session.AccountDisabled, now)
		return err
	})
	if err != nil {
		return err
	}
	s.hub.AgentChanged(agentID)
	for _, id := range ids {
		s.hub.SessionChanged(id)
	}
	return nil
}

// endSessions ends the live sessions of an agent, of those that some keys bought if any are given, and returns their
// ids.
func endSessions(ctx context.Context, a *Service, tx repos, agentID string, why session.Reason, now time.Time,
	keyIDs ...string) ([]string, error) {
	ids, err := tx.Sessions().Live(ctx, agentID, keyIDs...)
	if err != nil {
		return nil, err
	}
	if err := tx.Sessions().Lock(ctx, ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return nil, err
		}
		if _, err := a.transitions.Terminate(ctx, tx, s, why, now); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Enable lets a disabled account in again. Its sessions stay ended.
func (s *Service) Enable(ctx context.Context, agentID string) error {
	return s.change(ctx, agentID, func(agent *account.Agent, _ time.Time) {
		agent.Status, agent.DisabledFor = account.Active, ""
	})
}

// List lists the accounts that match a filter, newest first.
func (s *Service) List(
	ctx context.Context, f ports.AgentFilter, page domain.Page,
) (list domain.List[account.Agent], err error) {
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Agents().List(ctx, f, page)
		return err
	})
	return list, err
}

// DisableFrom disables the active accounts that registered from a network, and returns their ids.
// If one cannot be disabled, those before it are.
func (s *Service) DisableFrom(ctx context.Context, network netip.Prefix, reason string) (ids []string, err error) {
	for page := (domain.Page{Number: 1, Size: domain.MaxPageSize}); ; page.Number++ {
		list, err := s.List(ctx, ports.AgentFilter{RegisteredFrom: network}, page)
		if err != nil || len(list.Items) == 0 {
			return ids, err
		}
		for _, agent := range list.Items {
			if agent.Status != account.Active {
				continue
			}
			if err := s.Disable(audit.ForSubject(ctx, agent.ID), agent.ID, reason); err != nil {
				return ids, err
			}
			ids = append(ids, agent.ID)
		}
	}
}
