package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
)

var accountClaims = []claim{
	{"an agent is read back as it was written", agentRoundTrip},
	{"put writes zero values and keeps referrer and creation", agentPut},
	{"an unknown agent is not found", agentUnknown},
	{"agents are listed newest first, page by page", agentList},
	{"the default referrer exists and is openAgent", referrerDefault},
	{"a referrer is found by its exact code", referrerByCode},
	{"a code cannot be used twice", referrerConflict},
	{"a disabled referrer says so", referrerDisable},
}

func agentRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	want := storeAgent("agt_1")
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		var err error
		if want.Referrer, err = tx.Referrers().Default(ctx); err != nil {
			return err
		}
		got, err := tx.Agents().Get(ctx, "agt_1")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by id (-want +got):\n%s", diff)
		}
		if got, err = tx.Agents().ByKey(ctx, want.KeyHash); err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by key (-want +got):\n%s", diff)
		}
		return nil
	})
}

func agentPut(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 0)
	want := account.Agent{ID: "agt_1", Name: "Another", Status: account.Disabled, DisabledFor: "abuse",
		KeyHash: []byte("new key"), SecretHash: []byte("new secret"), UpdatedAt: storeNow.Add(time.Hour)}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Agents().Put(ctx, want) })
	want.CreatedAt = storeNow
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		var err error
		if want.Referrer, err = tx.Referrers().Default(ctx); err != nil {
			return err
		}
		got, err := tx.Agents().Get(ctx, "agt_1")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after Put (-want +got):\n%s", diff)
		}
		other, otherErr := tx.Agents().Get(ctx, "agt_2")
		if other.Name != "Agent agt_2" {
			t.Errorf("another agent is now called %q", other.Name)
		}
		return errors.Join(err, otherErr)
	})
}

func agentUnknown(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Agents().Get(ctx, "agt_2"); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("Get returned %v", err)
		}
		if _, err := tx.Agents().ByKey(ctx, []byte("no such key")); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("ByKey returned %v", err)
		}
		if _, err := tx.Ledger().Wallet(ctx, "agt_2"); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("Wallet returned %v", err)
		}
		return nil
	})
	err := st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return tx.Agents().Put(ctx, storeAgent("agt_2"))
	})
	if !errors.Is(err, account.ErrNotFound) {
		t.Errorf("Put returned %v", err)
	}
}

func agentList(t *testing.T, st ports.Store) {
	for i := range 5 {
		addAgent(t, st, fmt.Sprintf("agt_%d", i), 0)
	}
	for number, want := range map[int][]string{1: {"agt_4", "agt_3"}, 3: {"agt_0"}, 4: nil, 1 << 60: nil} {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Agents().List(ctx, domain.Page{Number: number, Size: 2})
			var got []string
			for _, a := range list.Items {
				got = append(got, a.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" || list.Total != 5 || list.Page.Number != number {
				t.Errorf("page %d of %d in all (-want +got):\n%s", number, list.Total, diff)
			}
			return err
		})
	}
}

func referrerDefault(t *testing.T, st ports.Store) {
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Referrers().Default(ctx)
		if r.Name != "openAgent" || !r.Default || r.Disabled || r.ID == "" {
			t.Errorf("the default referrer is %+v", r)
		}
		return err
	})
}

func referrerByCode(t *testing.T, st ports.Store) {
	want := account.Referrer{ID: "ref_1", Name: "Friend", Code: "Code1"}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Referrers().Insert(ctx, want, storeNow) })
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Referrers().ByCode(ctx, "Code1")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by code (-want +got):\n%s", diff)
		}
		for _, other := range []string{"code1", "Code1 ", "Code", ""} {
			if _, err := tx.Referrers().ByCode(ctx, other); !errors.Is(err, account.ErrReferralCode) {
				t.Errorf("code %q: %v", other, err)
			}
		}
		list, listErr := tx.Referrers().List(ctx)
		if len(list) != 2 {
			t.Errorf("%d referrers are listed, want 2", len(list))
		}
		return errors.Join(err, listErr)
	})
}

func referrerConflict(t *testing.T, st ports.Store) {
	insert := func(id string) error {
		return st.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			return tx.Referrers().Insert(ctx, account.Referrer{ID: id, Name: id, Code: "CODE"}, storeNow)
		})
	}
	if err := insert("ref_1"); err != nil {
		t.Fatal(err)
	}
	refusal, ok := errors.AsType[*domain.Error](insert("ref_2"))
	if !ok || refusal.Kind != domain.Conflict {
		t.Errorf("the second one got %v, want a conflict", refusal)
	}
}

func referrerDisable(t *testing.T, st ports.Store) {
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Referrers().Insert(ctx, account.Referrer{ID: "ref_1", Name: "Friend", Code: "CODE"}, storeNow); err != nil {
			return err
		}
		if err := tx.Referrers().Disable(ctx, "OTHER", storeNow); !errors.Is(err, account.ErrReferralCode) {
			t.Errorf("an unknown code: %v", err)
		}
		return tx.Referrers().Disable(ctx, "CODE", storeNow)
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Referrers().ByCode(ctx, "CODE")
		if !r.Disabled {
			t.Errorf("the referrer is %+v", r)
		}
		return err
	})
}
