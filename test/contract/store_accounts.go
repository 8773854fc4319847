package contract

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
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
	{"agents are found by the network that they registered from, until it is forgotten", agentOrigins},
	{"what is granted in a scope on a day never exceeds its limit", trialsAreBounded},
	{"a further key is read back as it was written, until it is deleted", keysRoundTrip},
	{"the default referrer exists and is openAgent", referrerDefault},
	{"a referrer is found by its exact code", referrerByCode},
	{"a code cannot be used twice", referrerConflict},
	{"a disabled referrer is marked", referrerDisable},
}

// addresses compares addresses, whose fields are not exported.
var addresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

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
		if diff := cmp.Diff(want, got, addresses); diff != "" {
			t.Errorf("by id (-want +got):\n%s", diff)
		}
		owner, err := tx.Keys().Owner(ctx, want.KeyHash)
		if owner != "agt_1" {
			t.Errorf("the key is %q's", owner)
		}
		return err
	})
}

func agentPut(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 0)
	want := account.Agent{ID: "agt_1", Name: "Another", Status: account.Disabled, DisabledFor: "abuse",
		KeyHash: []byte("new key"), SecretHash: []byte("new secret"),
		SecretHeldUntil: storeNow.Add(72 * time.Hour), FormerSecretHash: []byte("former secret"), UpdatedAt: storeNow.Add(time.Hour)}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Agents().Put(ctx, want) })
	want.CreatedAt = storeNow
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		var err error
		if want.Referrer, err = tx.Referrers().Default(ctx); err != nil {
			return err
		}
		got, err := tx.Agents().Get(ctx, "agt_1")
		if diff := cmp.Diff(want, got, addresses); diff != "" {
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
		if _, err := tx.Keys().Owner(ctx, []byte("no such key")); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("Owner returned %v", err)
		}
		if _, err := tx.Ledger().Wallet(ctx, "agt_2"); !errors.Is(err, account.ErrNotFound) {
			t.Errorf("Wallet returned %v", err)
		}
		return nil
	})
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
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
			list, err := tx.Agents().List(ctx, ports.AgentFilter{}, domain.Page{Number: number, Size: 2})
			var got []string
			for _, a := range list.Items {
				got = append(got, a.ID)
			}
			if diff := cmp.Diff(want, got, addresses); diff != "" || list.Total != 5 || list.Page.Number != number {
				t.Errorf("page %d of %d in all (-want +got):\n%s", number, list.Total, diff)
			}
			return err
		})
	}
}

// addRegistered adds an agent of each address; that of an empty one has no origin.
func addRegistered(t *testing.T, st ports.Store, addresses ...string) {
	for i, text := range addresses {
		a := storeAgent(fmt.Sprintf("agt_%d", i))
		a.KeyHash = []byte(a.ID)
		a.CreatedAt = storeNow.Add(time.Duration(i) * time.Hour)
		if text != "" {
			a.Origin = account.Origin{Addr: netip.MustParseAddr(text), UserAgent: "curl/8"}
		}
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			r, err := tx.Referrers().Default(ctx)
			a.Referrer = r
			return errors.Join(err, tx.Agents().Insert(ctx, a))
		})
	}
}

// registeredFrom lists the agents of a network, or all of them if it is empty.
func registeredFrom(t *testing.T, st ports.Store, network string) (got string) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		f := ports.AgentFilter{}
		if network != "" {
			f.RegisteredFrom = netip.MustParsePrefix(network)
		}
		list, err := tx.Agents().List(ctx, f, domain.Page{Number: 1, Size: 100})
		for _, a := range list.Items {
			got += a.ID + " " + a.Origin.Addr.String() + " " + a.Origin.UserAgent + ", "
		}
		if list.Total != len(list.Items) {
			t.Errorf("%s: %d of %d", network, len(list.Items), list.Total)
		}
		return err
	})
	return got
}

