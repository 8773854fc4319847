package procurement_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// lost is an unknown order of two addresses in the United States. "old" was
// listed before it, when there were 10 dollars.
func lost() procurement.Order {
	o := orderAt(procurement.Unknown)
	o.Before = procurement.Snapshot{Refs: []string{"old"}, Funds: procurement.ProviderBalance{Amount: 10 * domain.Dollar, Known: true}}
	o.Intent = procurement.Intent{Key: o.ID, Type: session.Static, SKU: "isp", Quantity: 2, Location: session.Location{Country: "US"}}
	return o
}

func TestDecide(t *testing.T) {
	list := func(d ...procurement.Delivery) []procurement.Delivery { return d }
	have := func(m domain.Money) procurement.ProviderBalance {
		return procurement.ProviderBalance{Amount: m, Known: true}
	}
	old, fresh := procurement.Delivery{Ref: "old"}, procurement.Delivery{Ref: "new"}
	like := procurement.Delivery{Ref: "new", SKU: "isp", Quantity: 2, Location: session.Location{Country: "US"}, State: procurement.Live}
	for _, c := range []struct {
		claim    string
		labelled bool
		evidence procurement.Evidence
		age      time.Duration
		want     procurement.Verdict
		ref      string
	}{
		{"what carries the key is it", true, procurement.Evidence{Found: list(old, procurement.Delivery{Ref: "x", Label: "ord_1"})}, 0, procurement.Adopt, "x"},
		{"whatever else is listed", false, procurement.Evidence{Found: list(fresh, procurement.Delivery{Ref: "x", Label: "ord_1"})}, 0, procurement.Adopt, "x"},
		{"also when others are unknown", true, procurement.Evidence{Found: list(procurement.Delivery{Ref: "x", Label: "ord_1"}), OthersUnknown: true}, 0, procurement.Adopt, "x"},
		{"another key is another order", true, procurement.Evidence{Found: list(procurement.Delivery{Ref: "x", Label: "ord_2"})}, procurement.ListingDelay, procurement.Absent, ""},
		{"also where keys are an exception", false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "x", Label: "ord_2"})}, procurement.ListingDelay, procurement.Absent, ""},
		{"where there are keys, none is no key", true, procurement.Evidence{Found: list(fresh)}, procurement.ListingDelay, procurement.Absent, ""},
		{"with a key it may still come", true, procurement.Evidence{}, procurement.ListingDelay - 1, procurement.Wait, ""},
		{"with a key money proves nothing", true, procurement.Evidence{Funds: have(0)}, procurement.ListingDelay, procurement.Absent, ""},

		{"the only new one is it", false, procurement.Evidence{Found: list(old, like)}, 0, procurement.Adopt, "new"},
		{"also when the list does not show it", false, procurement.Evidence{Found: list(old, fresh)}, 0, procurement.Adopt, "new"},
		{"two new ones prove nothing", false, procurement.Evidence{Found: list(fresh, procurement.Delivery{Ref: "newer"})}, time.Hour, procurement.Wait, ""},
		{"one new one for two orders proves nothing", false, procurement.Evidence{Found: list(fresh), OthersUnknown: true}, time.Hour, procurement.Wait, ""},
		{"what was there before is not it", false, procurement.Evidence{Found: list(old)}, procurement.ListingDelay, procurement.Absent, ""},
		{"what belongs to another order is not it", false, procurement.Evidence{Found: list(fresh), Known: map[string]bool{"new": true}}, procurement.ListingDelay, procurement.Absent, ""},
		{"another product is not it", false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "new", SKU: "ipv4"})}, procurement.ListingDelay, procurement.Absent, ""},
		{"another quantity is not it", false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "new", Quantity: 3})}, procurement.ListingDelay, procurement.Absent, ""},
		{"another country is not it", false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "new", Location: session.Location{Country: "DE"}})}, procurement.ListingDelay, procurement.Absent, ""},
		{"what has ended is not it", false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "new", State: procurement.Gone})}, procurement.ListingDelay, procurement.Absent, ""},

		{"it may still come", false, procurement.Evidence{Funds: have(10 * domain.Dollar)}, procurement.ListingDelay - 1, procurement.Wait, ""},
		{"nothing came and no money is missing", false, procurement.Evidence{Funds: have(10 * domain.Dollar)}, procurement.ListingDelay, procurement.Absent, ""},
		{"the balance fell", false, procurement.Evidence{Funds: have(10*domain.Dollar - 1)}, 23 * time.Hour, procurement.Wait, ""},
		{"other orders have it", false, procurement.Evidence{Funds: have(7 * domain.Dollar), Spent: 3 * domain.Dollar}, procurement.ListingDelay, procurement.Absent, ""},
		{"other orders have not all of it", false, procurement.Evidence{Funds: have(7 * domain.Dollar), Spent: 3*domain.Dollar - 1}, procurement.ListingDelay, procurement.Wait, ""},
		{"the account was filled up", false, procurement.Evidence{Funds: have(50 * domain.Dollar)}, procurement.ListingDelay, procurement.Absent, ""},
		{"the balance is not known", false, procurement.Evidence{}, procurement.ListingDelay, procurement.Absent, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			verdict, d := procurement.Decide(lost(), c.labelled, c.evidence, sentAt.Add(c.age))
			if verdict != c.want || d.Ref != c.ref {
				t.Errorf("%s %q, want %s %q", verdict, d.Ref, c.want, c.ref)
			}
		})
	}
	t.Run("an unknown balance proves nothing", func(t *testing.T) {
		o := lost()
		o.Before.Funds.Known = false
		if v, _ := procurement.Decide(o, false, procurement.Evidence{Funds: have(0)}, sentAt.Add(procurement.ListingDelay)); v != procurement.Absent {
			t.Errorf("got %s", v)
		}
	})
	t.Run("the number of exits of traffic means nothing", func(t *testing.T) {
		o := lost()
		o.Intent.Type, o.Intent.Quantity = session.Dynamic, 1
		if v, _ := procurement.Decide(o, false, procurement.Evidence{Found: list(procurement.Delivery{Ref: "new", Quantity: 5})}, sentAt); v != procurement.Adopt {
			t.Errorf("got %s", v)
		}
	})
	t.Run("an order without an id has no key", func(t *testing.T) {
		o := lost()
		o.ID = ""
		if v, d := procurement.Decide(o, true, procurement.Evidence{Found: list(fresh)}, sentAt); v != procurement.Wait {
			t.Errorf("%s %q", v, d.Ref)
		}
	})
}

