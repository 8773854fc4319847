// Package redis keeps what replicas share in Redis or Valkey instead of the database.
package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// states is the sorted set of all states: a member is the key of a limit, its score the theoretical
// arrival time (TAT) in microseconds since 1970, which a double holds exactly until the year 2255.
const states = "agentproxy:ratelimits"

// forgotten is how long a state stays after all of its limit is free again. It is at least the
// largest lead that ratelimit.Request.TakeFrom accepts.
const forgotten = 2 * time.Minute

// takeScript does ratelimit.Request.TakeFrom by the server's clock. ARGV: key, interval and burst in
// microseconds, tokens, the largest lead of a shorter burst. It answers the tokens, the TAT and the server's time.
var takeScript = redis.NewScript(1, `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local interval, burst, tokens, farthest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local tat = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
local ahead = math.min(math.max(tat - now, 0), math.max(farthest, burst))
local n = math.max(math.min(tokens, math.floor((burst - ahead) / interval)), 0)
tat = now + ahead + n * interval
redis.call('ZADD', KEYS[1], string.format('%.0f', tat), ARGV[1])
return {n, tat, now}`)

// purgeScript removes states whose TAT is at least ARGV[1] microseconds past, at most ARGV[2] of
// them, and answers how many.
var purgeScript = redis.NewScript(1, `
local t = redis.call('TIME')
local old = string.format('%.0f', t[1] * 1000000 + t[2] - ARGV[1])
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', old, 'LIMIT', 0, ARGV[2])
if #keys > 0 then redis.call('ZREM', KEYS[1], unpack(keys)) end
return #keys`)

// RateLimits keeps shared limits on one server. It may be used by many goroutines.
type RateLimits struct{ pool *redis.Pool }

var _ ports.RateLimits = (*RateLimits)(nil)

// ErrURL is returned for a text that is not a URL of a server. It does not repeat the text, in which
// there may be a password.
var ErrURL = errors.New("must be redis://[user:password@]host[:port][/database], rediss:// for TLS, or unix:///path")

// Check returns ErrURL unless NewRateLimits accepts a URL.
func Check(url string) error {
	_, err := parse(url)
	return err
}

// The timeouts of a connection and of a call. The caller has a timeout of its own, and goes on
// alone when the server is down.
var (
	dialTimeout = time.Second
	callTimeout = time.Second
)

// mostConnections bounds the connections of a process.
const mostConnections = 32

// testedAfter is how long a connection may be idle before it is tested: a server that was started
// again, or a firewall, has closed it.
const testedAfter = time.Second

// NewRateLimits returns the limits of a server. It makes no call; Close ends its connections.
func NewRateLimits(url string) (*RateLimits, error) {
	s, err := parse(url)
	if err != nil {
		return nil, err
	}
	return &RateLimits{&redis.Pool{
		DialContext: s.dial, MaxIdle: mostConnections, MaxActive: mostConnections, Wait: true, IdleTimeout: time.Minute,
		TestOnBorrowContext: func(ctx context.Context, c redis.Conn, used time.Time) error {
			if time.Since(used) < testedAfter {
				return nil
			}
			_, err := redis.DoContext(c, ctx, "PING")
			return err
		},
	}}, nil
}

// Close ends the connections.
func (r *RateLimits) Close() error { return r.pool.Close() }

// Take takes tokens of a key. It is not retried: a lost answer costs tokens, a repeated take would
// cost them twice.
func (r *RateLimits) Take(ctx context.Context, key string, request ratelimit.Request) (ratelimit.Grant, error) {
	got, err := redis.Int64s(r.run(ctx, takeScript, states, key, request.Interval.Microseconds(),
		request.Burst.Microseconds(), request.Tokens, forgotten.Microseconds()))
	if err != nil {
		return ratelimit.Grant{}, fmt.Errorf("take tokens of %s: %w", key, err)
	}
	if len(got) != 3 {
		return ratelimit.Grant{}, fmt.Errorf("take tokens of %s: the answer has %d values", key, len(got))
	}
	return ratelimit.Grant{Tokens: int(got[0]), TAT: time.UnixMicro(got[1]), Now: time.UnixMicro(got[2])}, nil
}

// Purge removes states that have been free for two minutes, and returns how many.
func (r *RateLimits) Purge(ctx context.Context, limit int) (int, error) {
	n, err := redis.Int(r.run(ctx, purgeScript, states, forgotten.Microseconds(), limit))
	if err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	return n, nil
}

// run runs a script on a connection of the pool.
func (r *RateLimits) run(ctx context.Context, s *redis.Script, args ...any) (any, error) {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // gives it back
	return s.DoContext(ctx, conn, args...)
}
