package proxyseller_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

const replacePath = "POST " + proxyseller.Root + "/" + proxyseller.Key + "/proxy/replace"

func TestReplacerContract(t *testing.T) {
	t.Parallel()
	for claim, polls := range map[string]int{"handled at once": 0, "handled at the second look": 1, "handled an hour later": -1} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			contract.Replacer(t, func(t *testing.T) contract.Replacing { return openReplacing(t, polls) })
		})
	}
}

func openReplacing(t *testing.T, polls int) contract.Replacing {
	s, p := openAddresses(t)
	s.SetReplacing(polls)
	next := func(f seller.Fault) func() { return func() { s.Next("/proxy/replace", f) } }
	r := contract.Replacing{Provider: p.(ports.Replacer), Intent: ispIntent("", 3), Settle: s.CompleteReplacements, Never: s.NeverReplace,
		Asked: func() int { return s.Calls(replacePath) }, Secrets: []string{proxyseller.Key, "fj4948", "58gh", "pass1", "user1"},
		Refusals: []contract.ReplacerFault{
			{Name: "the month's are used", Next: func() { s.SetReplacements(0) }},
			{Name: "no stock", Next: func() {
				s.Refuse("/proxy/replace", 0, "Not enough proxies in stock")
				s.SetReplacements(9)
			}},
			{Name: "too many calls", Next: next(seller.RateLimited)},
			{Name: "not understood", Next: next(seller.Refuse)},
			{Name: "the key is refused", Next: func() { s.Refuse("/proxy/replace", 503, "Error api key "+proxyseller.Key) }},
		},
		Losses: []contract.ReplacerFault{
			{Name: "an unknown error", Next: func() { s.Refuse("/proxy/replace", 35, "Unknown error") }},
			{Name: "a success of another shape", Next: func() { s.Answer("/proxy/replace", `{"status":"success","data":{},"errors":[]}`) }},
		}}
	for _, f := range []seller.Fault{seller.DropRequest, seller.Redirect, seller.DropAnswer, seller.Failed, seller.Garbage, seller.Cut, seller.Huge} {
		r.Losses = append(r.Losses, contract.ReplacerFault{Name: string(f), Next: next(f), Done: f != seller.DropRequest && f != seller.Redirect})
	}
	return r
}

// bought returns an order of n addresses that is delivered.
func bought(t *testing.T, p ports.Provider, n int) procurement.Delivery {
	t.Helper()
	d, err := p.Order(t.Context(), ispIntent("ord_1", n))
	if err != nil {
		t.Fatal(err)
	}
	return readLive(t, p, d.Ref)
}

func TestAnAddressIsReplacedOnceADay(t *testing.T) {
	t.Parallel()
	s, open := openAddresses(t)
	p := open.(ports.Replacer)
	d := bought(t, p, 1)
	replace := func(want procurement.Class) {
		t.Helper()
		now := readLive(t, p, d.Ref)
		in := procurement.Replacement{Key: "rep", Addr: now.IPs[0].Addr, Fault: procurement.Unreachable}
		if err := p.Replace(t.Context(), d.Ref, in); procurement.ClassOf(err) != want {
			t.Errorf("replace: %v, want %q", err, want)
		}
	}
	replace("")
	replace(procurement.Conflict)
	s.Age(25 * time.Hour)
	replace("")
	if _, err := p.Renew(t.Context(), d.Ref, ispIntent("ord_2", 1)); err != nil {
		t.Errorf("renew: %v", err)
	}
}

func TestFaultsAreSentAsTheSellersReasons(t *testing.T) {
	t.Parallel()
	for _, fault := range append([]procurement.Fault{"", "newer"}, procurement.Faults...) {
		s, open := openAddresses(t)
		p := open.(ports.Replacer)
		d := bought(t, p, 2)
		// The fake refuses unknown types, and a CUSTOM one without a comment.
		err := p.Replace(t.Context(), d.Ref, procurement.Replacement{Key: "rep", Addr: d.IPs[1].Addr, Fault: fault})
		if err != nil || s.Calls(replacePath) != 1 {
			t.Errorf("%q: %v", fault, err)
		}
	}
}

func TestAddressesWithFullUptimeAreNotReplaced(t *testing.T) {
	t.Parallel()
	s, open := openAddresses(t)
	p := open.(ports.Replacer)
	d := bought(t, p, 1)
	s.SetUptime(d.Ref)
	in := procurement.Replacement{Key: "rep", Addr: d.IPs[0].Addr}
	if _, err := p.QuoteReplacement(t.Context(), d.Ref, in); procurement.ClassOf(err) != procurement.Unsupported {
		t.Errorf("quoted: %v", err)
	}
	if err := p.Replace(t.Context(), d.Ref, in); procurement.ClassOf(err) != procurement.Unsupported || s.Calls(replacePath) != 0 {
		t.Errorf("replaced: %v, %d calls", err, s.Calls(replacePath))
	}
}

// TestOutcomesMatchReplacements makes every second request for a replacement fail. A success means that it was submitted once, Ambiguous
// that it may have been, and any other error that it was not.
func TestOutcomesMatchReplacements(t *testing.T) {
	t.Parallel()
	s := proxyseller.New(t)
	s.SetReplacements(1000)
	d := bought(t, open(t, specOf(s, "isp")), 60)
	s.Sometimes(11, 0.5, append([]seller.Fault{seller.Expired, seller.Forbidden, seller.None}, seller.Mixed...)...)
	seen, had := map[procurement.Class]int{}, map[netip.Addr]bool{}
	for _, ip := range d.IPs {
		had[ip.Addr] = true
	}
	submitted := map[netip.Addr]procurement.Class{}
	for n, ip := range d.IPs {
		// A new provider for each call keeps the circuit breaker out of the test.
		p := open(t, specOf(s, "isp")).(ports.Replacer)
		class := procurement.ClassOf(p.Replace(t.Context(), d.Ref, procurement.Replacement{Key: fmt.Sprint("rep_", n), Addr: ip.Addr}))
		seen[class]++
		submitted[ip.Addr] = class
	}
	s.Sometimes(11, 0)
	s.CompleteReplacements()
	now := readLive(t, open(t, specOf(s, "isp")), d.Ref)
	left := map[netip.Addr]bool{}
	for _, ip := range now.IPs {
		left[ip.Addr] = true
	}
	if len(now.IPs) != len(d.IPs) {
		t.Errorf("%d addresses of %d", len(now.IPs), len(d.IPs))
	}
	for addr, class := range submitted {
		if class == "" && left[addr] || class != "" && class != procurement.Ambiguous && !left[addr] {
			t.Errorf("%s is there: %v, after %q", addr, left[addr], class)
		}
	}
	if seen[""] == 0 || seen[procurement.Ambiguous] == 0 || len(seen) < 4 {
		t.Errorf("the faults were too few: %v", seen)
	}
}
