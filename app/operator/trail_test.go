package operator_test

import (
	"context"
	"errors"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/audit"
	"agentproxy/ports"
	. "agentproxy/test/apptest"
)

// desk is the operator's use cases on a world whose store keeps actions.
type desk struct {
	*World
	store ports.Store
	trail *operator.Trail
}

func open(t *testing.T) desk {
	w := New(t)
	st := operator.Audited(w.Store, w.IDs)
	return desk{w, st, operator.NewTrail(st, w.Clock, w.IDs)}
}

func (d desk) base() ports.Base {
	base := d.Base()
	base.Store = d.store
	return base
}

// did returns what was kept, the newest first.
func (d desk) did() []audit.Action {
	d.T.Helper()
	list, err := d.trail.List(d.T.Context(), audit.Filter{}, domain.Page{Number: 1, Size: 100})
	OK(d.T, err)
	return list.Items
}

var disable = audit.Action{By: " ann ", Via: audit.Command, Name: "agent disable", Reason: "abuse"}

func TestAnActionIsKeptWithWhatItChanges(t *testing.T) {
	t.Parallel()
	d := open(t)
	service := accounts.New(accounts.Config{}, d.base(), nil, d.Transitions, d.Hub)
	agent := d.Register()
	a := disable
	a.Subject = agent
	OK(t, d.trail.Do(t.Context(), a, func(ctx context.Context) error { return service.Disable(ctx, agent, a.Reason) }))
	kept := d.did()
	if len(kept) != 1 || kept[0].By != "ann" || kept[0].Subject != agent || kept[0].Reason != "abuse" || !kept[0].At.Equal(d.Clock.Now()) {
		t.Fatalf("kept %+v", kept)
	}
	if info, err := service.Info(t.Context(), agent); err != nil || info.Agent.Status != account.Disabled {
		t.Errorf("the agent is %s, %v", info.Agent.Status, err)
	}
	// What is refused, or rolled back, leaves no trace.
	err := d.trail.Do(t.Context(), a, func(ctx context.Context) error { return service.Disable(ctx, "agt_unknown", "x") })
	if !errors.Is(err, account.ErrNotFound) {
		t.Errorf("an unknown agent: %v", err)
	}
	if n := len(d.did()); n != 1 {
		t.Errorf("%d actions are kept", n)
	}
}

func TestTheChangeIsNotMadeIfTheActionCannotBeKept(t *testing.T) {
	t.Parallel()
	d := open(t)
	wallet := ledger.NewWallet(d.store, d.Clock, d.IDs)
	agent := d.Register()
	d.Exec("ALTER TABLE audit_actions RENAME TO elsewhere")
	before := d.Balance(agent)
	err := d.trail.Do(t.Context(), disable, func(ctx context.Context) error {
		_, err := wallet.Adjust(ctx, agent, domain.Dollar, "gift")
		return err
	})
	d.Exec("ALTER TABLE elsewhere RENAME TO audit_actions") // as the proof at the end needs it
	if err == nil || d.Balance(agent) != before {
		t.Errorf("%v, and the balance went from %s to %s", err, before, d.Balance(agent))
	}
}

func TestAnActionOfSeveralUnitsIsKeptOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	wallet := ledger.NewWallet(d.store, d.Clock, d.IDs)
	agent := d.Register()
	OK(t, d.trail.Do(t.Context(), disable, func(ctx context.Context) error {
		for range 3 {
			if _, err := wallet.Adjust(ctx, agent, domain.Dollar, "gift"); err != nil {
				return err
			}
		}
		return nil
	}))
	OK(t, d.trail.Do(t.Context(), disable, func(context.Context) error { return nil }))
	Equal(t, "actions", len(d.did()), 2)
}

func TestARepeatedReferenceIsKeptOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	wallet := ledger.NewWallet(d.store, d.Clock, d.IDs)
	agent := d.Register()
	a := audit.Action{By: "ann", Name: "adjust", Ref: "ticket 7"}
	for range 2 {
		OK(t, d.trail.Do(t.Context(), a, func(ctx context.Context) error {
			_, err := wallet.AdjustOnce(ctx, agent, domain.Dollar, "gift", a.Ref)
			return err
		}))
	}
	Equal(t, "actions", len(d.did()), 1)
}

func TestDisablingANetworkIsKeptForEachAgent(t *testing.T) {
	t.Parallel()
	d := open(t)
	service := accounts.New(accounts.Config{KeepOriginDays: 1}, d.base(), nil, d.Transitions, d.Hub)
	for _, from := range []string{"192.0.2.1", "192.0.2.2", "198.51.100.1"} {
		_, err := service.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"}, Origin: account.Origin{Addr: addr(from)}})
		OK(t, err)
	}
	OK(t, d.trail.Do(t.Context(), disable, func(ctx context.Context) error {
		ids, err := service.DisableFrom(ctx, prefix("192.0.2.0/24"), "abuse")
		Equal(t, "agents", len(ids), 2)
		return err
	}))
	kept := d.did()
	if len(kept) != 2 || kept[0].Subject == kept[1].Subject || kept[0].ID == kept[1].ID {
		t.Errorf("kept %+v", kept)
	}
}

func TestABadActionIsRefusedBeforeItIsDone(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, a := range []audit.Action{{}, {By: " "}, {By: "ann", Reason: string(make([]byte, audit.MaxReason+1))}} {
		if err := d.trail.Do(t.Context(), a, func(context.Context) error { t.Error("done"); return nil }); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
}
