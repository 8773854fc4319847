package signin

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// Wrong passwords a minute. Beyond them none is checked, right ones neither: each answer would be another guess.
const (
	guessesByAddress = 30
	guessesInAll     = 300
)

var byAddress, inAll = ratelimit.Limit{PerMinute: guessesByAddress}, ratelimit.Limit{PerMinute: guessesInAll}

// maxPassword bounds a password in bytes.
const maxPassword = 1024

var (
	errWrong = &domain.Error{Kind: domain.Unauthorized, Code: "SIGN_IN_REFUSED",
		Message: "this is not a credential of the operator's listener"}
	errGuesses = &domain.Error{Kind: domain.RateLimited, Code: "RATE_LIMIT_EXCEEDED",
		Message: "too many wrong passwords; wait for the seconds in Retry-After"}
	errBusy = errGuesses.Msgf("too many passwords are being checked; try again").After(time.Second)
)

// guesses counts wrong passwords.
type guesses struct {
	clock ports.Clock

	counting  sync.Mutex
	all       ratelimit.State
	byAddress map[netip.Addr]ratelimit.State // as many as the limit of all lets be counted in a minute, and purged
}

// purgeFrom is how many addresses are held until those that may try again as before are removed.
const purgeFrom = 2 * guessesInAll

// network returns the part of an address that one client has: all of IPv4, a /64 of IPv6.
func network(client netip.Addr) netip.Addr {
	if client.Is6() {
		if p, err := client.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return client
}

// left refuses a client after too many wrong passwords.
func (g *guesses) left(client netip.Addr) error {
	now := g.clock.Now()
	if _, d := byAddress.Take(g.byAddress[network(client)], now, 1); !d.Allowed {
		return errGuesses.After(d.RetryAfter)
	}
	if _, d := inAll.Take(g.all, now, 1); !d.Allowed {
		return errGuesses.After(d.RetryAfter)
	}
	return nil
}

// record counts a wrong password.
func (g *guesses) record(client netip.Addr) {
	now, at := g.clock.Now(), network(client)
	if len(g.byAddress) >= purgeFrom {
		maps.DeleteFunc(g.byAddress, func(_ netip.Addr, s ratelimit.State) bool { return !s.TAT.After(now) })
	}
	g.byAddress[at], _ = byAddress.Take(g.byAddress[at], now, 1)
	g.all, _ = inAll.Take(g.all, now, 1)
}

// try runs a check that takes no time, unless there were too many wrong ones.
func (g *guesses) try(client netip.Addr, right func() bool) error {
	g.counting.Lock() // so that guesses at the same time do not pass together
	defer g.counting.Unlock()
	if err := g.left(client); err != nil {
		return err
	}
	if !right() {
		g.record(client)
		return errWrong
	}
	return nil
}

// Bounds of the hashes that are computed at once. Each takes the memory that its parameters name.
const (
	hashesAtOnce  = 2
	waitingHashes = 32
)

// hashing bounds the memory of checks.
type hashing struct {
	slots   chan struct{}
	waiting *atomic.Int32
}

func newHashing() hashing { return hashing{make(chan struct{}, hashesAtOnce), new(atomic.Int32)} }

// do runs fn when there is memory for it.
func (h hashing) do(ctx context.Context, fn func() error) error {
	if h.waiting.Add(1) > waitingHashes {
		h.waiting.Add(-1)
		return errBusy
	}
	defer h.waiting.Add(-1)
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
		return fn()
	case <-ctx.Done():
		return errBusy
	}
}

// check returns who has a password; errWrong, errGuesses or errBusy if there is no such user, or it is not checked.
func (g *Gate) check(ctx context.Context, client netip.Addr, name, password string) (User, error) {
	u, err := g.userOf(ctx, client, name, password)
	if err != nil {
		attempted := name
		if name != Operator && g.named(name) == nil {
			attempted = "unknown" // it may be a password in the wrong field
		}
		if errors.Is(err, errWrong) {
			g.log.Warn("a sign-in at the admin listener was refused", "user", attempted, "client", client.String())
		}
		return User{}, err
	}
	return u, nil
}

func (g *Gate) userOf(ctx context.Context, client netip.Addr, name, password string) (User, error) {
	operator := User{Operator, Act}
	switch {
	case name == "":
		name = Operator
	case len(name) > maxName:
		name = "unknown user"
	}
	if name == Operator && g.cfg.Token && g.same(password, g.cfg.Secret) {
		return operator, nil
	}
	if name == Operator || len(password) > maxPassword {
		return operator, g.try(client, func() bool { return name == Operator && g.same(password, g.cfg.Secret) })
	}
	e := g.named(name)
	known, err := g.remembered(client, e, password)
	if known || err != nil {
		return e.user(), err
	}
	hash := unknownHash // takes as long, so that names cannot be tried
	if e != nil {
		hash = e.hash
	}
	err = g.hashing.do(ctx, func() error {
		if _, err := g.remembered(client, nil, ""); err != nil { // of those before it in the queue
			return err
		}
		right := hash.matches(password) && e != nil
		return g.try(client, func() bool { return right })
	})
	if err != nil {
		return User{}, err
	}
	e.remember(g.digestOf(password))
	return e.User, nil
}

// remembered reports whether a password was found right before, so that a program that sends it with each request
// costs no hash. It counts no guess: what is not remembered is checked again. It refuses a client after too many wrong
// passwords.
func (g *Gate) remembered(client netip.Addr, e *entry, password string) (bool, error) {
	g.counting.Lock()
	defer g.counting.Unlock()
	if err := g.left(client); err != nil {
		return false, err
	}
	return e.isRemembered(g.digestOf(password)), nil
}
