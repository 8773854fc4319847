package exitlogs_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/app/exitlogs"
	"agentproxy/domain"
	"agentproxy/domain/exitlog"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

var (
	exit   = netip.MustParseAddrPort("203.0.113.9:50000")
	config = exitlogs.Config{Days: 90}
)

// connection is a new one of an agent by the exit.
func connection(w *apptest.World, agent string) *exitlog.Connection {
	return &exitlog.Connection{Agent: agent, Session: "sess_" + agent, Client: netip.MustParseAddrPort("192.0.2.1:40000"),
		Target: netip.MustParseAddrPort("198.51.100.7:443"), Exit: exit, Opened: w.Clock.Now()}
}

// who asks who used the exit now.
func who(t *testing.T, w *apptest.World, at time.Time, within time.Duration) string {
	t.Helper()
	s := exitlogs.New(config, w.Store, w.Clock, w.IDs)
	found, err := s.Lookup(t.Context(), exitlogs.LookupInput{Reason: "a complaint",
		Query: exitlog.Query{Exit: exit.Addr(), Port: exit.Port(), At: at, Within: within}})
	if err != nil {
		apptest.ErrorIs(t, err, exitlogs.ErrNoneFound)
	}
	var names []string
	for _, c := range found {
		names = append(names, fmt.Sprint(c.Agent, " ", c.End))
	}
	return strings.Join(names, ", ")
}

// A connection is found as soon as it was stored, while it is open for long, and after its end.
func TestAConnectionIsFound(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	log := exitlogs.NewLog(config, w.Store, w.Clock, w.IDs)
	began := w.Clock.Now()
	number := log.Opened(connection(w, "a"))
	short := log.Opened(&exitlog.Connection{Agent: "short", Exit: netip.AddrPortFrom(exit.Addr(), 1), Opened: began})
	log.Closed(short, 9, exitlog.Finished, began)
	apptest.OK(t, log.Flush(t.Context()))
	apptest.Equal(t, "after a flush", who(t, w, began, 0), "a ")

	for range 60 {
		w.Clock.Advance(time.Minute)
		apptest.OK(t, log.Flush(t.Context()))
	}
	apptest.Equal(t, "half an hour later", who(t, w, began.Add(30*time.Minute), 0), "a ")
	log.Closed(number, 1234, exitlog.Reset, w.Clock.Now())
	apptest.OK(t, log.Flush(t.Context()))
	ended := w.Clock.Now()
	apptest.Equal(t, "near its end", who(t, w, ended.Add(-time.Minute), 0), "a reset")
	w.Clock.Advance(time.Minute)
	log.Opened(connection(w, "b"))
	apptest.OK(t, log.Flush(t.Context()))
	apptest.Equal(t, "between the two", who(t, w, ended.Add(30*time.Second), time.Minute), "b , a reset")
	apptest.Equal(t, "of the second", who(t, w, w.Clock.Now(), time.Minute), "b ")
	apptest.Equal(t, "before the first", who(t, w, began.Add(-time.Hour), time.Minute), "")
}

// Every look-up is kept, also one that finds no connection, and none is made without a reason.
func TestLookupsAreKept(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	s := exitlogs.New(config, w.Store, w.Clock, w.IDs)
	q := exitlog.Query{Exit: exit.Addr(), At: w.Clock.Now(), Within: time.Minute}
	_, err := s.Lookup(t.Context(), exitlogs.LookupInput{Query: q, Reason: "  "})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	_, err = s.Lookup(t.Context(), exitlogs.LookupInput{Query: q, Reason: "case 7", Operator: "kim"})
	apptest.ErrorIs(t, err, exitlogs.ErrNoneFound)
	list, err := s.Lookups(t.Context(), 10)
	apptest.OK(t, err)
	apptest.Equal(t, "look-ups", len(list), 1)
	apptest.Equal(t, "kept", fmt.Sprint(list[0].Operator, " ", list[0].Reason, " ", list[0].Found), "kim case 7 0")
}

