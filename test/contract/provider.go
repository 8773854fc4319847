// Package contract holds one suite per port: the promises of its comments, run
// against every adapter of that port.
package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Provider holds a ports.OldProvider to its promises. Open returns one that sells
// at least one available product of each type and has 20 static addresses and
// two dynamic ones, all free.
func Provider(t *testing.T, open func(t *testing.T) ports.OldProvider) {
	t.Run("its catalogue is valid and its own", func(t *testing.T) { providerCatalogue(t, open(t)) })
	t.Run("a dynamic session gets one exit", func(t *testing.T) { providerDynamic(t, open(t)) })
	t.Run("a static session gets different exits that nobody has", func(t *testing.T) { providerStatic(t, open(t)) })
	t.Run("an order of a known Ref is answered as before", func(t *testing.T) { providerRepeat(t, open(t)) })
	t.Run("a rotation gives another exit", func(t *testing.T) { providerRotate(t, open(t)) })
	t.Run("a static address is never a dynamic exit", func(t *testing.T) { providerDisjoint(t, open(t)) })
	t.Run("what is out of stock is refused whole", func(t *testing.T) { providerStock(t, open(t)) })
	t.Run("a release may be repeated", func(t *testing.T) { providerRelease(t, open(t)) })
	t.Run("a static session can be extended", func(t *testing.T) { providerExtend(t, open(t)) })
	t.Run("many may order at once", func(t *testing.T) { providerParallel(t, open(t)) })
}

// providerOrder is an order of the provider's first available product of a type.
func providerOrder(t *testing.T, p ports.OldProvider, typ session.Type, ref, quantity int) ports.OldOrder {
	t.Helper()
	for _, product := range p.Products() {
		if product.Type == typ && product.Available {
			o := ports.OldOrder{Ref: fmt.Sprintf("sess_%020d", ref), Product: product, Quantity: quantity,
				Location: session.Location{Country: product.Countries[0]}}
			if typ == session.Static {
				o.Days = product.Durations[0].Days
			}
			return o
		}
	}
	t.Fatalf("%s sells no available %s product", p.Name(), typ)
	return ports.OldOrder{}
}

func providerBuy(t *testing.T, p ports.OldProvider, o ports.OldOrder) []session.Exit {
	t.Helper()
	exits, err := p.Provision(t.Context(), o)
	if err != nil {
		t.Fatalf("provision %s: %v", o.Ref, err)
	}
	distinct := map[netip.Addr]bool{}
	for _, e := range exits {
		if !e.IP.IsValid() || o.Taken[e.IP.String()] {
			t.Errorf("%s got the exit %s, which is invalid or taken", o.Ref, e.IP)
		}
		distinct[e.IP] = true
	}
	if len(exits) != o.Quantity || len(distinct) != o.Quantity {
		t.Fatalf("%s got %v, want %d different exits", o.Ref, exits, o.Quantity)
	}
	return exits
}

func providerCatalogue(t *testing.T, p ports.OldProvider) {
	if err := catalog.Check(p.Products()); err != nil {
		t.Error(err)
	}
	for _, product := range p.Products() {
		if product.Provider != p.Name() {
			t.Errorf("%s names the provider %q, want %q", product.No, product.Provider, p.Name())
		}
	}
}

func providerDynamic(t *testing.T, p ports.OldProvider) {
	for ref := range 20 {
		providerBuy(t, p, providerOrder(t, p, session.Dynamic, ref, 1))
	}
}

func providerStatic(t *testing.T, p ports.OldProvider) {
	taken := map[string]bool{}
	for ref := range 4 {
		o := providerOrder(t, p, session.Static, ref, 5)
		o.Taken = taken
		for _, e := range providerBuy(t, p, o) {
			taken[e.IP.String()] = true
		}
		if len(taken) != (ref+1)*5 {
			t.Fatalf("after %d orders of 5 there are %d different addresses", ref+1, len(taken))
		}
		// What the seller has back, but a session here still owns, stays out.
		if err := p.Release(t.Context(), o.Ref); err != nil {
			t.Fatal(err)
		}
	}
}

func providerRepeat(t *testing.T, p ports.OldProvider) {
	for _, o := range []ports.OldOrder{providerOrder(t, p, session.Dynamic, 1, 1), providerOrder(t, p, session.Static, 2, 3)} {
		first := providerBuy(t, p, o)
		for range 5 {
			if again := providerBuy(t, p, o); !slices.Equal(again, first) {
				t.Errorf("%s: repeated, the order got %v, want %v", o.Product.Type, again, first)
			}
		}
	}
}

func providerRotate(t *testing.T, p ports.OldProvider) {
	o := providerOrder(t, p, session.Dynamic, 1, 1)
	current := providerBuy(t, p, o)[0]
	for range 50 {
		next, err := p.Rotate(t.Context(), o, current)
		if err != nil {
			t.Fatal(err)
		}
		if next == current || !next.IP.IsValid() {
			t.Fatalf("rotated from %s to %s", current.IP, next.IP)
		}
		current = next
	}
}

func providerDisjoint(t *testing.T, p ports.OldProvider) {
	static := providerBuy(t, p, providerOrder(t, p, session.Static, 1, 20))
	for ref := range 200 {
		o := providerOrder(t, p, session.Dynamic, 100+ref, 1)
		exit := providerBuy(t, p, o)[0]
		rotated, err := p.Rotate(t.Context(), o, exit)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(static, exit) || slices.Contains(static, rotated) {
			t.Fatalf("%s or %s is a static address too", exit.IP, rotated.IP)
		}
	}
}

// providerStock buys until the provider has no more; a seller whose stock is
// endless for a test passes.
func providerStock(t *testing.T, p ports.OldProvider) {
	taken := map[string]bool{}
	for ref := range 200 {
		o := providerOrder(t, p, session.Static, ref, 7)
		o.Taken = taken
		exits, err := p.Provision(t.Context(), o)
		if errors.Is(err, catalog.ErrOutOfStock) {
			if len(exits) > 0 {
				t.Errorf("out of stock, and yet it delivered %v", exits)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range exits {
			taken[e.IP.String()] = true
		}
	}
}

func providerRelease(t *testing.T, p ports.OldProvider) {
	for _, o := range []ports.OldOrder{providerOrder(t, p, session.Dynamic, 1, 1), providerOrder(t, p, session.Static, 2, 2)} {
		providerBuy(t, p, o)
		for range 3 {
			if err := p.Release(t.Context(), o.Ref); err != nil {
				t.Errorf("release %s: %v", o.Ref, err)
			}
		}
	}
}

func providerExtend(t *testing.T, p ports.OldProvider) {
	o := providerOrder(t, p, session.Static, 1, 2)
	providerBuy(t, p, o)
	if err := p.Extend(t.Context(), o, time.Now().Add(time.Duration(o.Days)*session.Day)); err != nil {
		t.Error(err)
	}
}

// providerParallel is for the race detector as much as for the answers.
func providerParallel(t *testing.T, p ports.OldProvider) {
	o := providerOrder(t, p, session.Dynamic, 0, 1)
	var wg sync.WaitGroup
	for ref := range 20 {
		wg.Go(func() {
			mine := o
			mine.Ref = fmt.Sprintf("sess_%020d", ref)
			exits, err := p.Provision(t.Context(), mine)
			if err == nil {
				_, err = p.Rotate(t.Context(), mine, exits[0])
			}
			if err != nil {
				t.Errorf("order %d: %v", ref, err)
			}
		})
	}
	wg.Wait()
}
