package wire

import (
	"testing"

	"agentproxy/test/fake"
)

// The gateway cuts and refuses static sessions by the clock of all replicas: one whose host is ahead
// takes no paid time away.
func TestTheGatewayGoesByTheSharedClock(t *testing.T) {
	clock := fake.NewClock()
	if now := gatewayDeps(gatewayIn{Clock: clock}).Now; now == nil || !now().Equal(fake.Start) {
		t.Error("the gateway has a clock of its own")
	}
}
