package accounts

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// IsExit reports whether a registration comes through an exit of the service, and so from any
// agent: addr is the client's, peer the socket's. Behind a trusted proxy the client's address may
// be the agent's invention, but a peer that is sold as an exit is an exit.
func (s *Service) IsExit(ctx context.Context, addr, peer netip.Addr) (bool, error) {
	addr, peer = addr.Unmap(), peer.Unmap()
	known := s.cfg.Exits
	if known.Sold != nil && (known.Sold(addr) || known.Sold(peer)) || known.Other != nil && known.Other(addr) {
		return true, nil
	}
	sold := false
	err := s.store.Read(ctx, func(ctx context.Context, tx repos) (err error) {
		sold, err = tx.Addresses().Sold(ctx, addr.String())
		return err
	})
	return sold, err
}

// mayRegister refuses what the operator's way of registration does not take.
func (s *Service) mayRegister(in Register, code string) error {
	switch {
	case in.Operator:
	case s.cfg.Registration == account.ClosedRegistration:
		return account.ErrRegistrationClosed
	case s.cfg.Registration == account.ReferralRegistration && code == "":
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

// newNetworks is the part of the daily total that is kept for networks without a trial on the day, so that a few
// networks do not use up the trials of everybody: one in five.
const newNetworks = 5

// trialOf returns the trial credit of a new account: none if its network or all accounts together
// have had what the operator grants on a day.
func (s *Service) trialOf(ctx context.Context, tx repos, in Register, now time.Time) (domain.Money, error) {
	x, day := s.cfg.TrialBalance, billing.Day(now)
	if x <= 0 {
		return 0, nil
	}
	network := networkTrials + account.Network(in.Origin.Addr)
	if in.FromExit {
		network = exitTrials
	}
	counted := s.cfg.TrialPerNetwork > 0 && network != networkTrials
	if counted {
		if granted, err := tx.Trials().Take(ctx, day, network, 1, int64(s.cfg.TrialPerNetwork)); err != nil || !granted {
			return 0, err
		}
	}
	if s.cfg.TrialDailyTotal <= 0 {
		_, err := tx.Trials().Take(ctx, day, allTrials, int64(x), unlimited)
		return x, err
	}
	most := s.cfg.TrialDailyTotal
	if counted {
		n, err := tx.Trials().Granted(ctx, day, network)
		if err != nil {
			return 0, err
		}
		if n > 1 || in.FromExit {
			most -= most / newNetworks
		}
	}
	granted, err := tx.Trials().Take(ctx, day, allTrials, int64(x), int64(most))
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
func (s *Service) TrialGranted(ctx context.Context) (granted domain.Money, err error) {
	err = s.store.Read(ctx, func(ctx context.Context, tx repos) error {
		n, err := tx.Trials().Granted(ctx, billing.Day(s.clock.Now()), allTrials)
		granted = domain.Money(n)
		return err
	})
	return granted, err
}

const (
	keepTrialDays = 30 * 24 * time.Hour
	purgeSize     = 500
)

// An account that was not used for keepUnused is disabled, and removed disableUnused after that: by then none of its
// calls is under way, and none of its credentials is in the memory of a replica.
const (
	keepUnused    = 30 * 24 * time.Hour
	disableUnused = 24 * time.Hour
	unusedReason  = "it was not used for 30 days"
)

// removeUnused ends accounts that registered themselves, had no trial credit, and never called or paid: anyone
// can open them, and they would stay for ever.
func removeUnused(ctx context.Context, a *Service) error {
	now := a.clock.Now()
	for {
		var ids []string
		err := a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			ids, err = tx.Agents().RemoveUnused(ctx, unusedReason, now.Add(-disableUnused), purgeSize)
			return err
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			a.hub.AgentChanged(id)
		}
		if len(ids) < purgeSize {
			break
		}
	}
	from, to := time.UnixMicro(a.unusedUpTo.Load()), now.Add(-keepUnused)
	for {
		var ids []string
		err := a.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			ids, err = tx.Agents().Unused(ctx, from, to, purgeSize)
			return err
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := a.Disable(ctx, id, unusedReason); err != nil {
				return err
			}
		}
		if len(ids) < purgeSize {
			a.unusedUpTo.Store(to.UnixMicro())
			return nil
		}
	}
}

// Purge removes what is past its retention: where agents registered from, what was granted on
// days long ago, and accounts that were never used.
func (s *Service) Purge(ctx context.Context) error {
	if err := removeUnused(ctx, s); err != nil {
		return err
	}
	now := s.clock.Now()
	origins := now.AddDate(0, 0, -s.cfg.KeepOriginDays)
	for {
		var n, m int
		err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
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

// Register is a request for a new account.
type Register struct {
	account.Profile
	ReferralCode string
	Origin       account.Origin // zero if the operator opens the account
	FromExit     bool           // the origin is an exit of the service, which any agent can use
	Operator     bool           // the operator opens the account, whatever the way of registration
}

// Registered is a new account with its credentials, which are returned only here.
type Registered struct {
	Info
	APIKey        string
	APISecret     string
	WebhookSecret string // empty without a webhook URL
	Referred      bool   // a valid code was given
}

// Register opens an account: its wallet, its trial credit and its referring
// agent, all in one transaction.
func (s *Service) Register(ctx context.Context, in Register) (Registered, error) {
	reg, err := in.Profile.Check(s.cfg.Dev)
	if err != nil {
		return Registered{}, err
	}
	if err := s.mayRegister(in, strings.TrimSpace(in.ReferralCode)); err != nil {
		return Registered{}, err
	}
	in.Origin = in.Origin.Cleaned()
	kept := in.Origin
	if s.cfg.KeepOriginDays <= 0 {
		kept = account.Origin{}
	}
	out := Registered{APIKey: s.secrets.NewKey(), APISecret: s.secrets.NewSecret()}
	keyHash, secretHash := s.secrets.Hash(out.APIKey), s.secrets.Hash(out.APISecret)
	id, user, txn := s.ids.New("agt_"), s.ids.New("usr_"), s.ids.New(billing.IDPrefix)
	err = s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := s.clock.Now()
		referrer, referred, err := assign(ctx, tx, in.ReferralCode)
		if err != nil {
			return err
		}
		agent := account.Agent{ID: id, BillingUserID: user, Name: reg.Name, ContactEmail: reg.ContactEmail,
			WebhookURL: reg.WebhookURL, Description: reg.Description, Status: account.Active,
			KeyHash: keyHash, KeyHint: account.Hint(out.APIKey), KeyCreatedAt: now, SecretHash: secretHash, TokenVersion: 1,
			Referrer: referrer, Origin: kept, CreatedAt: now, UpdatedAt: now}
		if agent.WebhookURL != "" {
			agent.WebhookVersion = 1
		}
		if err := tx.Agents().Insert(ctx, agent); err != nil {
			return err
		}
		trial, err := s.trialOf(ctx, tx, in, now)
		if err != nil {
			return err
		}
		wallet, err := s.openWallet(ctx, tx, agent, trial, txn, now)
		if err != nil {
			return err
		}
		out.Info, out.Referred = s.info(agent, wallet, now), referred
		audit.SetSubject(ctx, id)
		return nil
	})
	if err != nil {
		return Registered{}, err
	}
	if out.Agent.WebhookVersion > 0 {
		out.WebhookSecret = s.secrets.WebhookSecret(id, out.Agent.WebhookVersion)
	}
	return out, nil
}

// assign finds the referring agent of a registration.
func assign(ctx context.Context, tx repos, code string) (account.Referrer, bool, error) {
	a, err := account.Assign(code, code != "",
		func(code string) (account.Referrer, error) { return tx.Referrers().ByCode(ctx, code) },
		func() (account.Referrer, error) { return tx.Referrers().Default(ctx) })
	return a.Referrer, a.Named, err
}

func (s *Service) openWallet(
	ctx context.Context, tx repos, agent account.Agent, trial domain.Money, txn string, now time.Time,
) (billing.Wallet, error) {
	w := billing.Wallet{AgentID: agent.ID}
	if trial > 0 {
		w.TrialExpiresAt = now.AddDate(0, 0, s.cfg.TrialDays)
	}
	if err := tx.Ledger().Open(ctx, w); err != nil || trial <= 0 {
		return w, err
	}
	e := billing.GrantTrial(trial)
	e.ID, e.AgentID, e.Ref, e.At = txn, agent.ID, "trial:"+agent.ID, now
	if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
		return w, err
	}
	w.Available = e.Available
	return w, nil
}
