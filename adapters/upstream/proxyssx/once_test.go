package proxyssx_test

import (
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
)

// With an Idempotency-Key the transport sends a request again by itself when a
// connection that was used before breaks. A refusal of the second one would hide
// what the first one bought.
func TestTheTransportRepeatsNoOrder(t *testing.T) {
	s := proxyssx.New(t)
	p := openPoolKeys(t, poolKeySpec(s.Base()))
	if _, err := p.Order(t.Context(), poolKeyIntent(1)); err != nil { // a connection to use again
		t.Fatal(err)
	}
	s.Next("POST", seller.DropAnswer, seller.Refuse)
	if _, err := p.Order(t.Context(), poolKeyIntent(2)); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Errorf("sold %d, and told %v", s.Sales(), err)
	}
	if n := s.Calls("POST"); n != 2 {
		t.Errorf("it was sent %d times", n-1)
	}
}
