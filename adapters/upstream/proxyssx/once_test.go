package proxyssx_test

import (
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/test/fake/proxyssx"
	"agentproxy/test/fake/seller"
)

// With an Idempotency-Key, http.Transport repeats a request after a reused connection
// breaks. A refusal of the repetition would hide what the first request bought.
func TestTheTransportRepeatsNoOrder(t *testing.T) {
	t.Parallel()
	s := proxyssx.New(t)
	p := open(t, specOf(s.Base()))
	if _, err := p.Order(t.Context(), intent(1)); err != nil { // a connection to use again
		t.Fatal(err)
	}
	s.Next("POST", seller.DropAnswer, seller.Refuse)
	if _, err := p.Order(t.Context(), intent(2)); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Errorf("sold %d, and returned %v", s.Sales(), err)
	}
	if n := s.Calls("POST"); n != 2 {
		t.Errorf("it was sent %d times", n-1)
	}
}
