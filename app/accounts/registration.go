package accounts

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
)

// Exits reports whether traffic of agents leaves from an address. A nil function reports that for none.
type Exits struct {
	Sold  func(netip.Addr) bool // by the embedded provider
	Other func(netip.Addr) bool // of this host, and of configured upstream proxies
}

// IsExit reports whether a registration comes through an exit of the service, and so from any
// agent: addr is the client's, peer the socket's. Behind a trusted proxy the client's address may
// be the agent's invention, but a peer that is sold as an exit is an exit.
func (a *Service) IsExit(ctx context.Context, addr, peer netip.Addr) (bool, error) {
	addr, peer = addr.Unmap(), peer.Unmap()
	known := a.cfg.Exits
	if known.Sold != nil && (known.Sold(addr) || known.Sold(peer)) || known.Other != nil && known.Other(addr) {
		return true, nil
	}
	sold := false
	err := a.store.Read(ctx, func(ctx context.Context, tx repos) (err error) {
		sold, err = tx.Addresses().Sold(ctx, addr.String())
		return err
	})
	return sold, err
}

// mayRegister refuses what the operator's way of registration does not take.
func (a *Service) mayRegister(in Register, code string) error {
	switch {
	case in.Operator:
	case a.cfg.Registration == account.ClosedRegistration:
		return account.ErrRegistrationClosed
	case a.cfg.Registration == account.ReferralRegistration && code == "":
		return account.ErrReferralCode.Msgf("an account needs a referral_code here; ask who recommended the service for one")
	}
	return nil
}

// Scopes of what is granted of the trial on a day.
const (
	allTrials     = "total"
	networkTrials = "network "
	exitTrials    = networkTrials + "exits" // all registrations through our own exits are one network
)

// trialOf returns the trial credit of a new account: none if its network or all accounts together
// have had what the operator grants on a day.
func (a *Service) trialOf(ctx context.Context, tx repos, in Register, now time.Time) (domain.Money, error) {
	x, day := a.cfg.TrialBalance, billing.Day(now)
	if x <= 0 {
		return 0, nil
	}
	network := networkTrials + account.Network(in.Origin.Addr)
	if in.FromExit {
		network = exitTrials
	}
	counted := a.cfg.TrialPerNetwork > 0 && network != networkTrials
	if counted {
		if granted, err := tx.Trials().Take(ctx, day, network, 1, int64(a.cfg.TrialPerNetwork)); err != nil || !granted {
			return 0, err
		}
	}
	if a.cfg.TrialDailyTotal <= 0 {
		_, err := tx.Trials().Take(ctx, day, allTrials, int64(x), unlimited)
		return x, err
	}
	granted, err := tx.Trials().Take(ctx, day, allTrials, int64(x), int64(a.cfg.TrialDailyTotal))
	if err != nil || granted {
		return x, err
	}
	if counted {
		err = tx.Trials().Return(ctx, day, network, 1)
	}
	return 0, err
}

// unlimited is more than can be granted on a day: a tenth of what an int64 of millionths counts.
const unlimited = 1 << 60

// TrialGranted returns the trial credit that was granted on the current UTC day.
func (a *Service) TrialGranted(ctx context.Context) (granted domain.Money, err error) {
	err = a.store.Read(ctx, func(ctx context.Context, tx repos) error {
		n, err := tx.Trials().Granted(ctx, billing.Day(a.clock.Now()), allTrials)
		granted = domain.Money(n)
		return err
	})
	return granted, err
}

const (
	keepTrialDays = 30 * 24 * time.Hour
	purgeSize     = 500
)

// Purge removes what is past its retention: where agents registered from, and what was granted on
// days long ago.
func (a *Service) Purge(ctx context.Context) error {
	now := a.clock.Now()
	origins := now.AddDate(0, 0, -a.cfg.KeepOriginDays)
	for {
		var n, m int
		err := a.store.Update(ctx, func(ctx context.Context, tx repos) (err error) {
			if n, err = tx.Agents().ForgetOrigins(ctx, origins, purgeSize); err != nil {
				return err
			}
			m, err = tx.Trials().Purge(ctx, now.Add(-keepTrialDays), purgeSize)
			return err
		})
		if err != nil || max(n, m) < purgeSize {
			return err
		}
	}
}