// A connection by a seller that shows no exit is found by target, seller, token, agent and client, each alone;
// what is asked for is kept.
func TestConnectionsOfSellersAreFound(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	log, s := exitlogs.NewLog(config, w.Store, w.Clock, w.IDs), exitlogs.New(config, w.Store, w.Clock, w.IDs)
	c := connection(w, "agt_9")
	c.Exit, c.Seller, c.Token, c.Host, c.Target = netip.AddrPort{}, "oxy", "tok1", "shop.example", netip.AddrPortFrom(netip.Addr{}, 443)
	log.Opened(c)
	log.Opened(connection(w, "other"))
	apptest.OK(t, log.Flush(t.Context()))
	client := netip.MustParseAddr("192.0.2.1")
	for i, q := range []exitlog.Query{{Target: "shop.example"}, {Seller: "oxy"}, {Token: "tok1"}, {Agent: "agt_9"},
		{Client: client, Seller: "oxy"}, {Exit: exit.Addr(), Agent: "agt_9"}} {
		q.At, q.Within = w.Clock.Now(), time.Minute
		found, err := s.Lookup(t.Context(), exitlogs.LookupInput{Query: q, Reason: "case 8"})
		want := 1
		if q.Exit.IsValid() {
			want = 0
			apptest.ErrorIs(t, err, exitlogs.ErrNoneFound)
		} else {
			apptest.OK(t, err)
		}
		if len(found) != want || want == 1 && found[0].Agent != "agt_9" {
			t.Errorf("%+v: %+v", q, found)
		}
		kept, err := s.Lookups(t.Context(), 1)
		apptest.OK(t, err)
		apptest.Equal(t, fmt.Sprint("kept of look-up ", i), kept[0].Query, q)
	}
}

// A look-up that names nothing, or a port alone, is refused; one that too many match is kept and refused.
func TestLookupsAreNarrow(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	s := exitlogs.New(config, w.Store, w.Clock, w.IDs)
	for _, q := range []exitlog.Query{{}, {Port: 80}, {Port: 80, Target: "shop.example"}, {Agent: strings.Repeat("a", 2001)},
		{Agent: "a", Within: 25 * time.Hour}} {
		q.At = w.Clock.Now()
		_, err := s.Lookup(t.Context(), exitlogs.LookupInput{Query: q, Reason: "case 9"})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	list := make([]exitlog.Connection, exitlog.MaxFound+1)
	for i := range list {
		list[i] = *connection(w, "a")
		list[i].Number, list[i].Seen = uint64(i), w.Clock.Now()
	}
	apptest.OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return tx.ExitLog().Append(ctx, "gw_1", w.Clock.Now(), list)
	}))
	found, err := s.Lookup(t.Context(), exitlogs.LookupInput{Reason: "case 9", Query: exitlog.Query{Agent: "a", At: w.Clock.Now()}})
	apptest.ErrorIs(t, err, exitlogs.ErrTooMany)
	kept, err := s.Lookups(t.Context(), 10)
	apptest.OK(t, err)
	apptest.Equal(t, "shown", len(found), 0)
	apptest.Equal(t, "kept", len(kept), 1)
	apptest.Equal(t, "how many", kept[0].Found, exitlog.MaxFound)
}

