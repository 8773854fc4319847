package proxyseller

import (
	"context"
	"sync"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
)

// pacer is a rate limit that keeps the starts of writes apart, and those of writes that
// spend money further apart, as the official client does
// (https://github.com/proxy-seller/userApiGolang, ratelimit.go). Two limiters in a row
// would release calls in bursts.
type pacer struct {
	write, money time.Duration // between starts

	mu                   sync.Mutex
	nextWrite, nextMoney time.Time
}

// wait reserves the next start and blocks until then. It fails with Temporary, and
// reserves nothing, if that is after the deadline of ctx.
func (l *pacer) wait(ctx context.Context, money bool) error {
	late := procurement.Refuse(procurement.Temporary, "the rate limit of the seller leaves no time for this call")
	if ctx.Err() != nil {
		return late
	}
	l.mu.Lock()
	now := time.Now()
	at := now
	if l.nextWrite.After(at) {
		at = l.nextWrite
	}
	if money && l.nextMoney.After(at) {
		at = l.nextMoney
	}
	if end, bounded := ctx.Deadline(); bounded && at.After(end) {
		l.mu.Unlock()
		return late
	}
	l.nextWrite = at.Add(l.write)
	if money {
		l.nextMoney = at.Add(l.money)
	}
	l.mu.Unlock()
	if at.After(now) && !rest.Sleep(ctx, at.Sub(now)) {
		return late
	}
	return nil
}
