package endpoint

import (
	"context"
	"strconv"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/ratelimit"
)

// TakeRate counts the request against the agent's limit and sets the headers that
// describe what is left of it. An unlimited agent gets no such headers.
func (a *API) TakeRate(c *Call) error {
	d := a.Limits.Take(c.Caller.AgentID, c.Caller.PerMinute)
	return a.decided(c, d, 1)
}

// Charge counts items that a call is about to make or to change, before it does: too many for what is left of the
// limit are refused.
func Charge(ctx context.Context, items int) error {
	c := CallIn(ctx)
	cost := ratelimit.Beyond(items)
	if cost == 0 || c.api == nil {
		return nil
	}
	return c.api.decided(c, c.api.Limits.TakeMore(c.Caller.AgentID, c.Caller.PerMinute, cost), cost)
}

// chargeRead counts items that a call has read. It is done, so the next ones are refused instead.
func (a *API) chargeRead(c *Call, items int) {
	cost := ratelimit.Beyond(items)
	if cost == 0 || c.Caller.AgentID == "" {
		return
	}
	if d := a.Limits.Debit(c.Caller.AgentID, c.Caller.PerMinute, cost); d.Limit > 0 {
		a.limitHeaders(c, d)
	}
	a.Limits.DebitTrials(c.Caller.TrialNetwork(), cost)
}

// ChargeRead counts items that a call has read other than as a page, whose items are counted without it.
func ChargeRead(ctx context.Context, items int) {
	if c := CallIn(ctx); c.api != nil {
		c.api.chargeRead(c, items)
	}
}

// ChargeWorkers counts the workers whose health a call has read to sum it up.
func ChargeWorkers(ctx context.Context, workers int) {
	ChargeRead(ctx, workers/ratelimit.WorkersOfAnItem)
}

// decided shows what is left of the agent's limit, and counts the cost for the network of an account on trial.
func (a *API) decided(c *Call, d ratelimit.Decision, cost int) error {
	c.Rate = d
	if d.Limit > 0 {
		a.limitHeaders(c, d)
	}
	if !d.Allowed {
		return account.ErrRateLimited.After(d.RetryAfter)
	}
	if d := a.Limits.TakeTrials(c.Caller.TrialNetwork(), cost); !d.Allowed {
		return account.ErrRateLimited.Msgf("too many requests of accounts on trial from one network; wait for the " +
			"seconds in Retry-After, or recharge").After(d.RetryAfter)
	}
	return nil
}

// limitHeaders writes the headers in both forms. Of a refusal, t is the wait
// that Retry-After names: one must not point earlier than the other.
func (a *API) limitHeaders(c *Call, d ratelimit.Decision) {
	fixed := a.fixed.header(d.Limit)
	seconds := int64(max(d.ResetAt.Sub(a.Clock.Now())+time.Second-1, 0) / time.Second)
	if !d.Allowed {
		seconds = int64(d.RetryAfter / time.Second)
	}
	reset := d.ResetAt.Unix()
	if d.ResetAt.Nanosecond() > 0 {
		reset++
	}
	var text [48]byte
	b := append(text[:0], `"default";r=`...)
	b = strconv.AppendInt(b, int64(d.Remaining), 10)
	b = append(b, `;t=`...)
	b = strconv.AppendInt(b, seconds, 10)

	v := &c.headers
	v[2], v[3], v[4] = strconv.Itoa(d.Remaining), strconv.FormatInt(reset, 10), string(b)
	h := c.gin.Writer.Header()
	h["X-Ratelimit-Limit"] = fixed.limit
	h["X-Ratelimit-Remaining"] = v[2:3:3]
	h["X-Ratelimit-Reset"] = v[3:4:4]
	h["Ratelimit-Policy"] = fixed.policy
	h["Ratelimit"] = v[4:5:5]
}