func TestDecideAdoptsNothingThatIsNotItsOwn(t *testing.T) {
	refs := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	delivery := rapid.Custom(func(t *rapid.T) procurement.Delivery {
		return procurement.Delivery{Ref: refs.Draw(t, "ref"), Label: rapid.SampledFrom([]string{"", "", "", "ord_1", "ord_2"}).Draw(t, "label"),
			State: rapid.SampledFrom([]procurement.State{procurement.Pending, procurement.Live, procurement.Gone}).Draw(t, "state"),
			SKU:   rapid.SampledFrom([]string{"", "isp", "ipv4"}).Draw(t, "sku"), Quantity: rapid.IntRange(0, 3).Draw(t, "quantity"),
			Location: session.Location{Country: rapid.SampledFrom([]string{"", "US", "DE"}).Draw(t, "country")}}
	})
	funds := rapid.Custom(func(t *rapid.T) procurement.ProviderBalance {
		return procurement.ProviderBalance{Amount: domain.Money(rapid.IntRange(0, 5).Draw(t, "amount")), Known: rapid.Bool().Draw(t, "known")}
	})
	rapid.Check(t, func(t *rapid.T) {
		o := lost()
		o.Before = procurement.Snapshot{Refs: rapid.SliceOf(refs).Draw(t, "before"), Funds: funds.Draw(t, "had")}
		e := procurement.Evidence{Found: rapid.SliceOf(delivery).Draw(t, "found"), Known: rapid.MapOf(refs, rapid.Bool()).Draw(t, "known"),
			Funds: funds.Draw(t, "has"), Spent: domain.Money(rapid.IntRange(0, 5).Draw(t, "spent")), OthersUnknown: rapid.Bool().Draw(t, "rivals")}
		labelled := rapid.Bool().Draw(t, "labelled")
		age := rapid.SampledFrom([]time.Duration{0, procurement.ListingDelay - 1, procurement.ListingDelay, procurement.FreezeAfter}).Draw(t, "age")
		verdict, d := procurement.Decide(o, labelled, e, sentAt.Add(age))

		switch missing := !labelled && o.Before.Funds.Known && e.Funds.Known && e.Funds.Amount+e.Spent < o.Before.Funds.Amount; verdict {
		case procurement.Adopt:
			if !slices.ContainsFunc(e.Found, func(f procurement.Delivery) bool { return f.Ref == d.Ref && f.Label == d.Label }) {
				t.Fatalf("%q was not found", d.Ref)
			}
			switch {
			case d.Label == o.ID:
			case d.Label != "":
				t.Fatalf("it carries the key %s", d.Label)
			case labelled:
				t.Fatal("it carries no key")
			case slices.Contains(o.Before.Refs, d.Ref):
				t.Fatal("it was there before")
			case e.Known[d.Ref]:
				t.Fatal("it belongs to another order")
			case e.OthersUnknown:
				t.Fatal("it may be another's")
			}
		case procurement.Absent:
			if age < procurement.ListingDelay {
				t.Fatalf("absent after %v", age)
			}
			if missing {
				t.Fatal("money is missing")
			}
			if slices.ContainsFunc(e.Found, func(f procurement.Delivery) bool { return f.Label == o.ID }) {
				t.Fatal("its key was found")
			}
		case procurement.Wait:
			if d.Ref != "" {
				t.Fatalf("waiting, %q is named", d.Ref)
			}
		default:
			t.Fatalf("the verdict is %q", verdict)
		}
	})
}
