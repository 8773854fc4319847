package accounts

import (
	"context"

	"agentproxy/app/throttle"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Bounds are what the operator allows each account; 0 is unlimited.
type Bounds struct {
	Sessions                            int // live ones
	Connections, TrialConnections       int // through the gateway at a time
	ConnectionRate, TrialConnectionRate int // new ones a second
	TrialPorts                          []string
}

// Allowance is what an account may still do. Numbers of 0 and nil are unlimited.
type Allowance struct {
	Info
	Live        int // sessions
	Sessions    int
	Connections int
	PerSecond   int           // new connections
	Ports       []string      // of targets; nil: every port that the operator does not deny
	Stored      *StoredToday  // bytes
	Daily       *domain.Money // what the account's own budget leaves of the UTC day, at least 0
	Total       *domain.Money // and of all time
}

// StoredToday is how many bytes the service may store for an account on a UTC day, and how many of them are left by
// what this process has counted.
type StoredToday struct{ Limit, Left int64 }

// Allowed returns what an account may still do. It returns account.ErrNotFound if there is no such account.
func Allowed(ctx context.Context, a *Service, stored *throttle.Stored, agentID string) (Allowance, error) {
	info, err := a.Info(ctx, agentID)
	if err != nil {
		return Allowance{}, err
	}
	b, w, now := a.cfg.Bounds, info.Wallet, a.clock.Now()
	out := Allowance{Info: info, Live: w.LiveSessions, Sessions: b.Sessions, Connections: b.Connections,
		PerSecond: b.ConnectionRate, Daily: leftOf(w.Budget.Daily, w.SpentOn(now)),
		Total: leftOf(w.Budget.Total, w.SpentEver())}
	if info.Tier == account.TrialTier {
		out.Connections, out.PerSecond, out.Ports = b.TrialConnections, b.TrialConnectionRate, b.TrialPorts
	}
	if limit, left, limited := stored.Left(agentID, info.Tier); limited {
		out.Stored = &StoredToday{limit, left}
	}
	return out, nil
}

// leftOf returns what spending leaves of a limit, or nil if there is none.
func leftOf(limit *domain.Money, spent domain.Money) *domain.Money {
	if limit == nil {
		return nil
	}
	return new(max(*limit-spent, 0))
}
