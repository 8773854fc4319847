package audit

import (
	"context"
	"sync"
)

// Pending is an action of the operator in progress. It is stored once, by the first unit of work that
// commits. It is safe for concurrent use.
type Pending struct {
	mu      sync.Mutex
	action  Action
	claimed bool
}

type key struct{}

// NewContext returns a context in which an action is done, and the Pending.
func NewContext(ctx context.Context, a Action) (context.Context, *Pending) {
	act := &Pending{action: a}
	return context.WithValue(ctx, key{}, act), act
}

// FromContext returns the Pending of a context, nil outside an action of the operator.
func FromContext(ctx context.Context) *Pending {
	act, _ := ctx.Value(key{}).(*Pending)
	return act
}

// SetSubject names what the action of a context is about, if that is known only in the unit of work.
func SetSubject(ctx context.Context, subject string) {
	if act := FromContext(ctx); act != nil {
		act.mu.Lock()
		act.action.Subject = subject
		act.mu.Unlock()
	}
}

// ForSubject returns a context for one of several subjects of an action, which is kept for each of
// them.
func ForSubject(ctx context.Context, subject string) context.Context {
	act := FromContext(ctx)
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
	ctx, _ = NewContext(ctx, a)
	return ctx
}

// Claim reports whether the caller is the one to keep the action.
func (a *Pending) Claim() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.claimed {
		return false
	}
	a.claimed = true
	return true
}

// Unclaim lets another caller keep the action, since this one failed.
func (a *Pending) Unclaim() {
	a.mu.Lock()
	a.claimed = false
	a.mu.Unlock()
}

// Action returns what is known of the action by now.
func (a *Pending) Action() Action {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.action
}
