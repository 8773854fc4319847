package contract

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Replacing is a provider at a fake seller, with the test's controls of that.
type Replacing struct {
	Provider ports.Replacer
	// Intent has no Key, and three addresses or more. Two may be replaced at least.
	Intent procurement.Intent
	// Chooses is set if the provider chooses the new address, so that Avoid and Passes bind it.
	Chooses bool
	// Asked returns the number of replacements that were asked for; nil if the provider asks no seller.
	Asked func() int
	// Settle completes what the seller has accepted, an hour later, and has the provider look at it; nil if all is
	// done at once.
	Settle func()
	// Losses are the ways in which the outcome of the next replacement stays unknown. Refusals are those in which
	// the seller refuses the next one.
	Losses, Refusals []ReplacerFault
	// Never makes the next replacement be accepted, and not done; nil if that is not possible.
	Never func()
	// Exhaust leaves no other address to give, which the provider can know; nil if it cannot.
	Exhaust func()
	// Secrets are texts that no error has.
	Secrets []string
}

// ReplacerFault is what becomes of the next request for a replacement.
type ReplacerFault struct {
	Name string
	Next func()
	Done bool // the seller has done it
}

// Replacer tests the contract of a ports.Replacer. Open returns one at a seller with stock for one order.
func Replacer(t *testing.T, open func(t *testing.T) Replacing) {
	for name, test := range map[string]func(t *testing.T, r replacer){
		"the new address is there in place of the old one, and the others stay": replacerReplaces,
		"a quote changes nothing":                         replacerQuotes,
		"what the order does not have is not replaced":    replacerUnknown,
		"without another address nothing changes":         replacerExhausted,
		"a refusal changes nothing":                       replacerRefused,
		"what is accepted and never done changes nothing": replacerNever,
		"a provider that can choose gives what it may":    replacerChooses,
		"a call that is repeated replaces once":           replacerRepeats,
		"many calls for one address replace it once":      replacerParallel,
		"a cancelled context replaces nothing":            replacerLeft,
	} {
		t.Run(name, func(t *testing.T) { test(t, newReplacer(t, open)) })
	}
	t.Run("an outcome that is unknown is Ambiguous, and is sent once", func(t *testing.T) {
		for i, loss := range open(t).Losses {
			t.Run(loss.Name, func(t *testing.T) {
				r := newReplacer(t, open)
				replacerLost(t, r, r.Losses[i])
			})
		}
	})
}

func newReplacer(t *testing.T, open func(t *testing.T) Replacing) replacer {
	t.Helper()
	s := open(t)
	s.Intent.Type, s.Intent.Quantity = session.Static, max(s.Intent.Quantity, 3)
	return replacer{Replacing: s, t: t, bought: sellerBuy(t, s.Provider, sellerIntent(s.Intent, 1))}
}

// replacer is a provider, with an order of it.
type replacer struct {
	Replacing
	t      *testing.T
	bought procurement.Delivery
}

// ask returns the replacement of the n-th address of the order.
func (r replacer) ask(n int) procurement.Replacement {
	return procurement.Replacement{Key: fmt.Sprintf("rep_%024d", n), Addr: r.bought.IPs[n].Addr,
		Fault: procurement.Faults[n%len(procurement.Faults)], Location: r.Intent.Location}
}

// replace has an address replaced, and returns the class of the error. It fails the test if that has a secret.
func (r replacer) replace(ctx context.Context, ref string, in procurement.Replacement) procurement.Class {
	r.t.Helper()
	err := r.Provider.Replace(ctx, ref, in)
	for _, secret := range r.Secrets {
		if err != nil && strings.Contains(err.Error(), secret) {
			r.t.Errorf("the error has a secret: %v", err)
		}
	}
	return procurement.ClassOf(err)
}

// asked returns the number of replacements that were asked for.
func (r replacer) asked() int {
	if r.Asked == nil {
		return 0
	}
	return r.Asked()
}

// now reads the order.
func (r replacer) now() procurement.Delivery {
	r.t.Helper()
	d, err := r.Provider.Read(r.t.Context(), r.bought.Ref)
	if err != nil || d.State != procurement.Live {
		r.t.Fatalf("read: %s, %v", d.State, err)
	}
	return d
}

// settled reads the order once all that was accepted is done.
func (r replacer) settled() procurement.Delivery {
	r.t.Helper()
	if r.Settle != nil {
		r.Settle()
	}
	return r.now()
}

// unchanged checks that the order has what was bought.
func (r replacer) unchanged(d procurement.Delivery) {
	r.t.Helper()
	if !slices.Equal(d.IPs, r.bought.IPs) || !d.ExpiresAt.Equal(r.bought.ExpiresAt) {
		r.t.Errorf("the order has %v until %v, want %v until %v", d.IPs, d.ExpiresAt, r.bought.IPs, r.bought.ExpiresAt)
	}
}