// Days are deleted when they are old enough, unless they are held.
func TestOldDaysAreDeleted(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	cfg := exitlogs.Config{Days: 2}
	log, s := exitlogs.NewLog(cfg, w.Store, w.Clock, w.IDs), exitlogs.New(cfg, w.Store, w.Clock, w.IDs)
	first := w.Clock.Now()
	for _, name := range []string{"a", "b", "c", "d"} {
		log.Closed(log.Opened(connection(w, name)), 1, exitlog.Finished, w.Clock.Now())
		apptest.OK(t, log.Flush(t.Context()))
		w.Clock.Advance(24 * time.Hour)
	}
	day := first.Truncate(24 * time.Hour)
	_, err := s.Hold(t.Context(), day, day.Add(-time.Hour), "", "x")
	apptest.ErrorIs(t, err, domain.ErrInvalid)
	h, err := s.Hold(t.Context(), day, day, "", "case 7")
	apptest.OK(t, err)
	apptest.OK(t, s.Purge(t.Context()))
	apptest.Equal(t, "held", who(t, w, first, 0), "a finished")
	apptest.Equal(t, "old", who(t, w, first.Add(24*time.Hour), 0), "")
	apptest.Equal(t, "young", who(t, w, first.Add(48*time.Hour), 0), "c finished")
	apptest.OK(t, s.Release(t.Context(), h.ID))
	apptest.ErrorIs(t, s.Release(t.Context(), h.ID), exitlogs.ErrNoHold)
	apptest.OK(t, s.Purge(t.Context()))
	apptest.Equal(t, "no longer held", who(t, w, first, 0), "")
}

// What the store does not take waits within a bound, and what is lost is counted.
func TestAnOutageLosesNothingWithinTheBound(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	log := exitlogs.NewLog(config, w.Store, w.Clock, w.IDs)
	good := w.Store.Store
	w.Store.Store = down{good}
	first := log.Opened(connection(w, "a"))
	if log.Flush(t.Context()) == nil {
		t.Fatal("the store is not down")
	}
	log.Closed(first, 1, exitlog.Finished, w.Clock.Now())
	for log.Dropped() == 0 {
		log.Closed(log.Opened(&exitlog.Connection{}), 0, exitlog.Finished, w.Clock.Now())
	}
	if log.Flush(t.Context()) == nil {
		t.Fatal("the store is not down")
	}
	w.Store.Store = good
	apptest.OK(t, log.Flush(t.Context()))
	apptest.Equal(t, "after the outage", who(t, w, w.Clock.Now(), 0), "a finished")
}

// However long the store is away, no more than 100,000 records wait: of new connections, of those that
// end, and of those that could not be stored.
func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	log := exitlogs.NewLog(config, w.Store, w.Clock, w.IDs)
	w.Store.Store = down{w.Store.Store}
	bounded := func(when string) {
		t.Helper()
		if n := log.Waiting(); n > 100_000 {
			t.Errorf("%s %d records wait", when, n)
		}
	}
	open := make([]uint64, 150_000)
	for i := range open {
		open[i] = log.Opened(&exitlog.Connection{})
	}
	bounded("after new connections")
	if log.Flush(t.Context()) == nil {
		t.Fatal("the store is not down")
	}
	w.Clock.Advance(exitlog.CheckpointEvery)
	for i := range 60_000 {
		log.Closed(open[i], 0, exitlog.Finished, w.Clock.Now())
	}
	if log.Flush(t.Context()) == nil {
		t.Fatal("the store is not down")
	}
	bounded("after a flush")
	for _, number := range open[60_000:] {
		log.Closed(number, 0, exitlog.Finished, w.Clock.Now())
	}
	bounded("after their ends")
	if log.Dropped() < 50_000 {
		t.Errorf("%d are counted as lost", log.Dropped())
	}
	for range 100_000 {
		log.Opened(&exitlog.Connection{})
	}
	if log.Flush(t.Context()) == nil {
		t.Fatal("the store is not down")
	}
	bounded("after another flush")
}

// Without days nothing is recorded.
func TestTheLogIsOff(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	log := exitlogs.NewLog(exitlogs.Config{}, w.Store, w.Clock, w.IDs)
	apptest.Equal(t, "number", log.Opened(connection(w, "a")), 0)
	log.Closed(0, 1, exitlog.Finished, w.Clock.Now())
	apptest.OK(t, log.Flush(t.Context()))
	apptest.Equal(t, "found", who(t, w, w.Clock.Now(), time.Hour), "")
}

// down is a store that takes no changes.
type down struct{ ports.Store }

func (down) Update(context.Context, ports.ReadSet, func(context.Context, ports.Tx) error) error {
	return domain.ErrUnavailable
}
