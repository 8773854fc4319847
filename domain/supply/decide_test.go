package supply_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/supply"
)

// lost is an unknown order of two addresses in the United States. "old" was
// listed before it, when there were 10 dollars.
func lost() supply.Order {
	o := orderAt(supply.Unknown)
	o.Before = supply.Snapshot{Refs: []string{"old"}, Funds: supply.Funds{Amount: 10 * domain.Dollar, Known: true}}
	o.Intent = supply.Intent{Key: o.ID, Type: session.Static, SKU: "isp", Quantity: 2, Location: session.Location{Country: "US"}}
	return o
}

func TestDecide(t *testing.T) {
	list := func(d ...supply.Delivery) []supply.Delivery { return d }
	have := func(m domain.Money) supply.Funds { return supply.Funds{Amount: m, Known: true} }
	old, fresh := supply.Delivery{Ref: "old"}, supply.Delivery{Ref: "new"}
	like := supply.Delivery{Ref: "new", SKU: "isp", Quantity: 2, Location: session.Location{Country: "US"}, State: supply.Live}
	for _, c := range []struct {
		claim    string
		labelled bool
		evidence supply.Evidence
		age      time.Duration
		want     supply.Verdict
		ref      string
	}{
		{"what carries the key is it", true, supply.Evidence{Found: list(old, supply.Delivery{Ref: "x", Label: "ord_1"})}, 0, supply.Adopt, "x"},
		{"whatever else is listed", false, supply.Evidence{Found: list(fresh, supply.Delivery{Ref: "x", Label: "ord_1"})}, 0, supply.Adopt, "x"},
		{"also when others are unknown", true, supply.Evidence{Found: list(supply.Delivery{Ref: "x", Label: "ord_1"}), Rivals: true}, 0, supply.Adopt, "x"},
		{"another key is another order", true, supply.Evidence{Found: list(supply.Delivery{Ref: "x", Label: "ord_2"})}, supply.SettleFor, supply.Absent, ""},
		{"also where keys are an exception", false, supply.Evidence{Found: list(supply.Delivery{Ref: "x", Label: "ord_2"})}, supply.SettleFor, supply.Absent, ""},
		{"where there are keys, none is no key", true, supply.Evidence{Found: list(fresh)}, supply.SettleFor, supply.Absent, ""},
		{"with a key it may still come", true, supply.Evidence{}, supply.SettleFor - 1, supply.Wait, ""},
		{"with a key money proves nothing", true, supply.Evidence{Funds: have(0)}, supply.SettleFor, supply.Absent, ""},

		{"the only new one is it", false, supply.Evidence{Found: list(old, like)}, 0, supply.Adopt, "new"},
		{"also when the list tells nothing of it", false, supply.Evidence{Found: list(old, fresh)}, 0, supply.Adopt, "new"},
		{"two new ones are nobody's", false, supply.Evidence{Found: list(fresh, supply.Delivery{Ref: "newer"})}, time.Hour, supply.Wait, ""},
		{"one new one for two orders is nobody's", false, supply.Evidence{Found: list(fresh), Rivals: true}, time.Hour, supply.Wait, ""},
		{"what was there before is not it", false, supply.Evidence{Found: list(old)}, supply.SettleFor, supply.Absent, ""},
		{"what belongs to another order is not it", false, supply.Evidence{Found: list(fresh), Known: map[string]bool{"new": true}}, supply.SettleFor, supply.Absent, ""},
		{"another product is not it", false, supply.Evidence{Found: list(supply.Delivery{Ref: "new", SKU: "ipv4"})}, supply.SettleFor, supply.Absent, ""},
		{"another quantity is not it", false, supply.Evidence{Found: list(supply.Delivery{Ref: "new", Quantity: 3})}, supply.SettleFor, supply.Absent, ""},
		{"another country is not it", false, supply.Evidence{Found: list(supply.Delivery{Ref: "new", Location: session.Location{Country: "DE"}})}, supply.SettleFor, supply.Absent, ""},
		{"what has ended is not it", false, supply.Evidence{Found: list(supply.Delivery{Ref: "new", State: supply.Gone})}, supply.SettleFor, supply.Absent, ""},

		{"it may still come", false, supply.Evidence{Funds: have(10 * domain.Dollar)}, supply.SettleFor - 1, supply.Wait, ""},
		{"nothing came and no money is missing", false, supply.Evidence{Funds: have(10 * domain.Dollar)}, supply.SettleFor, supply.Absent, ""},
		{"somebody has our money", false, supply.Evidence{Funds: have(10*domain.Dollar - 1)}, 23 * time.Hour, supply.Wait, ""},
		{"other orders have it", false, supply.Evidence{Funds: have(7 * domain.Dollar), Spent: 3 * domain.Dollar}, supply.SettleFor, supply.Absent, ""},
		{"other orders have not all of it", false, supply.Evidence{Funds: have(7 * domain.Dollar), Spent: 3*domain.Dollar - 1}, supply.SettleFor, supply.Wait, ""},
		{"the account was filled up", false, supply.Evidence{Funds: have(50 * domain.Dollar)}, supply.SettleFor, supply.Absent, ""},
		{"the balance is not told", false, supply.Evidence{}, supply.SettleFor, supply.Absent, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			verdict, d := supply.Decide(lost(), c.labelled, c.evidence, sentAt.Add(c.age))
			if verdict != c.want || d.Ref != c.ref {
				t.Errorf("%s %q, want %s %q", verdict, d.Ref, c.want, c.ref)
			}
		})
	}
	t.Run("the number of exits of traffic means nothing", func(t *testing.T) {
		o := lost()
		o.Intent.Type, o.Intent.Quantity = session.Dynamic, 1
		if v, _ := supply.Decide(o, false, supply.Evidence{Found: list(supply.Delivery{Ref: "new", Quantity: 5})}, sentAt); v != supply.Adopt {
			t.Errorf("got %s", v)
		}
	})
	t.Run("an order without an id has no key", func(t *testing.T) {
		o := lost()
		o.ID = ""
		if v, d := supply.Decide(o, true, supply.Evidence{Found: list(fresh)}, sentAt); v != supply.Wait {
			t.Errorf("%s %q", v, d.Ref)
		}
	})
}

