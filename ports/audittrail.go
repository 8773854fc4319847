package ports

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/audit"
)

// AuditTrail keeps what the operator did. An action is never changed, and removed only when it is older
// than audit.Keep: the database refuses anything else.
type AuditTrail interface {
	// Append adds an action, and removes some that are too old. An action whose Ref was used with the same
	// Name is kept once: it is not added again.
	Append(ctx context.Context, a audit.Action) error
	// List lists actions, the newest first.
	List(ctx context.Context, f audit.Filter, page domain.Page) (domain.List[audit.Action], error)
}
