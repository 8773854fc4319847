package endpoint

import (
	"context"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// Between reads two dates of the query, the second exclusive. What is not given is the zero time.
func Between(ctx context.Context, from, to string) (a, b time.Time, err error) {
	for name, at := range map[string]*time.Time{from: &a, to: &b} {
		if text, given := CallIn(ctx).Query(name); given {
			if *at, err = ledger.ParseDate(name, text); err != nil {
				return a, b, err
			}
		}
	}
	if !a.IsZero() && !b.IsZero() && !a.Before(b) {
		return a, b, domain.InvalidField(from, "must be before %s", to)
	}
	return a, b, nil
}
