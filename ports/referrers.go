package ports

import (
	"context"
	"time"

	"agentproxy/domain/account"
)

// Referrers keeps referring agents.
type Referrers interface {
	// Insert refuses a code that exists with a *domain.Error of kind Conflict.
	Insert(ctx context.Context, r account.Referrer, now time.Time) error
	// ByCode returns the referrer of a code, which is compared exactly, or account.ErrReferralCode.
	ByCode(ctx context.Context, code string) (account.Referrer, error)
	// Default returns the referring agent of agents without a referral code. It always exists.
	Default(ctx context.Context) (account.Referrer, error)
	// Disable disables a code. It returns account.ErrReferralCode for an unknown one.
	Disable(ctx context.Context, code string, now time.Time) error
	List(ctx context.Context) ([]account.Referrer, error)
}
