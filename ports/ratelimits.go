package ports

import (
	"context"

	"agentproxy/domain/ratelimit"
)

// RateLimits keeps what is used of limits that several processes share. Each
// call is a unit by itself. It goes by a clock of its own, because those of the
// processes differ.
type RateLimits interface {
	// Take does ratelimit.Request.TakeFrom on the state of a key; one that is not there has
	// used nothing. Calls for one key follow each other.
	Take(ctx context.Context, key string, request ratelimit.Request) (ratelimit.Grant, error)
	// Purge removes states that have been free for two minutes, and returns how many.
	Purge(ctx context.Context, limit int) (int, error)
}
