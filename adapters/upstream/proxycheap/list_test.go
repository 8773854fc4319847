package proxycheap_test

import (
	"strings"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake/proxycheap"
)

// Addresses that do not name their order are listed one by one, so that those of live
// sessions are known by their address.
func TestListsAddressesThatNameNoOrder(t *testing.T) {
	t.Parallel()
	s := proxycheap.New(t)
	s.Answers(proxycheap.Shape{Anonymous: true})
	p := newProvider(t, s, nil)
	d := orderLive(t, p, "ord_1")
	list, err := p.(ports.Lister).List(t.Context())
	if err != nil || len(list) != len(d.IPs) {
		t.Fatalf("%d are listed, want %d; %v", len(list), len(d.IPs), err)
	}
	for _, x := range list {
		if !strings.HasPrefix(x.Ref, "address-") || x.State != procurement.Live || len(x.IPs) != 1 || !x.IPs[0].Addr.IsValid() {
			t.Errorf("listed as %s %s with %d addresses", x.Ref, x.State, len(x.IPs))
		}
	}
}
