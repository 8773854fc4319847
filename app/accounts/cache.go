package accounts

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain/account"
)

// agentCache keeps the agents that called lately, so that a request costs no
// query. Which agent a key belongs to never changes; the agent itself, with the keys that it has, is
// dropped when it changes, at once in this process and within a second in
// others, and a load that was under way meanwhile is not kept.
type agentCache struct {
	keys   cache.Cache[string, cachedKey]
	ended  cache.Cache[string, struct{}] // hashes of keys that were replaced or deleted
	agents cache.Cache[cachedAgent, *knownAgent]
	since  atomic.Uint64 // raised when anything may have changed
}

// cachedAgent is the key of an agent. Raising since invalidates every entry that
// was loaded, or is being loaded, before.
type cachedAgent struct {
	since uint64
	id    string
}

// cachedKey is what is known of a key: its agent, and its hash as it is stored, which may be one
// under an older root secret.
type cachedKey struct {
	agentID string
	hash    []byte
}

// knownAgent is an agent and its keys.
type knownAgent struct {
	account.Agent
	trial   bool        // its tier is trial, outside development mode
	network string      // of a trial, that it registered from; empty: not known
	keys    []*knownKey // the first one first
}

// key returns the key with a hash, nil if the agent does not have it any more.
func (a *knownAgent) key(hash []byte) *knownKey {
	for _, k := range a.keys {
		if bytes.Equal(k.Hash, hash) {
			return k
		}
	}
	return nil
}

// keyByTag returns the live key whose hash begins with a tag, nil if there is none.
func (a *knownAgent) keyByTag(tag []byte, now time.Time) *knownKey {
	for _, k := range a.keys {
		if len(tag) == tagLength && bytes.HasPrefix(k.Hash, tag) && !k.Expired(now) {
			return k
		}
	}
	return nil
}

// tagLength is how many bytes of a hash name a key of an agent: enough that two of its keys never share them.
const tagLength = 12

// tag returns what names the key in tokens and links, which end with it.
func (k *knownKey) tag() []byte { return k.Hash[:min(tagLength, len(k.Hash))] }

func newAgentCache() *agentCache {
	return &agentCache{
		keys:   cache.New(cache.Bounds[string, cachedKey]{Most: cachedAgents}),
		ended:  cache.New(cache.Bounds[string, struct{}]{Most: cachedAgents}),
		agents: cache.New(cache.Bounds[cachedAgent, *knownAgent]{Most: cachedAgents, Written: cacheTTL}),
	}
}

// AgentChanged drops an agent.
func (c *agentCache) AgentChanged(id string) {
	if id == "" {
		c.since.Add(1)
		c.agents.InvalidateAll()
		return
	}
	c.agents.Invalidate(cachedAgent{c.since.Load(), id})
}

// SessionChanged does nothing: no session is kept here.
func (c *agentCache) SessionChanged(string) {}

// knownKey is a key in memory. Used is set by the first use since it was loaded or its uses were
// stored, so that a further use costs a read of the flag.
type knownKey struct {
	account.Key
	used atomic.Bool
}

// keyUses collects the keys that were used since they were stored last.
type keyUses struct {
	mu   sync.Mutex
	keys map[string]*knownKey // by id
}

func (u *keyUses) add(k *knownKey) {
	if k.used.Load() || !k.used.CompareAndSwap(false, true) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		u.keys = map[string]*knownKey{}
	}
	if len(u.keys) < maxKeyUses {
		u.keys[k.ID] = k
	}
}

func (u *keyUses) takeUses() map[string]*knownKey {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.keys
	u.keys = nil
	for _, k := range taken {
		k.used.Store(false)
	}
	return taken
}

// maxKeyUses bounds the memory of uses between two calls of StoreUses.
const maxKeyUses = 100_000

const (
	cachedAgents = 20_000
	cacheTTL     = time.Minute
)
