package contract

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var keyWalletClaims = []claim{
	{"limits of a key are read back as they were set", keyLimitsRoundTrip},
	{"a restricted key begins with what its sessions hold and cost", keyWalletBegins},
	{"postings move the key that bought the session, and no other", keyWalletMoves},
	{"the live sessions of a key are counted", keyWalletLive},
	{"what the sessions of a key did is apart from the rest", partsOfKeys},
	{"the feed of a key has the events of its sessions", feedOfAKey},
}

// keyWallet reads the money of a key, false if it is not restricted.
func keyWallet(t testing.TB, st ports.Store, agentID, keyID string) (k billing.KeyWallet, found bool) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		k, found, err = tx.KeyWallets().Get(ctx, agentID, keyID)
		return err
	})
	return k, found
}

func restrict(t testing.TB, st ports.Store, agentID, keyID string, l account.Limits) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.KeyWallets().Restrict(ctx, agentID, keyID, l, storeNow)
	})
}

func keyLimitsRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 0)
	five := 5 * domain.Dollar
	for _, want := range []account.Limits{
		{Budget: account.KeyBudget{Total: &five, PerPurchase: &five}, Products: []string{"dyn_1", "sta_1"}},
		{Budget: account.KeyBudget{Daily: &five}, MaxSessions: 3, Own: true},
	} {
		restrict(t, st, "agt_1", "key_a", want)
		k, found := keyWallet(t, st, "agt_1", "key_a")
		if diff := cmp.Diff(want, k.Limits); diff != "" || !found {
			t.Errorf("found %t, (-want +got):\n%s", found, diff)
		}
	}
	restrict(t, st, "agt_1", "key_b", account.Limits{Own: true})
	if _, found := keyWallet(t, st, "agt_2", "key_a"); found || wallet(t, st, "agt_1").RestrictedKeys != 2 {
		t.Errorf("another agent's is found: %t; the wallet counts %d", found, wallet(t, st, "agt_1").RestrictedKeys)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.KeyWallets().List(ctx, "agt_1")
		if len(list) != 2 || list[0].KeyID != "key_a" {
			t.Errorf("listed are %+v", list)
		}
		if err != nil {
			return err
		}
		for range 2 { // the second has nothing to remove
			if err := tx.KeyWallets().Free(ctx, "agt_1", "key_a"); err != nil {
				return err
			}
		}
		return nil
	})
	if _, found := keyWallet(t, st, "agt_1", "key_a"); found || wallet(t, st, "agt_1").RestrictedKeys != 1 {
		t.Errorf("it is found: %t; the wallet counts %d", found, wallet(t, st, "agt_1").RestrictedKeys)
	}
}

// buyByKey books the hold of a session that a key bought, and stores it.
func buyByKey(t testing.TB, st ports.Store, agentID, id, keyID string, own domain.Money) {
	t.Helper()
	p := hold(agentID, "hold:"+id, 0, own)
	p.Entry.SessionID, p.Key = id, keyID
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Ledger().Post(ctx, p); err != nil {
			return err
		}
		return tx.Sessions().Insert(ctx, session.Session{ID: id, AgentID: agentID, Type: session.Dynamic, ProductNo: "dyn_1",
			Status: session.Active, Provider: "embedded", Quantity: 1, Bytes: 1, CreatedAt: storeNow,
			BoughtBy: session.Buyer{KeyID: keyID, Name: "a key"}, Money: session.Money{Held: billing.Funds{Own: own}}})
	})
}

