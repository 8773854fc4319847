package metering

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"runtime"
	"sync"
	"weak"

	"agentproxy/domain/policy"
)

// ruleSets shares compiled rules: sessions with equal ones have the same set, for as long as one of them uses it.
type ruleSets struct {
	mu sync.Mutex
	by map[ruleKey]weak.Pointer[policy.Rules]
}

// ruleKey is a digest of rules.
type ruleKey [sha256.Size]byte

func keyOf(own policy.Own) (key ruleKey) {
	h := sha256.New()
	for _, list := range [][]string{own.Allow, own.Deny, own.Ports} {
		writeLength(h, len(list))
		for _, rule := range list {
			writeLength(h, len(rule))
			h.Write([]byte(rule))
		}
	}
	h.Sum(key[:0])
	return key
}

func writeLength(h hash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

// rulesOf returns the compiled rules of a session, nil if they are off.
func (s *ruleSets) rulesOf(own policy.Own) *policy.Rules {
	if !own.InForce() {
		return nil
	}
	key := keyOf(own)
	if rules := s.setOf(key, nil); rules != nil {
		return rules
	}
	return s.setOf(key, own.Compile())
}

// setOf returns the set of a key. If there is none it keeps fresh, unless that is nil.
func (s *ruleSets) setOf(key ruleKey, fresh *policy.Rules) *policy.Rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rules := s.by[key].Value(); rules != nil || fresh == nil {
		return rules
	}
	if s.by == nil {
		s.by = map[ruleKey]weak.Pointer[policy.Rules]{}
	}
	s.by[key] = weak.Make(fresh)
	runtime.AddCleanup(fresh, s.drop, key)
	return fresh
}

// drop removes a set that is not used any more.
func (s *ruleSets) drop(key ruleKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.by[key]; known && p.Value() == nil {
		delete(s.by, key)
	}
}
