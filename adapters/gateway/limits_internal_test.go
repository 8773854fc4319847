package gateway

import (
	"net"
	"strings"
	"testing"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/policy"
)

// What refuses by itself is a miss. What may be a fault of this host's network is one only while connections open, and
// faults of sellers, limits and the session's own rules never are.
func TestWhatCountsAsAMiss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ref            *refusal.Refusal
		always, beside bool
	}{
		{refusal.ConnectionRefused, true, true},
		{refusal.NameNotFound, true, true},
		{refusal.TargetForbidden.Because("a port"), true, true},
		{refusal.Denied(policy.Denial{Layer: policy.Operator}), true, true},
		{refusal.Denied(policy.Denial{Layer: policy.Trial}), true, true},
		{refusal.Denied(policy.Denial{Layer: policy.Session}), false, false},
		{refusal.ConnectTimeout, false, true},
		{refusal.Unreachable, false, true},
		{refusal.NameTimeout, false, false},
		{refusal.UpstreamTimeout, false, false},
		{refusal.UpstreamRefused, false, false},
		{refusal.OutOfSockets, false, false},
		{refusal.TooFast, false, false},
		{refusal.TooManyStarts, false, false},
		{refusal.TooManyTunnels, false, false},
	} {
		var g Gateway
		if got := g.missed(c.ref); got != c.always {
			t.Errorf("%v: %v", c.ref, got)
		}
		g.lastOpened.Store(int64(monotime.Now()))
		if got := g.missed(c.ref); got != c.beside {
			t.Errorf("%v while connections open: %v", c.ref, got)
		}
		g.lastOpened.Store(int64(max(monotime.Now()-outage, 0)))
		if got := g.missed(c.ref); got != c.always {
			t.Errorf("%v a minute after one opened: %v", c.ref, got)
		}
	}
}

// A connection that is closed for another agent's before its target is reached is answered with the reason.
func TestTheAnswerToAConnectionThatIsClosedForAnother(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tcp, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	c := client.New(tcp.(*net.TCPConn))
	c.Evict()
	if ref := interruption(c); ref.Status != 503 || ref.Code != refusal.CodeNoCapacity || !strings.Contains(ref.Message, "the gateway is full") {
		t.Errorf("%+v", ref)
	}
}
