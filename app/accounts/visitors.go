package accounts

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"agentproxy/app/throttle"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Visitors open accounts themselves, by the API or in a browser, within the limits of where they come from.
type Visitors struct {
	Accounts *Service
	Limits   *throttle.Limits
}

// Registration returns who may open an account.
func (v Visitors) Registration() account.Registration { return v.Accounts.cfg.Registration }

// Visitor is where a call that opens an account comes from.
type Visitor struct {
	Addr      netip.Addr // of the client
	Peer      netip.Addr // of the socket
	UserAgent string
}

// Admitted is a Visitor that may open an account.
type Admitted struct {
	Visitor
	fromExit bool
	counted  netip.Addr // what limits count it as
}

// Admit refuses a visitor if too many came from the same address. The exits of the service count as one
// address too, because an agent with a session can use each of them. The address comes first: a
// visitor that it refuses asks nothing of the database.
func (v Visitors) Admit(ctx context.Context, from Visitor) (a Admitted, err error) {
	a = Admitted{Visitor: from, counted: from.Addr}
	if v.Limits.Stored.Scarce() {
		return a, errNoSpace
	}
	if err := v.countVisit(a.counted); err != nil {
		return a, err
	}
	if a.fromExit, err = v.Accounts.IsExit(ctx, from.Addr, from.Peer); err != nil || !a.fromExit {
		return a, err
	}
	a.counted = netip.Addr{}
	return a, v.countVisit(a.counted)
}

// errNoSpace refuses new accounts while the space of the database is about to end.
var errNoSpace = domain.ErrUnavailable.Msgf("no accounts are opened at the moment; try again later").After(time.Minute)

func (v Visitors) countVisit(from netip.Addr) error {
	if d, of := v.Limits.TakeRegistration(from); !d.Allowed {
		return tooMany("registrations "+of, d.RetryAfter)
	}
	return nil
}

func tooMany(of string, wait time.Duration) error {
	return account.ErrRateLimited.Msgf("too many %s; wait %d seconds", of,
		(wait+time.Second-1)/time.Second).After(wait)
}

// Register opens an account for a visitor. What the visitor sent as its origin is replaced.
func (v Visitors) Register(ctx context.Context, a Admitted, in Register) (Registered, error) {
	if d := v.Limits.WrongCodes().Left(a.counted); !d.Allowed && in.ReferralCode != "" {
		return Registered{}, tooMany("wrong referral codes from this address", d.RetryAfter)
	}
	in.Origin, in.FromExit = account.Origin{Addr: a.Addr, UserAgent: a.UserAgent}, a.fromExit
	out, err := v.Accounts.Register(ctx, in)
	if errors.Is(err, account.ErrReferralCode) && in.ReferralCode != "" {
		v.Limits.WrongCodes().Record(a.counted)
	}
	return out, err
}
