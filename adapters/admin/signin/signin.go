// Package signin decides who may use the operator's listener: it checks passwords and tokens, bounds guesses at
// them, and holds the sign-ins of browsers.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// Role is what a user may do.
type Role string

// Roles of users.
const (
	Read Role = "read" // sees the pages and the metrics
	Act  Role = "act"  // also does what the commands do
)

// User is who signed in.
type User struct {
	Name string
	Role Role
}

// May reports whether a user may do what a role may.
func (u User) May(needs Role) bool { return u.Role == Act || u.Role == Read && needs == Read }

// Operator is the name of who signs in with the credential of the listener itself.
const Operator = "operator"

type userKey struct{}

// With returns a context of a request of a user.
func With(ctx context.Context, u User) context.Context { return context.WithValue(ctx, userKey{}, u) }

// Of returns who signed in; the zero User, who may do nothing, without a sign-in.
func Of(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}

// Config is what a Gate checks.
type Config struct {
	// Secret is the credential of the listener itself: a password, or a token.
	Secret string
	// Token is whether Secret is a token of 256 random bits. It cannot be guessed, so wrong ones of a neighbour do not
	// keep it out.
	Token bool
	Users Users // who have a password of their own
}

// Lifetime is how long a browser stays signed in.
const Lifetime = 12 * time.Hour

// linkLifetime is how long a link that signs in works.
const linkLifetime = 5 * time.Minute

// mostSignIns bounds the sign-ins that are held.
const mostSignIns = 1000

// Gate admits users. A sign-in is held in memory: it ends with the process.
type Gate struct {
	cfg   Config
	clock ports.Clock
	log   *slog.Logger
	pages ui.Pages
	guesses
	hashing hashing
	key     []byte // of the digests that are compared

	mu      sync.Mutex
	users   Users
	signIns map[digest]signIn
	link    signIn // that was not used; the zero value is none
	linkKey digest
}

// digest is a keyed hash of a secret text. What is looked up or compared is a digest, so that the time that it takes
// depends on no secret.
type digest [sha256.Size]byte

// signIn is a browser that is signed in.
type signIn struct {
	name string
	hash string // of the user's password; empty for the operator
	ends time.Time
}

// New returns a Gate. A secret that is empty is never right.
func New(cfg Config, clock ports.Clock, log *slog.Logger) *Gate {
	key := make([]byte, sha256.Size)
	rand.Read(key)
	return &Gate{cfg: cfg, clock: clock, log: log, pages: parsePages(), key: key, users: cfg.Users,
		guesses: guesses{clock: clock, byAddress: map[netip.Addr]ratelimit.State{}},
		hashing: newHashing(), signIns: map[digest]signIn{}}
}

// Replace replaces the users. The sign-ins of those who are gone, or have another password, end.
func (g *Gate) Replace(users Users) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users = users
}

// named returns a user; nil if there is none of that name.
func (g *Gate) named(name string) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.users.byName[name]
}

// hasUsers reports whether a sign-in needs the name of a user.
func (g *Gate) hasUsers() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.users.byName) > 0
}

func (g *Gate) digestOf(text string) (d digest) {
	h := sha256.New()
	h.Write(g.key)
	h.Write([]byte(text))
	h.Sum(d[:0])
	return d
}

// same reports whether two texts are equal, in constant time; an empty one equals none.
func (g *Gate) same(given, secret string) bool {
	a, b := g.digestOf(given), g.digestOf(secret)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && secret != ""
}

// start holds a sign-in and returns its token.
func (g *Gate) start(u User) (token string) {
	token = rand.Text() + rand.Text()
	in := signIn{name: u.Name, ends: g.clock.Now().Add(Lifetime)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.users.byName[u.Name]; e != nil {
		in.hash = e.hash.text
	}
	if len(g.signIns) >= mostSignIns {
		g.evict()
	}
	g.signIns[g.digestOf(token)] = in
	return token
}

// evict removes the sign-in that would end first.
func (g *Gate) evict() {
	var first digest
	var ends time.Time
	for d, in := range g.signIns {
		if ends.IsZero() || in.ends.Before(ends) {
			first, ends = d, in.ends
		}
	}
	delete(g.signIns, first)
}

// find returns who has a sign-in, with the present role.
func (g *Gate) find(token string) (User, bool) {
	if token == "" {
		return User{}, false
	}
	d, now := g.digestOf(token), g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	in, ok := g.signIns[d]
	if !ok {
		return User{}, false
	}
	u, ok := g.present(in)
	if !ok || !now.Before(in.ends) {
		delete(g.signIns, d)
		return User{}, false
	}
	return u, true
}

// present returns the user of a sign-in, unless the password of it has changed.
func (g *Gate) present(in signIn) (User, bool) {
	if in.name == Operator {
		return User{Operator, Act}, true
	}
	e := g.users.byName[in.name]
	if e == nil || e.hash.text != in.hash {
		return User{}, false
	}
	return e.User, true
}

// end ends a sign-in.
func (g *Gate) end(token string) {
	d := g.digestOf(token)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.signIns, d)
}

// Link returns the path of a page that signs the operator in once, within five minutes. It replaces the link before.
func (g *Gate) Link() string {
	token := rand.Text()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.linkKey, g.link = g.digestOf(token), signIn{name: Operator, ends: g.clock.Now().Add(linkLifetime)}
	return signInPath + "/" + token
}

// useLink reports whether a link is right, and ends it.
func (g *Gate) useLink(token string) bool {
	d, now := g.digestOf(token), g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.link.name == "" || subtle.ConstantTimeCompare(d[:], g.linkKey[:]) != 1 || !now.Before(g.link.ends) {
		return false
	}
	g.link = signIn{}
	return true
}