func TestDecideAdoptsNothingThatIsNotItsOwn(t *testing.T) {
	refs := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	delivery := rapid.Custom(func(t *rapid.T) supply.Delivery {
		return supply.Delivery{Ref: refs.Draw(t, "ref"), Label: rapid.SampledFrom([]string{"", "", "", "ord_1", "ord_2"}).Draw(t, "label"),
			State: rapid.SampledFrom([]supply.State{supply.Pending, supply.Live, supply.Gone}).Draw(t, "state"),
			SKU:   rapid.SampledFrom([]string{"", "isp", "ipv4"}).Draw(t, "sku"), Quantity: rapid.IntRange(0, 3).Draw(t, "quantity"),
			Location: session.Location{Country: rapid.SampledFrom([]string{"", "US", "DE"}).Draw(t, "country")}}
	})
	funds := rapid.Custom(func(t *rapid.T) supply.Funds {
		return supply.Funds{Amount: domain.Money(rapid.IntRange(0, 5).Draw(t, "amount")), Known: rapid.Bool().Draw(t, "known")}
	})
	rapid.Check(t, func(t *rapid.T) {
		o := lost()
		o.Before = supply.Snapshot{Refs: rapid.SliceOf(refs).Draw(t, "before"), Funds: funds.Draw(t, "had")}
		e := supply.Evidence{Found: rapid.SliceOf(delivery).Draw(t, "found"), Known: rapid.MapOf(refs, rapid.Bool()).Draw(t, "known"),
			Funds: funds.Draw(t, "has"), Spent: domain.Money(rapid.IntRange(0, 5).Draw(t, "spent")), Rivals: rapid.Bool().Draw(t, "rivals")}
		labelled := rapid.Bool().Draw(t, "labelled")
		age := rapid.SampledFrom([]time.Duration{0, supply.SettleFor - 1, supply.SettleFor, supply.FreezeAfter}).Draw(t, "age")
		verdict, d := supply.Decide(o, labelled, e, sentAt.Add(age))

		switch missing := !labelled && o.Before.Funds.Known && e.Funds.Known && e.Funds.Amount+e.Spent < o.Before.Funds.Amount; verdict {
		case supply.Adopt:
			if !slices.ContainsFunc(e.Found, func(f supply.Delivery) bool { return f.Ref == d.Ref && f.Label == d.Label }) {
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
			case e.Rivals:
				t.Fatal("it may be another's")
			}
		case supply.Absent:
			if age < supply.SettleFor {
				t.Fatalf("absent after %v", age)
			}
			if missing {
				t.Fatal("money is missing")
			}
			if slices.ContainsFunc(e.Found, func(f supply.Delivery) bool { return f.Label == o.ID }) {
				t.Fatal("its key was found")
			}
		case supply.Wait:
			if d.Ref != "" {
				t.Fatalf("waiting, %q is named", d.Ref)
			}
		default:
			t.Fatalf("the verdict is %q", verdict)
		}
	})
}
