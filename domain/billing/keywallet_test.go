package billing_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
)

func usd(text string) domain.Money { return domain.MustMoney(text) }

func TestAKeySpendsWhatItsLimitsLeave(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	budget := func(total, daily, purchase string) (b account.KeyBudget) {
		for to, text := range map[**domain.Money]string{&b.Total: total, &b.Daily: daily, &b.PerPurchase: purchase} {
			if text != "" {
				*to = new(usd(text))
			}
		}
		return b
	}
	for name, c := range map[string]struct {
		wallet  billing.KeyWallet
		cost    string
		refused bool
		left    string // empty: no limit
	}{
		"no limit":              {billing.KeyWallet{Spent: usd("900")}, "100", false, ""},
		"all that is left":      {billing.KeyWallet{Limits: account.Limits{Budget: budget("10", "", "")}, Spent: usd("4"), Held: usd("5.6")}, "0.4", false, "0.4"},
		"a micro-dollar more":   {billing.KeyWallet{Limits: account.Limits{Budget: budget("10", "", "")}, Spent: usd("4"), Held: usd("5.6")}, "0.400001", true, "0.4"},
		"a limit below it":      {billing.KeyWallet{Limits: account.Limits{Budget: budget("1", "", "")}, Spent: usd("4")}, "0.000001", true, "0"},
		"of today":              {billing.KeyWallet{Limits: account.Limits{Budget: budget("", "2", "")}, SpentDay: billing.Day(now), SpentToday: usd("1.5")}, "0.6", true, "0.5"},
		"of yesterday":          {billing.KeyWallet{Limits: account.Limits{Budget: budget("", "2", "")}, SpentDay: billing.Day(now).Add(-24 * time.Hour), SpentToday: usd("1.5")}, "2", false, "2"},
		"a large purchase":      {billing.KeyWallet{Limits: account.Limits{Budget: budget("100", "50", "1")}}, "1.01", true, "1"},
		"the least of them all": {billing.KeyWallet{Limits: account.Limits{Budget: budget("100", "50", "60")}, SpentDay: billing.Day(now), SpentToday: usd("49")}, "1", false, "1"},
	} {
		err := c.wallet.MaySpend(usd(c.cost), now)
		if errors.Is(err, billing.ErrBudgetExceeded) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var e *domain.Error
		if errors.As(err, &e) && (e.Details["scope"] != "key" || e.Details["left"] != usd(c.left)) {
			t.Errorf("%s: details %v", name, e.Details)
		}
		if left, limited := c.wallet.Left(now); limited != (c.left != "") || limited && left != usd(c.left) {
			t.Errorf("%s: %s is left, limited %t", name, left, limited)
		}
	}
}

// Whatever is bought, charged, released and refunded, a key has never spent more than its budget, and all of it
// comes back.
func TestAKeyNeverSpendsMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		total := domain.Money(rapid.Int64Range(1, 1000).Draw(r, "total"))
		now := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
		k := billing.KeyWallet{Limits: account.Limits{Budget: account.KeyBudget{Total: &total}}}
		var held, spent domain.Money
		for range rapid.IntRange(1, 50).Draw(r, "steps") {
			x := domain.Money(rapid.Int64Range(1, 400).Draw(r, "amount"))
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				if k.MaySpend(x, now) != nil {
					if x <= total-held-spent {
						r.Fatalf("%d of %d is refused, with %d held and %d spent", x, total, held, spent)
					}
					continue
				}
				k = k.Apply(billing.Posting{Entry: billing.Entry{Type: billing.HoldEntry, Held: billing.Funds{Own: x},
					Available: billing.Funds{Own: -x}}, Spent: x, Day: billing.Day(now), Live: 1})
				held += x
			case 1:
				x = min(x, held)
				k = k.Apply(billing.Posting{Entry: billing.Charge(billing.Funds{Own: held}, x)})
				held, spent = held-x, spent+x
			case 2:
				x = min(x, held)
				k = k.Apply(billing.Posting{Entry: billing.Entry{Type: billing.Release, Held: billing.Funds{Own: -x},
					Available: billing.Funds{Own: x}}, Spent: -x, Day: billing.Day(now)})
				held -= x
			case 3:
				x = min(x, spent)
				k = k.Apply(billing.Posting{Entry: billing.Entry{Type: billing.RefundEntry, Available: billing.Funds{Own: x},
					Account: billing.Revenue, Counter: -x}})
				spent -= x
			}
			if k.Held != held || k.Spent != spent || k.Held+k.Spent > total {
				r.Fatalf("it holds %d and spent %d of %d, want %d and %d", k.Held, k.Spent, total, held, spent)
			}
			if left, limited := k.Left(now); !limited || left != total-held-spent {
				r.Fatalf("%d is left", left)
			}
		}
	})
}
