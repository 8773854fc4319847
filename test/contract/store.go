package contract

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// claim is one promise of ports/store.go and its test.
type claim struct {
	name string
	test func(t *testing.T, st ports.Store)
}

// Store holds a ports.Store to its promises. Open returns an empty one, which
// it closes when the test ends.
//
// Two claims need more than the port. A store with Writer() *sql.DB is shown to
// refuse changes of the ledger by anybody, and one with Jobs(ctx) (int, error),
// the number of inserted jobs, to insert them with their unit or not at all.
func Store(t *testing.T, open func(t *testing.T) ports.Store) {
	for _, group := range []struct {
		name   string
		claims []claim
	}{
		{"units", unitClaims}, {"accounts", accountClaims}, {"ledger", ledgerClaims}, {"sums", sumClaims}, {"key wallets", keyWalletClaims},
		{"sessions", sessionClaims}, {"session lists", sessionListClaims}, {"cursors", cursorClaims}, {"peers", peerClaims}, {"traffic", trafficClaims}, {"leases", leaseClaims}, {"locks", lockClaims},
		{"health and events", eventClaims}, {"calls", callClaims},
		{"recharges", rechargeClaims}, {"transfers", transferClaims}, {"outbox", outboxClaims}, {"webhooks", webhookClaims}, {"devchain", devchainClaims},
		{"orders", orderClaims}, {"order races", orderRaceClaims}, {"order lists", orderListClaims}, {"order turns", orderTurnClaims}, {"claims", claimClaims},
		{"policies", policyClaims}, {"workers", workerClaims}, {"archive", archiveClaims}, {"exit log", exitLogClaims},
		{"audit trail", auditClaims}, {"folds", foldClaims}, {"certificates", certificateClaims}, {"exit measures", exitMeasureClaims},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.claims {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.test(t, open(t))
				})
			}
		})
	}
}

// Changes holds a ports.Store to what it promises of changes. No other database of its server may
// have a transaction open meanwhile.
func Changes(t *testing.T, open func(t *testing.T) ports.Store) {
	for _, c := range changeClaims {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// storeNow is when everything in the suite happens, at the precision that every
// store keeps.
var storeNow = time.Date(2026, 3, 14, 9, 26, 53, 589793000, time.UTC)

type unit = func(ctx context.Context, tx ports.Tx) error

func update(t testing.TB, st ports.Store, fn unit) {
	t.Helper()
	if err := st.Update(t.Context(), ports.ReadSet{}, fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, st ports.Store, fn unit) {
	t.Helper()
	if err := st.View(t.Context(), ports.ReadSet{}, fn); err != nil {
		t.Fatal(err)
	}
}

// bare returns the View or Update of a store for units that name nothing of what they read.
func bare(run func(context.Context, ports.ReadSet, unit) error) func(context.Context, unit) error {
	return func(ctx context.Context, fn unit) error { return run(ctx, ports.ReadSet{}, fn) }
}

func storeAgent(id string) account.Agent {
	limit := 0
	return account.Agent{
		ID: id, BillingUserID: "usr_" + id, Name: "Agent " + id, ContactEmail: "a@example.com",
		WebhookURL: "https://example.com/hook", Description: "reads prices", Status: account.Active,
		KeyHash: []byte("key of " + id), SecretHash: []byte("secret of " + id), TokenVersion: 3, WebhookVersion: 2,
		PerMinute: &limit, CreatedAt: storeNow, UpdatedAt: storeNow.Add(time.Second),
	}
}

// addAgent makes an agent with a wallet that holds own money.
func addAgent(t testing.TB, st ports.Store, id string, own domain.Money) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		a := storeAgent(id)
		var err error
		if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
			return err
		}
		if err := tx.Agents().Insert(ctx, a); err != nil {
			return err
		}
		return tx.Ledger().Open(ctx, billing.Wallet{AgentID: id, TrialExpiresAt: storeNow.Add(time.Hour)})
	})
	if own > 0 {
		mustPost(t, st, fund(id, "fund:"+id, own))
	}
}

func fund(agentID, ref string, own domain.Money) ports.Posting {
	return ports.Posting{Entry: billing.Entry{ID: "txn_" + ref, AgentID: agentID, Type: billing.Recharge,
		Available: billing.Funds{Own: own}, Account: billing.USDT, Counter: -own, Ref: ref, OrderID: "PAY1",
		Description: "a transfer", At: storeNow}}
}

func adjust(agentID, ref string, own domain.Money) ports.Posting {
	return ports.Posting{Entry: billing.Entry{ID: "txn_" + ref, AgentID: agentID, Type: billing.Adjustment,
		Available: billing.Funds{Own: own}, Account: billing.Corrections, Counter: -own, Ref: ref, At: storeNow}}
}

func post(t testing.TB, st ports.Store, p ports.Posting) (booked billing.Entry, err error) {
	t.Helper()
	err = st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		booked, err = tx.Ledger().Post(ctx, p)
		return err
	})
	return booked, err
}

func mustPost(t testing.TB, st ports.Store, p ports.Posting) billing.Entry {
	t.Helper()
	booked, err := post(t, st, p)
	if err != nil {
		t.Fatal(err)
	}
	return booked
}

func wallet(t testing.TB, st ports.Store, agentID string) (w billing.Wallet) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		w, err = tx.Ledger().Wallet(ctx, agentID)
		return err
	})
	return w
}

func dynamicSession(agentID, id string) session.Session {
	return session.Session{
		ID: id, AgentID: agentID, Type: session.Dynamic, Status: session.Active, ProductNo: "dyn_1",
		Provider: "embedded", Quantity: 1, Bytes: 1000, Price: 400_000, Protocol: session.SOCKS5,
		Location: session.Location{Country: "DE", City: "berlin"},
		Rotation: session.Rotation{Mode: session.Timed, Interval: time.Minute, Count: 2, LastAt: storeNow,
			NextAt: storeNow.Add(time.Minute)},
		Exits: []session.Exit{{IP: netip.MustParseAddr("127.0.0.2")}},
		Money: session.Money{Held: billing.Funds{Trial: 1, Own: 2}, Charged: billing.Funds{Trial: 3, Own: 4},
			Refunded: billing.Funds{Trial: 5, Own: 6}},
		CreatedAt: storeNow, ActivatedAt: storeNow.Add(time.Second),
	}
}

func staticSession(agentID, id string) session.Session {
	return session.Session{
		ID: id, AgentID: agentID, Type: session.Static, Status: session.Creating, ProductNo: "sta_1",
		Provider: "embedded", Quantity: 2, Days: 30, Price: domain.Dollar, Protocol: session.HTTP,
		Exits:     []session.Exit{{IP: netip.MustParseAddr("127.0.0.3")}, {IP: netip.MustParseAddr("2001:db8::1")}},
		CreatedAt: storeNow,
	}
}

func addSessions(t testing.TB, st ports.Store, sessions ...session.Session) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for _, s := range sessions {
			if err := tx.Sessions().Insert(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// manySessions are n dynamic sessions, oldest first.
func manySessions(agentID string, n int) []session.Session {
	list := make([]session.Session, n)
	for i := range list {
		list[i] = dynamicSession(agentID, fmt.Sprintf("sess_%s_%d", agentID, i))
		list[i].CreatedAt = storeNow.Add(time.Duration(i) * time.Second)
	}
	return list
}