// replaced checks that of what was bought exactly these addresses are others, for the same time, and returns the new ones.
func (r replacer) replaced(d procurement.Delivery, old ...netip.Addr) (fresh []procurement.IP) {
	r.t.Helper()
	had := map[netip.Addr]procurement.IP{}
	for _, ip := range r.bought.IPs {
		had[ip.Addr] = ip
	}
	for _, ip := range d.IPs {
		before, stays := had[ip.Addr]
		switch {
		case slices.Contains(old, ip.Addr):
			r.t.Errorf("%s is still there", ip.Addr)
		case !stays:
			fresh = append(fresh, ip)
		case ip != before:
			r.t.Errorf("the other address %s has changed", ip.Addr)
		}
		if !ip.ExpiresAt.Equal(r.bought.IPs[0].ExpiresAt) {
			r.t.Errorf("%s ends at %v, want %v", ip.Addr, ip.ExpiresAt, r.bought.IPs[0].ExpiresAt)
		}
	}
	if len(d.IPs) != len(r.bought.IPs) || len(fresh) != len(old) || !d.ExpiresAt.Equal(r.bought.ExpiresAt) {
		r.t.Errorf("of %d addresses %d are new, until %v; want %d and %d, until %v", len(d.IPs), len(fresh), d.ExpiresAt,
			len(r.bought.IPs), len(old), r.bought.ExpiresAt)
	}
	for _, ip := range fresh {
		if e, ok := ip.Endpoint(""); !ip.Addr.IsValid() || r.Provider.Capabilities().ViaUpstream && (!ok || e.Host == "" || e.User == "") {
			r.t.Errorf("the new address %s cannot be reached", ip.Addr)
		}
		if r.Intent.Location.Country != "" && ip.Country != r.Intent.Location.Country {
			r.t.Errorf("the new address is in %q, want %q", ip.Country, r.Intent.Location.Country)
		}
	}
	return fresh
}

func replacerReplaces(t *testing.T, r replacer) {
	in := r.ask(1)
	if c := r.replace(t.Context(), r.bought.Ref, in); c != "" {
		t.Fatalf("replace: %s", c)
	}
	if early := r.now(); len(early.IPs) != len(r.bought.IPs) {
		t.Errorf("at once the order has %d addresses", len(early.IPs))
	}
	first := r.replaced(r.settled(), in.Addr)
	next := r.ask(2)
	next.Avoid = map[string]bool{in.Addr.String(): true} // it may be free now
	if c := r.replace(t.Context(), r.bought.Ref, next); c != "" {
		t.Fatalf("replace another: %s", c)
	}
	if fresh := r.replaced(r.settled(), in.Addr, next.Addr); !slices.Contains(fresh, first[0]) {
		t.Errorf("the address that was new has changed: %v, before %v", fresh, first)
	}
	if n := r.asked(); r.Asked != nil && n != 2 {
		t.Errorf("%d replacements were asked for", n)
	}
}

func replacerQuotes(t *testing.T, r replacer) {
	for n := range 3 {
		q, err := r.Provider.QuoteReplacement(t.Context(), r.bought.Ref, r.ask(n))
		if err != nil || q.Cost < 0 || q.Stock != procurement.StockYes && q.Stock != procurement.StockUnknown {
			t.Errorf("the quote is %+v, %v", q, err)
		}
	}
	r.unchanged(r.settled())
	if n := r.asked(); n != 0 {
		t.Errorf("%d replacements were asked for", n)
	}
}

func replacerUnknown(t *testing.T, r replacer) {
	foreign, gone := r.ask(0), procurement.Class("")
	foreign.Addr = netip.MustParseAddr("192.0.2.250")
	if !r.Provider.Capabilities().Idempotent {
		gone = procurement.NotFound
	}
	if c := r.replace(t.Context(), r.bought.Ref, foreign); c != gone {
		t.Errorf("an address that the order does not have: %q, want %q", c, gone)
	}
	const nowhere = "000000000000000000000000"
	if c := r.replace(t.Context(), nowhere, r.ask(0)); c != procurement.NotFound {
		t.Errorf("an order that is not there: %q", c)
	}
	for ref, in := range map[string]procurement.Replacement{r.bought.Ref: foreign, nowhere: r.ask(0)} {
		if _, err := r.Provider.QuoteReplacement(t.Context(), ref, in); procurement.ClassOf(err) != procurement.NotFound {
			t.Errorf("a quote of %s in %s: %v", in.Addr, ref, err)
		}
	}
	r.unchanged(r.settled())
	if n := r.asked(); n != 0 {
		t.Errorf("%d replacements were asked for", n)
	}
}

