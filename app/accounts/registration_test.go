package accounts_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// from is a registration from an address.
func from(addr string) accounts.Register {
	return accounts.Register{Profile: account.Profile{Name: "agent"},
		Origin: account.Origin{Addr: netip.MustParseAddr(addr), UserAgent: "curl/8"}}
}

// register opens an account and returns its trial credit.
func register(t *testing.T, w *apptest.World, in accounts.Register) domain.Money {
	t.Helper()
	r, err := w.Accounts.Register(t.Context(), in)
	apptest.OK(t, err)
	if credit := r.Wallet.Available.Trial; (credit > 0) != r.IsTrial || (credit == 0) != r.Wallet.TrialExpiresAt.IsZero() {
		t.Errorf("registered with %+v, trial %v", r.Wallet, r.IsTrial)
	}
	return r.Wallet.Balance()
}

func TestWaysOfRegistration(t *testing.T) {
	t.Parallel()
	for way, want := range map[account.Registration]struct{ without, unknown, with error }{
		"":                           {nil, account.ErrReferralCode, nil},
		account.OpenRegistration:     {nil, account.ErrReferralCode, nil},
		account.ReferralRegistration: {account.ErrReferralCode, account.ErrReferralCode, nil},
		account.ClosedRegistration:   {account.ErrRegistrationClosed, account.ErrRegistrationClosed, account.ErrRegistrationClosed},
	} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) { c.Registration = way }})
			_, err := w.Referrers.Add(t.Context(), "Partner", "CODE-1")
			apptest.OK(t, err)
			for code, refusal := range map[string]error{"": want.without, " ": want.without, "CODE-2": want.unknown, " CODE-1 ": want.with} {
				before := w.Dump()
				in := from("192.0.2.1")
				in.ReferralCode = code
				if _, err = w.Accounts.Register(t.Context(), in); refusal == nil {
					apptest.OK(t, err)
				} else {
					apptest.ErrorIs(t, err, refusal)
					apptest.Equal(t, "the database", w.Dump(), before)
				}
				// The operator opens accounts whatever the way, but with no code that does not exist.
				in.Operator = true
				if _, err = w.Accounts.Register(t.Context(), in); code == "CODE-2" {
					apptest.ErrorIs(t, err, account.ErrReferralCode)
				} else {
					apptest.OK(t, err)
				}
			}
		})
	}
}

func TestTheTrialCreditOfADayIsBounded(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) { c.TrialDailyTotal = 305 * domain.Dollar }})
	var granted atomic.Int64
	apptest.Concurrently(100, func(i int) {
		r, err := w.Accounts.Register(t.Context(), from(fmt.Sprintf("198.51.%d.1", i)))
		if err != nil {
			t.Error(err)
		}
		granted.Add(int64(r.Wallet.Balance()))
	})
	apptest.Equal(t, "granted to 100 accounts at once", domain.Money(granted.Load()), 300*domain.Dollar)
	counted := func(want domain.Money) {
		t.Helper()
		sum, err := w.Accounts.TrialGranted(t.Context())
		apptest.OK(t, err)
		apptest.Equal(t, "counted", sum, want)
	}
	counted(300 * domain.Dollar)
	apptest.Equal(t, "granted to the operator's account", register(t, w, accounts.Register{Profile: account.Profile{Name: "agent"}, Operator: true}), 0)
	midnight := billing.Day(w.Clock.Now()).Add(24 * time.Hour)
	w.Clock.Set(midnight.Add(-time.Microsecond))
	counted(300 * domain.Dollar)
	apptest.Equal(t, "granted before midnight", register(t, w, from("198.51.0.1")), 0)
	w.Clock.Set(midnight)
	counted(0)
	apptest.Equal(t, "granted on another day", register(t, w, from("198.51.0.1")), 10*domain.Dollar)
	counted(10 * domain.Dollar)
}

func TestTheTrialsOfANetworkAreBounded(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true, Accounts: func(c *accounts.Config) {
		c.TrialPerNetwork, c.TrialDailyTotal = 2, 80*domain.Dollar
	}})
	grant := func(in accounts.Register, want domain.Money) {
		t.Helper()
		apptest.Equal(t, "granted to "+in.Origin.Addr.String(), register(t, w, in), want*domain.Dollar)
	}
	exit := from("203.0.113.9")
	exit.FromExit = true
	otherExit := from("2001:db8:77::9")
	otherExit.FromExit = true
	for i, want := range []domain.Money{10, 10, 0, 0} { // 60 dollars in all
		grant(from(fmt.Sprintf("192.0.2.%d", i)), want)
		grant(from(fmt.Sprintf("2001:db8:1:%d::1", i)), want)
		grant(map[bool]accounts.Register{true: exit, false: otherExit}[i%2 == 0], want)
	}
	grant(from("192.0.3.1"), 10)
	grant(accounts.Register{Profile: account.Profile{Name: "agent"}, Operator: true}, 10)
	// The day's total is used up: that counts for no network.
	grant(from("192.0.4.1"), 0)
	grant(from("192.0.4.1"), 0)
	apptest.Equal(t, "counted of the network", w.Column(`SELECT CAST(SUM(granted) AS TEXT) FROM trial_grants WHERE scope = ?`,
		"network 192.0.4.0/24")[0], "0")
	w.Clock.Advance(24 * time.Hour)
	grant(from("192.0.2.1"), 10)
}

