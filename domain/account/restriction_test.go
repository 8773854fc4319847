package account_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

func dollars(n int) *domain.Money { return new(domain.Money(n) * domain.Dollar) }

func TestLimitsOfAKeyAreChecked(t *testing.T) {
	t.Parallel()
	sold := func(product string) bool { return product == "a" || product == "b" }
	for name, c := range map[string]struct {
		limits account.Limits
		field  string // that is refused; empty: none
	}{
		"none":                    {account.Limits{}, ""},
		"a budget":                {account.Limits{Budget: account.KeyBudget{Total: dollars(5), Daily: dollars(5), PerPurchase: dollars(9)}}, ""},
		"a total of nothing":      {account.Limits{Budget: account.KeyBudget{Total: dollars(0)}}, "budget.total"},
		"less than nothing a day": {account.Limits{Budget: account.KeyBudget{Daily: dollars(-1)}}, "budget.daily"},
		"nothing a purchase":      {account.Limits{Budget: account.KeyBudget{PerPurchase: dollars(0)}}, "budget.per_purchase"},
		"more a day than in all":  {account.Limits{Budget: account.KeyBudget{Total: dollars(5), Daily: dollars(6)}}, "budget.daily"},
		"products":                {account.Limits{Products: []string{"b", "a"}}, ""},
		"an unknown product":      {account.Limits{Products: []string{"a", "c"}}, "products"},
		"no product":              {account.Limits{Products: []string{}}, "products"},
		"one session":             {account.Limits{MaxSessions: 1}, ""},
		"ten thousand sessions":   {account.Limits{MaxSessions: 10_000}, ""},
		"more sessions":           {account.Limits{MaxSessions: 10_001}, "max_sessions"},
		"less than no session":    {account.Limits{MaxSessions: -1}, "max_sessions"},
		"its own sessions":        {account.Limits{Own: true}, ""},
	} {
		got, err := c.limits.Check(sold)
		var e *domain.Error
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.field != "" && (!errors.As(err, &e) || e.Details["fields"].([]domain.FieldIssue)[0].Field != c.field):
			t.Errorf("%s: %v, want a fault of %s", name, err, c.field)
		case c.field == "" && got.Restricted() != (name != "none"):
			t.Errorf("%s: restricted is %t", name, got.Restricted())
		}
	}
}

func TestAKeyBuysItsProductsAlone(t *testing.T) {
	t.Parallel()
	l := account.Limits{Products: []string{"a", "b"}}
	if err := l.Allows("b"); err != nil {
		t.Error(err)
	}
	if err := l.Allows("c"); !errors.Is(err, account.ErrKeyRestricted) {
		t.Errorf("another product: %v", err)
	}
	if err := (account.Limits{}).Allows("c"); err != nil {
		t.Error(err)
	}
}

func TestARestrictedKeySpendsOnWhatItBought(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by      account.Spender
		buyer   string
		refused bool
		own     string
	}{
		{account.Spender{KeyID: "key_1"}, "key_2", false, ""},
		{account.Spender{KeyID: "key_1", Restricted: true}, "key_1", false, ""},
		{account.Spender{KeyID: "key_1", Restricted: true}, "key_2", true, ""},
		{account.Spender{KeyID: "key_1", Restricted: true, Own: true}, "", true, "key_1"},
		{account.Spender{}, "", false, ""},
	} {
		if err := c.by.May(c.buyer); errors.Is(err, account.ErrKeyRestricted) != c.refused || c.by.OwnKey() != c.own {
			t.Errorf("%+v on a session of %q: %v, own %q", c.by, c.buyer, err, c.by.OwnKey())
		}
	}
}

func TestOneFreeKeyIsKept(t *testing.T) {
	t.Parallel()
	restricted := account.Limits{MaxSessions: 1}
	first, second := account.Key{ID: "key_1"}, account.Key{ID: "key_2"}
	for name, c := range map[string]struct {
		keys []account.Key
		but  []string
		want error
	}{
		"another one":            {[]account.Key{first, second}, []string{"key_1"}, nil},
		"the last one":           {[]account.Key{first}, []string{"key_1"}, account.ErrLastKey},
		"both":                   {[]account.Key{first, second}, []string{"key_1", "key_2"}, account.ErrLastKey},
		"another one restricted": {[]account.Key{first, {ID: "key_2", Limits: restricted}}, []string{"key_1"}, account.ErrLastKey},
		"another one that ends":  {[]account.Key{first, {ID: "key_2", Expires: time.Unix(1, 0)}}, []string{"key_1"}, account.ErrLastKey},
		"a replaced one":         {[]account.Key{first, {ID: "key_2", Replaced: true}}, []string{"key_1"}, account.ErrLastKey},
	} {
		if err := account.KeepsFree(c.keys, c.but...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestASessionWhoseKeyEndedBuysNothingByItself(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	keys := []account.Key{{ID: "key_a"}, {ID: "key_b", Expires: now}, {ID: "key_c", Expires: now.Add(1)}}
	for key, live := range map[string]bool{"key_a": true, "key_b": false, "key_c": true, "key_d": false} {
		if err := account.LiveBuyer(keys, key, now); (err == nil) != live {
			t.Errorf("%s: %v", key, err)
		}
	}
}
