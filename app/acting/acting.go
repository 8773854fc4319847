// Package acting carries what the operator does from the way in to the unit of work that changes
// something, which keeps it.
package acting

import (
	"context"
	"sync"

	"agentproxy/domain/audit"
)

// Act is an action of the operator in progress. It is stored once, by the first unit of work that
// commits. It is safe for concurrent use.
type Act struct {
	mu      sync.Mutex
	action  audit.Action
	claimed bool
}

type key struct{}

// With returns a context in which an action is done, and the Act.
func With(ctx context.Context, a audit.Action) (context.Context, *Act) {
	act := &Act{action: a}
	return context.WithValue(ctx, key{}, act), act
}

// Of returns the Act of a context, nil outside an action of the operator.
func Of(ctx context.Context) *Act {
	act, _ := ctx.Value(key{}).(*Act)
	return act
}

// On names what the action of a context is about, if that is known only in the unit of work.
func On(ctx context.Context, subject string) {
	if act := Of(ctx); act != nil {
		act.mu.Lock()
		act.action.Subject = subject
		act.mu.Unlock()
	}
}

// Each returns a context for one of several subjects of an action, which is kept for each of them.
func Each(ctx context.Context, subject string) context.Context {
	act := Of(ctx)
	if act == nil {
		return ctx
	}
	act.mu.Lock()
	a := act.action
	act.claimed = true // what is kept of it is kept for its subjects
	act.mu.Unlock()
	a.Subject = subject
	if a.Ref != "" {
		a.Ref += ":" + subject
	}
	ctx, _ = With(ctx, a)
	return ctx
}

// Claim reports whether the caller is the one to keep the action.
func (a *Act) Claim() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.claimed {
		return false
	}
	a.claimed = true
	return true
}

// Unclaim lets another caller keep the action, since this one failed.
func (a *Act) Unclaim() {
	a.mu.Lock()
	a.claimed = false
	a.mu.Unlock()
}

// Action returns what is known of the action by now.
func (a *Act) Action() audit.Action {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.action
}
