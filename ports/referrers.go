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
	// ByCode is account.ErrReferralCode for an unknown code. The comparison is exact.
	ByCode(ctx context.Context, code string) (account.Referrer, error)
	// Default is the referring agent of those who named none. It always exists.
	Default(ctx context.Context) (account.Referrer, error)
	// Disable is account.ErrReferralCode for an unknown code.
	Disable(ctx context.Context, code string, now time.Time) error
	List(ctx context.Context) ([]account.Referrer, error)
}
