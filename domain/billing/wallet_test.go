package billing_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

type split = billing.Funds

// balanced reports whether an entry sums to zero.
func balanced(e billing.Entry) bool {
	return e.Available.Total()+e.Held.Total()+e.Counter == 0 && (e.Account != billing.NoAccount || e.Counter == 0)
}

func TestHold(t *testing.T) {
	for _, c := range []struct {
		claim     string
		available split
		x         domain.Money
		held      split
		refused   bool
	}{
		{"trial credit goes first", split{Trial: 10, Own: 10}, 4, split{Trial: 4}, false},
		{"then own money", split{Trial: 10, Own: 10}, 14, split{Trial: 10, Own: 4}, false},
		{"down to nothing", split{Trial: 10, Own: 10}, 20, split{Trial: 10, Own: 10}, false},
		{"but not below", split{Trial: 10, Own: 10}, 21, split{}, true},
		{"an empty wallet pays nothing", split{}, 1, split{}, true},
		{"nothing costs nothing", split{}, 0, split{}, false},
		{"a cost beyond counting cannot be paid", split{Own: math.MaxInt64 - 1}, math.MaxInt64, split{}, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e, err := billing.Wallet{Available: c.available}.Hold(c.x, billing.AnyFunds)
			if c.refused {
				wantRefusal(t, err, c.x, c.available.Total())
				return
			}
			if err != nil || e.Type != billing.HoldEntry || e.Held != c.held || e.Available != c.held.Neg() || !balanced(e) || e.Amount() != -c.x {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func TestHoldOfOwnMoney(t *testing.T) {
	for _, c := range []struct {
		claim     string
		available split
		x         domain.Money
		refused   bool
	}{
		{"own money pays although there is trial credit", split{Trial: 10, Own: 10}, 4, false},
		{"down to nothing", split{Trial: 10, Own: 10}, 10, false},
		{"trial credit does not help out", split{Trial: 10, Own: 10}, 11, true},
		{"nor does it pay alone", split{Trial: 10}, 1, true},
		{"nor with the least amount of own money", split{Trial: 10, Own: 1}, 2, true},
		{"a cost beyond counting cannot be paid", split{Trial: 1, Own: math.MaxInt64 - 1}, math.MaxInt64, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e, err := billing.Wallet{Available: c.available}.Hold(c.x, billing.OwnMoney)
			if c.refused {
				wantRefusal(t, err, c.x, c.available.Own)
				if refused, _ := errors.AsType[*domain.Error](err); refused.Details["trial_credit"] != false {
					t.Errorf("details %v", refused.Details)
				}
				return
			}
			if held := (split{Own: c.x}); err != nil || e.Held != held || e.Available != held.Neg() || !balanced(e) {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func wantRefusal(t *testing.T, err error, required, available domain.Money) {
	t.Helper()
	var e *domain.Error
	if !errors.As(err, &e) || !errors.Is(err, billing.ErrInsufficientBalance) {
		t.Fatalf("error %v, want INSUFFICIENT_BALANCE", err)
	}
	if e.Details["required"] != required || e.Details["available"] != available || e.Details["currency"] != "USD" {
		t.Errorf("details %v, want %s of %s", e.Details, required, available)
	}
}

func TestCharge(t *testing.T) {
	e := billing.Charge(split{Trial: 3, Own: 7}, 5)
	if e.Held != (split{Trial: -3, Own: -2}) || e.Amount() != 0 || e.Charged() != 5 || e.Account != billing.Revenue || !balanced(e) {
		t.Errorf("got %+v", e)
	}
	if back := billing.GrantTrial(5); back.Charged() != 0 {
		t.Error("a grant charges something")
	}
}

func TestWhatComesBackGoesWhereItCameFrom(t *testing.T) {
	live := billing.Wallet{TrialExpiresAt: noon.Add(time.Hour)}
	over := billing.Wallet{TrialExpiresAt: noon}
	marked := billing.Wallet{TrialExpiresAt: noon.Add(time.Hour), TrialExpired: true}
	never := billing.Wallet{}
	for _, c := range []struct {
		claim   string
		entries []billing.Entry
		want    split // of what is available
		n       int
	}{
		{"a release, part by part", live.Release(split{Trial: 3, Own: 4}, noon), split{Trial: 3, Own: 4}, 1},
		{"a release after the trial writes its part off", over.Release(split{Trial: 3, Own: 4}, noon), split{Own: 4}, 2},
		{"even when the trial was ended early", marked.Release(split{Trial: 3, Own: 4}, noon), split{Own: 4}, 2},
		{"nothing is written off of own money", over.Release(split{Own: 4}, noon), split{Own: 4}, 1},
		{"nor where there was no trial", never.Release(split{Own: 4}, noon), split{Own: 4}, 1},
		{"a refund gives own money first", live.Refund(split{Trial: 3, Own: 4}, 5, noon), split{Trial: 1, Own: 4}, 1},
		{"a refund after the trial writes its part off", over.Refund(split{Trial: 3, Own: 4}, 5, noon), split{Own: 4}, 2},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var got split
			for _, e := range c.entries {
				got = got.Add(e.Available)
				if !balanced(e) {
					t.Errorf("%+v is not balanced", e)
				}
			}
			if got != c.want || len(c.entries) != c.n {
				t.Errorf("got %+v, want %+v available", c.entries, c.want)
			}
		})
	}
}

func TestAdjust(t *testing.T) {
	w := billing.Wallet{Available: split{Trial: 10, Own: 5}}
	if e, err := w.Adjust(7, "why"); err != nil || e.Available != (split{Own: 7}) || e.Description != "why" || !balanced(e) {
		t.Errorf("a gift is %+v, %v", e, err)
	}
	if e, err := w.Adjust(-7, ""); err != nil || e.Available != (split{Trial: -2, Own: -5}) || !balanced(e) {
		t.Errorf("a taking is %+v, %v", e, err)
	}
	_, err := w.Adjust(-16, "")
	wantRefusal(t, err, 16, 15)
}

func TestTrial(t *testing.T) {
	trial := billing.Wallet{TrialExpiresAt: noon.Add(time.Hour)}
	funded, expired := trial, trial
	funded.Funded, expired.TrialExpired = true, true
	for _, c := range []struct {
		claim string
		w     billing.Wallet
		now   time.Time
		want  bool
	}{
		{"a new account is a trial", trial, noon, true},
		{"until its expiry", trial, noon.Add(time.Hour), false},
		{"or its first transfer", funded, noon, false},
		{"or its early end", expired, noon, false},
		{"an account without a grant is none", billing.Wallet{}, noon, false},
	} {
		if got := c.w.IsTrial(c.now); got != c.want {
			t.Errorf("%s: %v, want %v", c.claim, got, c.want)
		}
	}
	if e, ok := (billing.Wallet{Available: split{Trial: 3, Own: 4}, Held: split{Trial: 2}}).ExpireTrial(); !ok || e.Available != (split{Trial: -3}) || e.Held != (split{}) || !balanced(e) {
		t.Errorf("the end of a trial is %+v, %v", e, ok)
	}
	if _, ok := (billing.Wallet{Available: split{Own: 4}}).ExpireTrial(); ok {
		t.Error("something was written off of own money")
	}
}

func adjustment(w billing.Wallet, x domain.Money) billing.Entry {
	e, err := w.Adjust(x, "a reason")
	if err != nil {
		panic(err)
	}
	return e
}

func TestApply(t *testing.T) {
	today, tomorrow := billing.Day(noon), billing.Day(noon).Add(24*time.Hour)
	w := billing.Wallet{Available: split{Trial: 5, Own: 5}, Held: split{Own: 3}, SpentDay: today, SpentToday: 8}
	for _, c := range []struct {
		claim string
		p     billing.Posting
		want  func(*billing.Wallet)
	}{
		{"a recharge funds the wallet", billing.Posting{Entry: billing.CreditRecharge(7)}, func(w *billing.Wallet) {
			w.Available.Own, w.Recharged, w.Funded = 12, 7, true
		}},
		{"a correction upwards credits it", billing.Posting{Entry: adjustment(w, 1)}, func(w *billing.Wallet) {
			w.Available.Own, w.Adjusted = 6, 1
		}},
		{"one downwards does not", billing.Posting{Entry: adjustment(w, -1)}, func(w *billing.Wallet) { w.Available.Own = 4 }},
		{"a charge takes what is held", billing.Posting{Entry: billing.Charge(w.Held, 2), Live: -1}, func(w *billing.Wallet) {
			w.Held.Own, w.Charged, w.LiveSessions = 1, 2, -1
		}},
		{"a refund counts as one", billing.Posting{Entry: w.Refund(split{Own: 2}, 2, noon)[0]}, func(w *billing.Wallet) {
			w.Available.Own, w.Refunded = 7, 2
		}},
		{"spending adds up within a day", billing.Posting{Spent: 2, Day: today}, func(w *billing.Wallet) { w.SpentToday = 10 }},
		{"what is given back is not counted below zero", billing.Posting{Spent: -9, Day: today}, func(w *billing.Wallet) { w.SpentToday = 0 }},
		{"a later day begins with spending", billing.Posting{Spent: 2, Day: tomorrow}, func(w *billing.Wallet) {
			w.SpentDay, w.SpentToday = tomorrow, 2
		}},
		{"but not with what is given back", billing.Posting{Spent: -2, Day: tomorrow}, func(*billing.Wallet) {}},
		{"what is spent the day before counts too", billing.Posting{Spent: 2, Day: today.Add(-24 * time.Hour)}, func(w *billing.Wallet) {
			w.SpentToday = 10
		}},
		{"a wallet whose day is to come is back on the right one", billing.Posting{Spent: 2, Day: today.Add(-48 * time.Hour)},
			func(w *billing.Wallet) { w.SpentDay, w.SpentToday = today.Add(-48*time.Hour), 10 }},
		{"what is given back of an earlier day changes nothing", billing.Posting{Spent: -2, Day: today.Add(-24 * time.Hour)},
			func(*billing.Wallet) {}},
	} {
		want := w
		c.want(&want)
		if got, err := w.Apply(c.p); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", c.claim, got, err, want)
		}
	}
	for _, e := range []billing.Entry{
		{Available: split{Trial: -6, Own: 6}}, {Available: split{Own: -6}}, {Held: split{Own: -4}}, {Held: split{Trial: -1}},
	} {
		if got, err := w.Apply(billing.Posting{Entry: e}); !errors.Is(err, billing.ErrInsufficientBalance) || !reflect.DeepEqual(got, w) {
			t.Errorf("%+v: %+v, %v", e, got, err)
		}
	}
}

// purchase is one purchase in the model.
type purchase struct{ held, charged split }

// Whatever happens in whatever order, money is neither made nor lost: the sum of
// the amounts is the balance, what the wallet holds is what its purchases hold,
// and no part of it goes below zero.
func TestMoneyIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := billing.Wallet{TrialExpiresAt: noon.Add(50 * time.Minute)}
		var open []purchase
		var sum, service domain.Money // of the amounts; of the service's accounts
		now := noon
		book := func(entries ...billing.Entry) {
			for _, e := range entries {
				if !balanced(e) {
					t.Fatalf("%+v is not balanced", e)
				}
				after, err := w.Apply(billing.Posting{Entry: e})
				if err != nil {
					t.Fatalf("%+v: %v", e, err)
				}
				w, sum, service = after, sum+e.Amount(), service+e.Counter
			}
		}
		amount := func(most domain.Money) domain.Money {
			return domain.Money(rapid.Int64Range(0, int64(most)).Draw(t, "amount"))
		}
		book(billing.GrantTrial(10 * domain.Dollar))
		which := func() int {
			if len(open) == 0 {
				t.Skip("nothing was bought")
			}
			return rapid.IntRange(0, len(open)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"recharge": func(*rapid.T) {
				x := amount(20 * domain.Dollar)
				book(billing.Entry{Type: billing.Recharge, Available: split{Own: x}, Account: billing.USDT, Counter: -x})
			},
			"buy": func(*rapid.T) {
				if e, err := w.Hold(amount(5*domain.Dollar), billing.AnyFunds); err == nil {
					book(e)
					open = append(open, purchase{held: e.Held})
				}
			},
			"charge": func(*rapid.T) {
				p := &open[which()]
				e := billing.Charge(p.held, amount(p.held.Total()))
				book(e)
				p.held, p.charged = p.held.Add(e.Held), p.charged.Add(e.Held.Neg())
			},
			"give back": func(*rapid.T) {
				p := &open[which()]
				book(w.Release(p.held, now)...)
				p.held = split{}
			},
			"refund": func(*rapid.T) {
				p := &open[which()]
				entries := w.Refund(p.charged, amount(p.charged.Total()), now)
				book(entries...)
				p.charged = p.charged.Add(entries[0].Available.Neg())
			},
			"end the trial": func(*rapid.T) {
				if now.Before(w.TrialExpiresAt) {
					return
				}
				if e, ok := w.ExpireTrial(); ok {
					book(e)
				}
				w.TrialExpired = true
			},
			"correct": func(*rapid.T) {
				if e, err := w.Adjust(amount(4*domain.Dollar)-2*domain.Dollar, "x"); err == nil {
					book(e)
				}
			},
			"wait": func(*rapid.T) { now = now.Add(10 * time.Minute) },
			"": func(*rapid.T) {
				held := split{}
				for _, p := range open {
					held = held.Add(p.held)
					if p.charged.Trial < 0 || p.charged.Own < 0 || p.held.Trial < 0 || p.held.Own < 0 {
						t.Fatalf("a purchase is at %+v", p)
					}
				}
				if w.Held != held || w.Balance() != sum || w.Balance()+w.Held.Total()+service != 0 {
					t.Fatalf("the wallet is %+v, its purchases hold %+v, the amounts sum to %s", w, held, sum)
				}
				if min(w.Available.Trial, w.Available.Own, w.Held.Trial, w.Held.Own) < 0 {
					t.Fatalf("the wallet is below zero: %+v", w)
				}
				if w.TrialExpired && w.Available.Trial != 0 {
					t.Fatalf("the trial is over and %s of it can be spent", w.Available.Trial)
				}
			},
		})
	})
}