func keyWalletBegins(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	addAgent(t, st, "agt_2", 100)
	buyByKey(t, st, "agt_1", "sess_1", "key_a", 7)
	buyByKey(t, st, "agt_1", "sess_2", "key_a", 5)
	buyByKey(t, st, "agt_1", "sess_3", "key_b", 3)
	buyByKey(t, st, "agt_2", "sess_4", "key_a", 1)
	restrict(t, st, "agt_1", "key_a", account.Limits{Own: true})
	want := billing.KeyWallet{AgentID: "agt_1", KeyID: "key_a", Limits: account.Limits{Own: true}, Held: 12, LiveSessions: 2,
		SpentDay: billing.Day(storeNow), SpentToday: 12}
	k, _ := keyWallet(t, st, "agt_1", "key_a")
	if diff := cmp.Diff(want, k); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		spent, err := tx.Sessions().SpentByKey(ctx, "agt_1")
		if diff := cmp.Diff(map[string]ports.KeySpent{"key_a": {Held: 12, Live: 2}, "key_b": {Held: 3, Live: 1}}, spent); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r, err2 := tx.Sessions().Read(ctx, "agt_1", "sess_3")
		if r.BoughtBy != (session.Buyer{KeyID: "key_b", Name: "a key"}) {
			t.Errorf("it was bought by %+v", r.BoughtBy)
		}
		live, err3 := tx.Sessions().Live(ctx, "agt_1", "key_b", "key_c")
		if diff := cmp.Diff([]string{"sess_3"}, live); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		list, err4 := tx.Sessions().List(ctx, "agt_1", ports.SessionFilter{Key: "key_a"}, domain.Page{Number: 1, Size: 10})
		if list.Total != 2 || len(list.Items) != 2 {
			t.Errorf("it bought %d, of which %d are listed", list.Total, len(list.Items))
		}
		newest, err5 := tx.Sessions().Newest(ctx, "agt_1", "key_a", "dyn_1")
		if newest.ID != "sess_2" {
			t.Errorf("its newest is %s", newest.ID)
		}
		for _, e := range []error{err2, err3, err4, err5} {
			if err == nil {
				err = e
			}
		}
		return err
	})
}

func keyWalletMoves(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	restrict(t, st, "agt_1", "key_a", account.Limits{MaxSessions: 9})
	restrict(t, st, "agt_1", "key_b", account.Limits{MaxSessions: 9})
	p := hold("agt_1", "hold:1", 0, 20)
	p.Key = "key_a"
	mustPost(t, st, p)
	other := hold("agt_1", "hold:2", 0, 4)
	other.Key = "key_c" // without a restriction
	mustPost(t, st, other)
	mustPost(t, st, ports.Posting{Key: "key_a", Entry: billing.Entry{ID: "txn_c", AgentID: "agt_1", Type: billing.ChargeEntry,
		Held: billing.Funds{Own: -8}, Account: billing.Revenue, Counter: 8, Ref: "charge:1", SessionID: "sess_1", At: storeNow}})
	mustPost(t, st, ports.Posting{Key: "key_a", Spent: -12, Day: billing.Day(storeNow), Entry: billing.Entry{ID: "txn_r",
		AgentID: "agt_1", Type: billing.Release, Held: billing.Funds{Own: -12}, Available: billing.Funds{Own: 12},
		Ref: "release:1", SessionID: "sess_1", At: storeNow}})
	mustPost(t, st, ports.Posting{Key: "key_a", Entry: billing.Entry{ID: "txn_f", AgentID: "agt_1", Type: billing.RefundEntry,
		Available: billing.Funds{Own: 3}, Account: billing.Revenue, Counter: -3, Ref: "refund:1", SessionID: "sess_1", At: storeNow}})
	got, _ := keyWallet(t, st, "agt_1", "key_a")
	want := billing.KeyWallet{AgentID: "agt_1", KeyID: "key_a", Limits: account.Limits{MaxSessions: 9}, Spent: 5,
		LiveSessions: 1, SpentDay: billing.Day(storeNow), SpentToday: 8}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b, _ := keyWallet(t, st, "agt_1", "key_b")
	if b.Held+b.Spent > 0 || b.LiveSessions > 0 {
		t.Errorf("the other key has %+v", b)
	}
}

func keyWalletLive(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	restrict(t, st, "agt_1", "key_a", account.Limits{MaxSessions: 9})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Ledger().SetLive(ctx, "agt_1", "key_a", 3); err != nil {
			return err
		}
		return tx.Ledger().SetLive(ctx, "agt_1", "key_a", -1)
	})
	k, _ := keyWallet(t, st, "agt_1", "key_a")
	if w := wallet(t, st, "agt_1"); k.LiveSessions != 2 || w.LiveSessions != 2 || !k.SpentDay.Before(storeNow.Add(time.Hour)) {
		t.Errorf("the key has %d, the wallet %d", k.LiveSessions, w.LiveSessions)
	}
}
