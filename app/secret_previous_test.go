package app_test

import (
	"context"
	"slices"
	"testing"

	"agentproxy/adapters/system"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// rootOf replaces the root secret of a world, and what it replaced stays known unless forgotten.
func (w *world) rootOf(text string, previous ...system.Root) {
	w.t.Helper()
	s, err := system.NewSecrets(system.Root(text), previous...)
	ok(w.t, err)
	*w.secrets = *s
}

var (
	firstRoot  = system.Root("0123456789abcdefghijklmnopqrstuvwxyz")
	secondRoot = "zyxwvutsrqponmlkjihgfedcba9876543210"
)

func TestCredentialsOutliveTheirRootSecret(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	old, err := w.accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent", WebhookURL: hook}})
	ok(t, err)
	w.rootOf(secondRoot, firstRoot)
	caller, err := w.accounts.AuthenticateKey(t.Context(), old.APIKey)
	ok(t, err)
	same(t, "the agent", caller.AgentID, old.Agent.ID)
	_, err = w.accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: old.APIKey, APISecret: old.APISecret})
	ok(t, err)
	_, err = w.accounts.AuthenticateKey(t.Context(), old.APIKey+"x")
	refused(t, err, account.ErrInvalidKey)

	w.event(old.Agent.ID)
	ok(t, w.deliver())
	signed := w.receiver.take()[0].Secrets
	same(t, "the secrets that sign", len(signed), 2)
	same(t, "the old one signs", slices.Contains(signed, old.WebhookSecret), true)

	fresh, err := w.accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	ok(t, err)
	w.rootOf(secondRoot)
	_, err = w.accounts.AuthenticateKey(t.Context(), fresh.APIKey)
	ok(t, err)
}

func TestDeliveriesAreResealed(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	o := procurement.Order{ID: "ord_1", Kind: procurement.Purchase, SessionID: "sess_1", Provider: "seller",
		Status: procurement.Planned, Intent: procurement.Intent{Key: "ord_1", SessionID: "sess_1"}, PlannedAt: w.clock.Now()}
	delivery := procurement.Delivery{Access: procurement.Access{User: "user", Password: "password"}}
	sealed, err := w.access.Seal(o, delivery, false)
	ok(t, err)
	ok(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Orders().Insert(ctx, o); err != nil {
			return err
		}
		o.Status, o.SealedDelivery = procurement.Confirmed, sealed
		return tx.Orders().Put(ctx, o)
	}))
	opens := func() (err error) {
		ok(t, w.store.View(t.Context(), func(ctx context.Context, tx ports.Tx) (err error) {
			o, err = tx.Orders().Get(ctx, "ord_1")
			return err
		}))
		d, err := w.access.Open(o)
		if err == nil {
			same(t, "what was delivered", d.Access, delivery.Access)
		}
		return err
	}
	w.rootOf(secondRoot)
	if opens() == nil {
		t.Error("opened under another root")
	}
	w.rootOf(secondRoot, firstRoot)
	n, err := w.access.Reseal(t.Context())
	ok(t, err)
	same(t, "resealed", n, 1)
	w.rootOf("a-third-secret-that-never-sealed-anything")
	if n, err := w.access.Reseal(t.Context()); err == nil || n != 0 {
		t.Errorf("%d are resealed under a root that cannot open them, %v", n, err)
	}
	w.rootOf(secondRoot)
	ok(t, opens())
}