// A hundred registrations from 20 networks leave a fifth of the day's credit to those that had none.
func TestNewNetworksHaveTrialsWhenAFewUsedTheirs(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) {
		c.TrialPerNetwork, c.TrialDailyTotal = 5, 1000*domain.Dollar
	}})
	var granted domain.Money
	for i := range 100 {
		granted += register(t, w, from(fmt.Sprintf("198.51.%d.%d", i%20, i)))
	}
	apptest.Equal(t, "granted to 20 networks", granted, 800*domain.Dollar)
	exit := from("203.0.113.9")
	exit.FromExit = true
	apptest.Equal(t, "granted through an exit", register(t, w, exit), 0)
	granted = 0
	for i := range 25 {
		granted += register(t, w, from(fmt.Sprintf("192.0.%d.1", i)))
	}
	apptest.Equal(t, "granted to new networks", granted, 200*domain.Dollar)
}

func TestWithoutBoundsEveryAccountHasATrial(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for range 12 {
		apptest.Equal(t, "granted", register(t, w, from("192.0.2.1")), 10*domain.Dollar)
	}
}

func TestWhereAnAccountRegisteredFrom(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) { c.KeepOriginDays = 90 }})
	for _, addr := range []string{"192.0.2.1", "::ffff:192.0.2.2", "198.51.100.1"} {
		register(t, w, from(addr))
	}
	find := func(network string) (found []account.Agent) {
		t.Helper()
		list, err := w.Accounts.List(t.Context(), ports.AgentFilter{RegisteredFrom: netip.MustParsePrefix(network)},
			domain.Page{Number: 1, Size: 100})
		apptest.OK(t, err)
		return list.Items
	}
	list := find("192.0.2.0/24")
	if len(list) != 2 || list[0].Origin != (account.Origin{Addr: netip.MustParseAddr("192.0.2.2"), UserAgent: "curl/8"}) {
		t.Fatalf("found %+v", list)
	}
	v := w.Buy(list[0].ID, apptest.Local)

	apptest.OK(t, w.Accounts.Disable(t.Context(), list[1].ID, "before"))
	ids, err := w.Accounts.DisableFrom(t.Context(), netip.MustParsePrefix("192.0.2.0/24"), "abuse")
	apptest.OK(t, err)
	apptest.Equal(t, "disabled", fmt.Sprint(ids), fmt.Sprint([]string{list[0].ID}))
	apptest.Equal(t, "the session", w.Read(list[0].ID, v.ID).Status, session.Terminated)
	apptest.Equal(t, "the reason", find("192.0.2.1/32")[0].DisabledFor, "before")
	apptest.Equal(t, "another network", find("198.51.100.0/24")[0].Status, account.Active)

	w.Clock.Advance(90 * 24 * time.Hour)
	apptest.OK(t, w.Accounts.Purge(t.Context()))
	apptest.Equal(t, "found after 90 days", len(find("0.0.0.0/0")), 3)
	apptest.Equal(t, "counts of trials that are kept", len(w.Column(`SELECT scope FROM trial_grants`)), 0)
	w.Clock.Advance(time.Second)
	apptest.OK(t, w.Accounts.Purge(t.Context()))
	apptest.Equal(t, "found afterwards", len(find("0.0.0.0/0")), 0)
}

func TestAnOriginThatIsNotKept(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	r, err := w.Accounts.Register(t.Context(), from("192.0.2.1"))
	apptest.OK(t, err)
	info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "the origin", info.Agent.Origin, account.Origin{})
}

func TestWhichAddressesAreExits(t *testing.T) {
	t.Parallel()
	is := func(list ...string) func(netip.Addr) bool {
		return func(a netip.Addr) bool {
			for _, text := range list {
				if a.String() == text {
					return true
				}
			}
			return false
		}
	}
	w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) {
		c.Exits = accounts.Exits{Sold: is("203.0.113.1", "2001:db8::1"), Other: is("198.51.100.9")}
	}})
	v := w.Buy(w.RegisterFunded(10), apptest.RemoteStatic) // at a seller
	leased := w.Read(v.AgentID, v.ID).Exits[0].IP.String()
	for _, c := range []struct {
		addr, peer string
		want       bool
	}{
		{"203.0.113.1", "203.0.113.1", true},
		{"::ffff:203.0.113.1", "::ffff:203.0.113.1", true},
		{"2001:db8::1", "2001:db8::1", true},
		{"198.51.100.9", "198.51.100.9", true},
		{leased, leased, true},
		{"192.0.2.1", "192.0.2.1", false},
		{"203.0.113.1", "127.0.0.1", true},   // behind a reverse proxy
		{"192.0.2.1", "203.0.113.1", true},   // with a header of the agent's own making
		{"192.0.2.1", "198.51.100.9", false}, // a reverse proxy on this host
	} {
		got, err := w.Accounts.IsExit(t.Context(), netip.MustParseAddr(c.addr), netip.MustParseAddr(c.peer))
		apptest.OK(t, err)
		apptest.Equal(t, fmt.Sprintf("%s by %s", c.addr, c.peer), got, c.want)
	}
	_, err := w.Sessions.Terminate(t.Context(), v.AgentID, v.ID)
	apptest.OK(t, err)
	got, err := w.Accounts.IsExit(t.Context(), netip.MustParseAddr(leased), netip.MustParseAddr(leased))
	apptest.OK(t, err)
	apptest.Equal(t, "an address that is given back", got, false)
}