func agentOrigins(t *testing.T, st ports.Store) {
	addRegistered(t, st, "203.0.113.7", "203.0.113.255", "203.0.114.0", "2001:db8::1", "2001:db8:0:ffff::",
		"2001:db8:1::", "")
	found := func(network string) string { return registeredFrom(t, st, network) }
	for network, want := range map[string]string{
		"203.0.113.0/24":   "agt_1 203.0.113.255 curl/8, agt_0 203.0.113.7 curl/8, ",
		"203.0.113.7/32":   "agt_0 203.0.113.7 curl/8, ",
		"203.0.112.0/22":   "agt_2 203.0.114.0 curl/8, agt_1 203.0.113.255 curl/8, agt_0 203.0.113.7 curl/8, ",
		"198.51.100.0/24":  "",
		"2001:db8::/48":    "agt_4 2001:db8:0:ffff:: curl/8, agt_3 2001:db8::1 curl/8, ",
		"2001:db8:1::/128": "agt_5 2001:db8:1:: curl/8, ",
		"::ffff:0:0/96":    "agt_2 203.0.114.0 curl/8, agt_1 203.0.113.255 curl/8, agt_0 203.0.113.7 curl/8, ",
	} {
		if got := found(network); got != want {
			t.Errorf("from %s: %s, want %s", network, got, want)
		}
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		a, err := tx.Agents().Get(ctx, "agt_0")
		if err != nil {
			return err
		}
		a.Origin = account.Origin{}
		return tx.Agents().Put(ctx, a)
	})
	if got := found("203.0.113.7/32"); got != "agt_0 203.0.113.7 curl/8, " {
		t.Errorf("after a change of the agent: %q", got)
	}
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			n, err := tx.Agents().ForgetOrigins(ctx, before, limit)
			if n != want {
				t.Errorf("%d origins were forgotten, want %d", n, want)
			}
			return err
		})
	}
	forget(storeNow, 10, 0)
	forget(storeNow.Add(90*time.Minute), 1, 1)
	forget(storeNow.Add(90*time.Minute), 10, 1)
	forget(storeNow.Add(90*time.Minute), 10, 0)
	if got := found("203.0.112.0/22"); got != "agt_2 203.0.114.0 curl/8, " {
		t.Errorf("left are %q", got)
	}
	if got := found(""); strings.Count(got, "invalid IP ,") != 3 {
		t.Errorf("all are %q", got)
	}
}

