package account

import (
	"slices"
	"time"

	"agentproxy/domain"
)

// Refusals about what a key is restricted to.
var (
	// ErrKeyRestricted is returned for what a restricted key may not do.
	ErrKeyRestricted = &domain.Error{Kind: domain.Forbidden, Code: "KEY_RESTRICTED",
		Message: "this key is restricted and may not do this; use a key without a restriction"}
	// ErrLastKey is returned where an account would be left without a key that can change it.
	ErrLastKey = &domain.Error{Kind: domain.Conflict, Code: "LAST_KEY",
		Message: "this is the last key without a restriction and an end; issue another one first"}
)

// MaxSessionsOfKey bounds the live sessions that a key may be limited to.
const MaxSessionsOfKey = 10_000

// maxProductsOfKey bounds the list of products of a key.
const maxProductsOfKey = 100

// KeyBudget limits what a key spends. A nil limit is unlimited.
type KeyBudget struct {
	Total       *domain.Money // ever
	Daily       *domain.Money // a UTC day
	PerPurchase *domain.Money
}

// Limits is what restricts a key. The zero value restricts nothing.
type Limits struct {
	Budget      KeyBudget
	Products    []string // that it may buy, in order; nil: all
	MaxSessions int      // live ones at a time; 0: unlimited
	Own         bool     // sessions that others bought do not exist for it
}

// Reach is which sessions exist for a key.
type Reach string

// The reaches of keys.
const (
	AllSessions Reach = "all"
	OwnSessions Reach = "own"
)

// Reaches lists every reach.
var Reaches = []Reach{AllSessions, OwnSessions}

// Reach returns which sessions exist for the key.
func (l Limits) Reach() Reach {
	if l.Own {
		return OwnSessions
	}
	return AllSessions
}

// Restricted reports whether anything is limited.
func (l Limits) Restricted() bool {
	return l.Budget != KeyBudget{} || l.Products != nil || l.MaxSessions > 0 || l.Own
}

// Allows returns ErrKeyRestricted for a product that the key may not buy.
func (l Limits) Allows(product string) error {
	if l.Products == nil || slices.Contains(l.Products, product) {
		return nil
	}
	return ErrKeyRestricted.Msgf("this key does not buy %s; it buys what details.products lists", product).
		With("products", l.Products)
}

// Check validates limits and returns them with the products sorted. sold reports whether a product exists.
func (l Limits) Check(sold func(product string) bool) (Limits, error) {
	var issues []domain.FieldIssue
	issue := func(field, text string) { issues = append(issues, domain.FieldIssue{Field: field, Issue: text}) }
	for _, m := range []struct {
		field string
		limit *domain.Money
	}{{"budget.total", l.Budget.Total}, {"budget.daily", l.Budget.Daily}, {"budget.per_purchase", l.Budget.PerPurchase}} {
		if m.limit != nil && *m.limit <= 0 {
			issue(m.field, "must be above 0, or null for none")
		}
	}
	if l.Budget.Total != nil && l.Budget.Daily != nil && *l.Budget.Daily > *l.Budget.Total {
		issue("budget.daily", "must not be above budget.total")
	}
	if l.Products != nil {
		l.Products = slices.Compact(slices.Sorted(slices.Values(l.Products)))
		unknown := slices.ContainsFunc(l.Products, func(p string) bool { return !sold(p) })
		if unknown || len(l.Products) == 0 || len(l.Products) > maxProductsOfKey {
			issue("products", "must be product numbers of the catalogue, 1 to 100, or null for all")
		}
	}
	if l.MaxSessions < 0 || l.MaxSessions > MaxSessionsOfKey {
		issue("max_sessions", "must be 1 to 10000, or null for no limit")
	}
	if issues != nil {
		return l, domain.InvalidFields(issues...)
	}
	return l, nil
}

// Spender is the key of a call that spends, as it was known when the call was authenticated. The zero value is a
// caller whose key is not known.
type Spender struct {
	KeyID, Name string
	Restricted  bool
	Own         bool // as of Limits
}

// May returns ErrKeyRestricted if a restricted key would spend on a session that another one bought.
func (s Spender) May(buyer string) error {
	if s.Restricted && s.KeyID != buyer {
		return ErrKeyRestricted.Msgf("this key spends on sessions that it bought alone")
	}
	return nil
}

// OwnKey returns the id of the key whose sessions alone exist for the caller; empty: all do.
func (s Spender) OwnKey() string {
	if s.Own {
		return s.KeyID
	}
	return ""
}

// Free reports whether the key is without a restriction and without an end, so that it can change the account.
func (k Key) Free() bool { return !k.Limits.Restricted() && k.Expires.IsZero() && !k.Replaced }

// KeyState is what a key may do with its account, in a word.
type KeyState string

// The states of keys.
const (
	KeyFree       KeyState = "free"
	KeyRestricted KeyState = "restricted"
	KeyReplaced   KeyState = "replaced"
)

// State returns the state of a key that has not ended.
func (k Key) State() KeyState {
	switch {
	case k.Replaced:
		return KeyReplaced
	case k.Limits.Restricted():
		return KeyRestricted
	}
	return KeyFree
}

// KeepsFree returns ErrLastKey if none of the keys of an account but those named is free at a time.
func KeepsFree(keys []Key, but ...string) error {
	for _, k := range keys {
		if k.Free() && !slices.Contains(but, k.ID) {
			return nil
		}
	}
	return ErrLastKey
}

// LiveBuyer returns ErrKeyRestricted if the key that bought a session is not, or no longer, among the further keys of
// its agent: such a session buys nothing by itself.
func LiveBuyer(further []Key, keyID string, now time.Time) error {
	if slices.ContainsFunc(further, func(k Key) bool { return k.ID == keyID && !k.Expired(now) }) {
		return nil
	}
	return ErrKeyRestricted.Msgf("the key that bought this session has ended; add traffic by a call")
}