func replacerExhausted(t *testing.T, r replacer) {
	if r.Exhaust == nil {
		t.Skip("the provider cannot know")
	}
	r.Exhaust()
	if c := r.replace(t.Context(), r.bought.Ref, r.ask(1)); c != procurement.OutOfStock {
		t.Errorf("replace: %q", c)
	}
	if q, err := r.Provider.QuoteReplacement(t.Context(), r.bought.Ref, r.ask(1)); err != nil || q.Stock != procurement.StockNo {
		t.Errorf("the quote is %+v, %v", q, err)
	}
	r.unchanged(r.settled())
}

func replacerRefused(t *testing.T, r replacer) {
	if len(r.Refusals) == 0 {
		t.Skip("the seller refuses nothing by itself")
	}
	for n, f := range r.Refusals {
		f.Next()
		if c := r.replace(t.Context(), r.bought.Ref, r.ask(1)); c == "" || c == procurement.Ambiguous {
			t.Errorf("%s: %q", f.Name, c)
		}
		if got := r.asked(); got != n+1 {
			t.Errorf("%s: %d replacements were asked for, want %d", f.Name, got, n+1)
		}
	}
	r.unchanged(r.settled())
}

func replacerNever(t *testing.T, r replacer) {
	if r.Never == nil {
		t.Skip("what is accepted is done")
	}
	r.Never()
	if c := r.replace(t.Context(), r.bought.Ref, r.ask(1)); c != "" {
		t.Fatalf("replace: %q", c)
	}
	for range 3 {
		r.unchanged(r.settled())
	}
	if n := r.asked(); n != 1 {
		t.Errorf("%d replacements were asked for", n)
	}
}

func replacerChooses(t *testing.T, r replacer) {
	if !r.Chooses {
		t.Skip("the seller chooses")
	}
	in := r.ask(0)
	if c := r.replace(t.Context(), r.bought.Ref, in); c != "" {
		t.Fatalf("replace: %q", c)
	}
	first := r.replaced(r.settled(), in.Addr)[0].Addr
	again := r.ask(1)
	again.Avoid = map[string]bool{in.Addr.String(): true} // it is free now
	again.Passes = func(a netip.Addr) bool { return a.As4()[3]%2 == 1 }
	if c := r.replace(t.Context(), r.bought.Ref, again); c != "" {
		t.Fatalf("replace another: %q", c)
	}
	for _, ip := range r.replaced(r.settled(), in.Addr, again.Addr) {
		if ip.Addr != first && !again.Passes(ip.Addr) {
			t.Errorf("%s does not pass", ip.Addr)
		}
	}
	again = r.ask(2)
	again.Passes = func(netip.Addr) bool { return false }
	if c := r.replace(t.Context(), r.bought.Ref, again); c != procurement.OutOfStock {
		t.Errorf("none passes: %q", c)
	}
}

func replacerRepeats(t *testing.T, r replacer) {
	if !r.Provider.Capabilities().Idempotent {
		t.Skip("the seller repeats a call that is sent again")
	}
	in := r.ask(1)
	for _, settle := range []bool{false, true, true} {
		if c := r.replace(t.Context(), r.bought.Ref, in); c != "" {
			t.Errorf("replace: %q", c)
		}
		if settle {
			r.replaced(r.settled(), in.Addr)
		}
	}
	if n := r.asked(); n > 1 {
		t.Errorf("%d replacements were asked for", n)
	}
}

// replacerParallel is for the race detector as well.
func replacerParallel(t *testing.T, r replacer) {
	in := r.ask(1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { r.replace(t.Context(), r.bought.Ref, in) })
	}
	wg.Wait()
	r.replaced(r.settled(), in.Addr)
}

func replacerLeft(t *testing.T, r replacer) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := r.replace(ctx, r.bought.Ref, r.ask(1)); c == "" {
		t.Error("replaced with a cancelled context")
	}
	r.unchanged(r.settled())
}

func replacerLost(t *testing.T, r replacer, loss ReplacerFault) {
	loss.Next()
	in := r.ask(1)
	if c := r.replace(t.Context(), r.bought.Ref, in); c != procurement.Ambiguous {
		t.Errorf("the outcome is unknown, and the error is %q", c)
	}
	if d := r.settled(); loss.Done {
		r.replaced(d, in.Addr)
	} else {
		r.unchanged(d)
	}
	if n := r.asked(); n != 1 {
		t.Errorf("%d replacements were asked for", n)
	}
}
