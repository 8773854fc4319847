package contract

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var exitMeasureClaims = []claim{
	{"what was measured of exits is read back as it was stored, and replaced", exitMeasuresKept},
	{"exits are due in the order of their times, and those that are dropped never", exitMeasuresDue},
	{"exits are counted by source and country as sold", exitMeasuresCounted},
	{"active static sessions without a measurement are found", exitMeasuresMissing},
}

// measuresOf returns what was measured of exits of sessions.
func measuresOf(t *testing.T, st ports.Store, ids ...string) (list []exit.Record) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.ExitMeasures().Of(ctx, ids)
		return err
	})
	return list
}

func putMeasures(t *testing.T, st ports.Store, list ...exit.Record) {
	t.Helper()
	for _, r := range list {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.ExitMeasures().Put(ctx, r) })
	}
}

func exitMeasuresKept(t *testing.T, st ports.Store) {
	all := exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: "sess_1", Worker: "w1"}, Of: "7.3 192.0.2.1", Told: true,
		DueAt: storeNow.Add(time.Hour), Measured: exit.Measured{IP: netip.MustParseAddr("2001:db8::1"), At: storeNow, Declared: "TH",
			Known: exit.Known{Country: "LT", Region: "Vilnius County", City: "Vilnius", Timezone: "Europe/Vilnius", ASN: 4294967295,
				ASName: `Example "Net"`, Network: exit.Hosting, Listed: []string{"a", "b"}, Disputed: true}}}
	none := exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: "sess_1", Index: 2}, Of: "0.0", DueAt: storeNow}
	clean := exit.Record{Ref: exit.Ref{AgentID: "agt_2", SessionID: "sess_2"}, Of: "0.0", DueAt: storeNow,
		Measured: exit.Measured{IP: netip.MustParseAddr("192.0.2.1"), At: storeNow, Known: exit.Known{Listed: []string{}}}}
	putMeasures(t, st, clean, all, none)
	same := cmp.Options{cmpopts.EquateComparable(netip.Addr{})} // a list that has nothing is not none
	for _, c := range []struct {
		ids  []string
		want []exit.Record
	}{
		{nil, nil}, {[]string{"sess_3"}, []exit.Record{}}, {[]string{"sess_1"}, []exit.Record{none, all}},
		{[]string{"sess_2", "sess_3", "sess_1"}, []exit.Record{none, all, clean}},
	} {
		if diff := cmp.Diff(c.want, measuresOf(t, st, c.ids...), same); diff != "" {
			t.Errorf("of %v: %s", c.ids, diff)
		}
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, found, err := tx.ExitMeasures().Get(ctx, all.Ref)
		if diff := cmp.Diff(all, got, same); diff != "" || !found {
			t.Errorf("one, found %v: %s", found, diff)
		}
		if _, found, err := tx.ExitMeasures().Get(ctx, exit.Ref{SessionID: "sess_1"}); found || err != nil {
			t.Errorf("one that is not there was found, %v", err)
		}
		return err
	})
	none.Measured, none.Of = clean.Measured, "0.1"
	putMeasures(t, st, none)
	if diff := cmp.Diff([]exit.Record{none, all}, measuresOf(t, st, "sess_1"), same); diff != "" {
		t.Errorf("after another measurement: %s", diff)
	}
}

func exitMeasuresDue(t *testing.T, st ports.Store) {
	ref := func(worker string) exit.Ref { return exit.Ref{AgentID: "agt_1", SessionID: "sess_1", Worker: worker} }
	for i, name := range []string{"c", "a", "b", "later"} {
		putMeasures(t, st, exit.Record{Ref: ref(name), DueAt: storeNow.Add(time.Duration(i-2) * time.Second)})
	}
	due := func(limit int) (names string) {
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.ExitMeasures().Due(ctx, storeNow, limit)
			for _, r := range list {
				names += r.Worker
			}
			return err
		})
		return names
	}
	if got := due(9) + " " + due(2); got != "cab ca" {
		t.Errorf("due are %q", got)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		m := tx.ExitMeasures()
		if err := m.Drop(ctx, ref("a")); err != nil {
			return err
		}
		if err := m.Drop(ctx, ref("unknown")); err != nil {
			return err
		}
		return m.Postpone(ctx, ref("c"), storeNow)
	})
	if got := due(9); got != "bc" {
		t.Errorf("after a change %q are due", got)
	}
}

func exitMeasuresMissing(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	for id, s := range map[string]session.Session{"sess_static": {Type: session.Static, Status: session.Active},
		"sess_over": {Type: session.Static, Status: session.Expired}, "sess_dynamic": {Type: session.Dynamic, Status: session.Active}} {
		s.ID, s.AgentID, s.CreatedAt, s.ProductNo = id, "agt_1", storeNow, "p"
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Insert(ctx, s) })
	}
	missing := func() (ids []string) {
		view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			ids, err = tx.ExitMeasures().Unmeasured(ctx, 9)
			return err
		})
		return ids
	}
	putMeasures(t, st, exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: "sess_static", Worker: "w"}, DueAt: storeNow})
	if got := missing(); len(got) != 1 || got[0] != "sess_static" {
		t.Errorf("not measured are %v", got)
	}
	putMeasures(t, st, exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: "sess_static"}, DueAt: storeNow})
	if got := missing(); len(got) != 0 {
		t.Errorf("after a record not measured are %v", got)
	}
}

func exitMeasuresCounted(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	for id, source := range map[string]string{"sess_1": "seller", "sess_2": "embedded"} {
		s := session.Session{ID: id, AgentID: "agt_1", Type: session.Static, Status: session.Active, CreatedAt: storeNow,
			ProductNo: "p", Provider: source}
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().Insert(ctx, s) })
	}
	put := func(id, declared string, index int, told bool, listed ...string) {
		putMeasures(t, st, exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: id, Index: index}, Of: "0.0", DueAt: storeNow,
			Told: told, Measured: exit.Measured{IP: netip.MustParseAddr("192.0.2.1"), At: storeNow.Add(time.Duration(index) * time.Minute),
				Declared: declared, Known: exit.Known{ASName: `"listed":[`, Listed: listed}}})
	}
	put("sess_1", "TH", 1, true, "a", "b")
	put("sess_1", "TH", 2, false, "a")
	put("sess_1", "TH", 3, true, []string{}...)
	put("sess_1", "US", 4, false)
	put("sess_2", "", 5, false)
	putMeasures(t, st, exit.Record{Ref: exit.Ref{AgentID: "agt_1", SessionID: "sess_2", Index: 6}, Of: "0.0", DueAt: storeNow})
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.ExitMeasures().Quality(ctx)
		if diff := cmp.Diff([]exit.Quality{
			{Source: "embedded", Exits: 2, Measured: 1, OldestAt: storeNow.Add(5 * time.Minute)},
			{Source: "seller", Declared: "TH", Exits: 3, Measured: 3, Differing: 2, Listed: 2, OldestAt: storeNow.Add(time.Minute)},
			{Source: "seller", Declared: "US", Exits: 1, Measured: 1, OldestAt: storeNow.Add(4 * time.Minute)},
		}, got); diff != "" {
			t.Error(diff)
		}
		return err
	})
}
