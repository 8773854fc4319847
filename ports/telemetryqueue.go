package ports

import (
	"context"

	"agentproxy/domain"
)

// TelemetryQueue stores calls of telemetry durably in front of the store, in a fixed number of queues
// among which agents are divided, and has them folded in the order in which it stored them.
type TelemetryQueue interface {
	// Publish stores a call of an agent and returns its place. What returned is on the server's disk,
	// and behind every call of the agent that returned before. It returns domain.ErrUnavailable after
	// two seconds at most if the server does not answer or has no room; after no answer the call may
	// have been stored or not. A call that the server does not take at all is ErrCallTooLarge.
	Publish(ctx context.Context, agentID string, call []byte) (QueuePlace, error)
	// Folded waits until a place is folded, by whichever replica; false if the context ended first.
	Folded(ctx context.Context, at QueuePlace) bool
	// Consume has calls of the queues of this replica folded until the context ends. The queues of a
	// replica that died are taken by others within 20 seconds. Two replicas may fold the same calls:
	// fold is what keeps count, and returns how far the queue is folded. A call that fold fails for
	// a reason of its own is set aside after some attempts, and fold gets it without its body.
	Consume(ctx context.Context, fold func(context.Context, QueuedCalls) (FoldCursor, error))
}

// QueuePlace is where a call is stored.
type QueuePlace struct {
	Queue int
	Seq   uint64
}

// QueuedCalls are calls of one queue in their order.
type QueuedCalls struct {
	Queue  string
	Stream string // identity of the stream, which changes when it is made anew
	Calls  []QueuedCall
}

// QueuedCall is a call as it was published. The body is nil for one that was set aside.
type QueuedCall struct {
	Seq  uint64
	Body []byte
}

// ErrCallTooLarge reports that a call has more bytes than a message of the server may have.
var ErrCallTooLarge = &domain.Error{Kind: domain.TooLarge, Code: "PAYLOAD_TOO_LARGE",
	Message: "the call is larger than the queue takes"}
