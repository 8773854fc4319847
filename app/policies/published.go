// Package policies keeps the rules about which targets may be reached.
package policies

import (
	"sync/atomic"

	"agentproxy/domain/policy"
)

// Published holds the rules of the operator and of products that hold now. It is safe for
// concurrent use.
type Published struct{ now atomic.Pointer[policy.Shared] }

// Publish returns a Published of the rules of the start.
func Publish(rules *policy.Shared) *Published {
	p := &Published{}
	p.Replace(rules)
	return p
}

// Now returns the rules that hold now; nil for none.
func (p *Published) Now() *policy.Shared { return p.now.Load() }

// Replace replaces all rules. Connections to what they deny are cut by the gateway.
func (p *Published) Replace(rules *policy.Shared) { p.now.Store(rules) }