func trialsAreBounded(t *testing.T, st ports.Store) {
	day := storeNow.Truncate(24 * time.Hour)
	take := func(day time.Time, scope string, amount, most int64) (done bool) {
		update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			done, err = tx.Trials().Take(ctx, day, scope, amount, most)
			return err
		})
		return done
	}
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if take(day, "total", 3, 32) {
				granted.Add(3)
			}
		})
	}
	all.Wait()
	if granted.Load() != 30 {
		t.Errorf("%d were granted, want 30 of at most 32", granted.Load())
	}
	for _, c := range []struct {
		day    time.Time
		scope  string
		amount int64
		want   bool
	}{{day, "total", 2, true}, {day, "total", 1, false}, {day, "other", 33, false}, {day, "other", 32, true},
		{day.Add(24 * time.Hour), "total", 32, true}} {
		if got := take(c.day, c.scope, c.amount, 32); got != c.want {
			t.Errorf("%d in %s: %v", c.amount, c.scope, got)
		}
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Trials().Return(ctx, day, "total", 12); err != nil {
			return err
		}
		n, err := tx.Trials().Purge(ctx, day, 10)
		if n != 0 {
			t.Errorf("%d counts of earlier days", n)
		}
		return err
	})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for scope, want := range map[string]int64{"total": 20, "other": 32, "none": 0} {
			if got, err := tx.Trials().Granted(ctx, day, scope); got != want || err != nil {
				t.Errorf("granted in %s: %d, %v", scope, got, err)
			}
		}
		return nil
	})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		one, err := tx.Trials().Purge(ctx, day.Add(24*time.Hour), 1)
		rest, err2 := tx.Trials().Purge(ctx, day.Add(24*time.Hour), 10)
		if one != 1 || rest != 1 {
			t.Errorf("%d and then %d counts were removed", one, rest)
		}
		return errors.Join(err, err2)
	})
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
		if diff := cmp.Diff(want, got, addresses); diff != "" {
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
		return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
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

func keysRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addAgent(t, st, "agt_2", 0)
	full := account.Key{ID: "key_1", AgentID: "agt_1", Name: "CI", Hash: []byte("hash 1"), Hint: "abcd", Parent: "key_2",
		Scopes: []account.Scope{account.AccountRead, account.StatsRead}, Replaced: true, Created: storeNow,
		Expires: storeNow.Add(time.Hour), Used: storeNow.Add(time.Minute)}
	bare := account.Key{ID: "key_2", AgentID: "agt_1", Name: "all", Hash: []byte("hash 2"), Created: storeNow}
	other := account.Key{ID: "key_3", AgentID: "agt_2", Name: "other", Hash: []byte("hash 3"), Created: storeNow}
	cursor := lastChange(t, st)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Keys().Insert(ctx, full), tx.Keys().Insert(ctx, bare), tx.Keys().Insert(ctx, other))
	})
	if err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		again := other
		again.ID = "key_4"
		return tx.Keys().Insert(ctx, again)
	}); err == nil {
		t.Error("a hash is stored twice")
	}
	keys := func(agent string) (list []account.Key) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			list, err = tx.Keys().Further(ctx, agent)
			return err
		})
		return list
	}
	if diff := cmp.Diff([]account.Key{bare, full}, keys("agt_1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for hash, want := range map[string]string{"hash 1": "agt_1", "hash 2": "agt_1", "hash 3": "agt_2"} {
			if owner, err := tx.Keys().Owner(ctx, []byte(hash)); owner != want || err != nil {
				t.Errorf("%s is of %q, %v", hash, owner, err)
			}
		}
		return nil
	})
	expectNoted(t, st, cursor, "agt_1", "agt_1", "agt_2")
	cursor = lastChange(t, st)
	used := storeNow.Add(5 * time.Minute)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		for agent, id := range map[string]string{"agt_2": "key_1", "agt_1": "key_9"} {
			err := tx.Keys().Delete(ctx, agent, id)
			if end := tx.Keys().EndAt(ctx, agent, id, used); !errors.Is(err, account.ErrKeyNotFound) ||
				!errors.Is(end, account.ErrKeyNotFound) {
				t.Errorf("%s of %s: %v, %v", id, agent, err, end)
			}
		}
		return errors.Join(tx.Keys().Delete(ctx, "agt_1", "key_1"),
			tx.Keys().Used(ctx, used, []string{"agt_2"}, []string{"key_2", "key_9", "key_2"}),
			tx.Keys().Used(ctx, used, nil, nil))
	})
	expectNoted(t, st, cursor, "agt_1")
	cursor = lastChange(t, st)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Keys().EndAt(ctx, "agt_1", "key_2", used) })
	expectNoted(t, st, cursor, "agt_1")
	bare.Used, bare.Expires = used, used
	if diff := cmp.Diff([]account.Key{bare}, keys("agt_1")); diff != "" {
		t.Errorf("after a removal and a use (-want +got):\n%s", diff)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		for id, want := range map[string]time.Time{"agt_1": {}, "agt_2": used} {
			if a, err := tx.Agents().Get(ctx, id); !a.KeyUsedAt.Equal(want) || err != nil {
				t.Errorf("the first key of %s was used at %v, %v", id, a.KeyUsedAt, err)
			}
		}
		return nil
	})
}

// expectNoted checks which agents' changes were noted after a cursor, in order.
func expectNoted(t *testing.T, st ports.Store, after ports.Cursor, agents ...string) {
	t.Helper()
	list, _, err := changesSince(t, st, after, 10)
	var got []string
	for _, c := range list {
		got = append(got, c.Agent)
	}
	if diff := cmp.Diff(agents, got); diff != "" || err != nil {
		t.Errorf("changes of agents, %v (-want +got):\n%s", err, diff)
	}
}
