package upstream

import (
	"context"
	"sync"
	"time"

	"agentproxy/domain/procurement"
)

// proxySellerLane spaces the beginnings of writes, and those of writes that spend
// money more: the pace of the official client
// (https://github.com/proxy-seller/userApiGolang, ratelimit.go). Two limiters in a
// row could not: what waits in one bunches up in the other.
type proxySellerLane struct {
	write, money time.Duration

	mu                   sync.Mutex
	nextWrite, nextMoney time.Time
}

// wait books the next beginning and waits for it. It fails, and books nothing,
// when that is later than the call may last.
func (l *proxySellerLane) wait(ctx context.Context, money bool) error {
	late := procurement.Refuse(procurement.Temporary, "no turn within the seller's rate limit")
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
	if at.After(now) && !pause(ctx, at.Sub(now)) {
		return late
	}
	return nil
}