// Accounts that registered themselves and never called, bought, were paid for or met an operator end after 30 days: first
// they are disabled, and a day later they are removed.
func TestUnusedAccountsAreRemoved(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{TrialBalance: -1, RepeatUpdates: true, Accounts: func(c *accounts.Config) { c.KeepOriginDays = 90 }})
	open := func(in accounts.Register) accounts.Registered {
		t.Helper()
		r, err := w.Accounts.Register(t.Context(), in)
		apptest.OK(t, err)
		return r
	}
	hooked := from("192.0.2.2")
	hooked.WebhookURL = apptest.WebhookURL
	unused, other, called, paid, verified := open(from("192.0.2.1")), open(hooked), open(from("192.0.2.3")), open(from("192.0.2.4")), open(from("192.0.2.5"))
	byOperator := open(accounts.Register{Profile: account.Profile{Name: "agent"}, Operator: true})
	_, err := w.Accounts.AuthenticateKey(t.Context(), called.APIKey, nil)
	apptest.OK(t, err)
	apptest.OK(t, w.Accounts.Keys.StoreUses(t.Context()))
	_, err = w.Wallet.Adjust(t.Context(), paid.Agent.ID, domain.Dollar, "a gift")
	apptest.OK(t, err)
	_, err = w.Accounts.SetTier(t.Context(), verified.Agent.ID, account.VerifiedTier, "a passport")
	apptest.OK(t, err)
	status := func(r accounts.Registered) account.Status {
		t.Helper()
		info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
		if errors.Is(err, account.ErrNotFound) {
			return "removed"
		}
		apptest.OK(t, err)
		return info.Agent.Status
	}
	purged := func(after time.Duration, want ...account.Status) {
		t.Helper()
		w.Clock.Advance(after)
		apptest.OK(t, w.Accounts.Purge(t.Context()))
		var got []account.Status
		for _, r := range []accounts.Registered{unused, other, called, paid, verified, byOperator} {
			got = append(got, status(r))
		}
		apptest.Equal(t, "after "+after.String(), fmt.Sprint(got), fmt.Sprint(want))
	}
	const active, disabled, removed = account.Active, account.Disabled, account.Status("removed")
	purged(30*24*time.Hour, active, active, active, active, active, active)
	purged(time.Second, disabled, disabled, active, active, active, active)
	_, err = w.Accounts.AuthenticateKey(t.Context(), unused.APIKey, nil)
	apptest.ErrorIs(t, err, account.ErrDisabled)
	purged(24*time.Hour, disabled, disabled, active, active, active, active)
	purged(time.Second, removed, removed, active, active, active, active)
	_, err = w.Accounts.AuthenticateKey(t.Context(), unused.APIKey, nil)
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
	for _, table := range []string{"wallets", "ledger_proofs", "webhook_states"} {
		apptest.Equal(t, "rows of "+table, len(w.Column(`SELECT agent_id FROM `+table+` WHERE agent_id = ?`, unused.Agent.ID)), 0)
	}
	faults, _, err := w.DB.Verify(t.Context())
	apptest.OK(t, err)
	apptest.Equal(t, "faults", fmt.Sprint(faults), "[]")

	late := open(from("192.0.2.6"))
	w.Clock.Advance(31 * 24 * time.Hour)
	apptest.OK(t, w.Accounts.Purge(t.Context()))
	apptest.Equal(t, "one that registered later", status(late), disabled)
	apptest.OK(t, w.Accounts.Enable(t.Context(), late.Agent.ID)) // its owner asks for it
	w.Clock.Advance(48 * time.Hour)
	apptest.OK(t, w.Accounts.Purge(t.Context()))
	apptest.Equal(t, "one that was enabled again", status(late), active)
}

// Trial credit is an entry of the ledger, which is never removed, and neither is its owner.
func TestAnAccountWithTrialCreditStays(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{Accounts: func(c *accounts.Config) { c.KeepOriginDays = 90 }})
	r, err := w.Accounts.Register(t.Context(), from("192.0.2.1"))
	apptest.OK(t, err)
	for range 3 {
		w.Clock.Advance(40 * 24 * time.Hour)
		apptest.OK(t, w.Accounts.Purge(t.Context()))
	}
	info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "its status", info.Agent.Status, account.Active)
}
