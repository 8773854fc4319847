package proxyseller_test

import (
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

// specOf returns the spec of a provider at a fake, without pauses between calls.
func specOf(s *proxyseller.Server, section string) upstream.Spec {
	spec := upstream.Spec{Name: "ps", Kind: "proxyseller", BaseURL: s.Base(), PerSecond: 10000, Timeout: 2 * time.Minute,
		Secrets: map[string]string{"key": proxyseller.Key}, Options: map[string]string{"section": section}}
	if section != "resident" {
		spec.Options["purpose"] = "market research"
	}
	return spec
}

func open(t *testing.T, spec upstream.Spec) ports.Provider {
	t.Helper()
	p, err := upstream.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func openAddresses(t *testing.T) (*proxyseller.Server, ports.Static) {
	s := proxyseller.New(t)
	return s, open(t, specOf(s, "isp")).(ports.Static)
}

func openTraffic(t *testing.T) (*proxyseller.Server, ports.Dynamic) {
	s := proxyseller.New(t)
	return s, open(t, specOf(s, "resident")).(ports.Dynamic)
}

// ispIntent returns an intent for n addresses in the United States for a month.
func ispIntent(key string, n int) procurement.Intent {
	return procurement.Intent{Key: key, SessionID: "sess_1", Type: session.Static, SKU: "isp", Quantity: n, Days: 30,
		Location: session.Location{Country: "US"}}
}

// gigabyte returns an intent for residential traffic.
func gigabyte(key string) procurement.Intent {
	return procurement.Intent{Key: key, SessionID: "sess_1", Type: session.Dynamic, SKU: "resident", Bytes: 1e9, Quantity: 1,
		Location: session.Location{Country: "US"}}
}

// readLive reads an order until it is delivered.
func readLive(t *testing.T, p ports.Provider, ref string) procurement.Delivery {
	t.Helper()
	for range 10 {
		d, err := p.Read(t.Context(), ref)
		if err != nil {
			t.Fatalf("read %s: %v", ref, err)
		}
		if d.State == procurement.Live {
			return d
		}
	}
	t.Fatalf("%s is never delivered", ref)
	return procurement.Delivery{}
}

func TestContract(t *testing.T) {
	t.Parallel()
	isp, traffic := ispIntent("", 3), gigabyte("")
	t.Run("addresses", func(t *testing.T) {
		contract.Seller(t, func(t *testing.T) contract.Selling {
			s, p := openAddresses(t)
			return contract.Selling{Provider: p, Static: &isp, Sold: s.Sales, Vanish: s.Vanish,
				LoseAnswer:  func() { s.Next("/order/make", seller.DropAnswer) },
				LoseRequest: func() { s.Next("/order/make", seller.DropRequest) }}
		})
	})
	t.Run("residential traffic", func(t *testing.T) {
		contract.Seller(t, func(t *testing.T) contract.Selling {
			s, p := openTraffic(t)
			return contract.Selling{Provider: p, Dynamic: &traffic, Sold: s.Sales, Vanish: s.Vanish,
				LoseAnswer:  func() { s.Next("/residentsubuser/create", seller.DropAnswer) },
				LoseRequest: func() { s.Next("/residentsubuser/create", seller.DropRequest) }}
		})
	})
}
