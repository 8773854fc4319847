package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/ports"
)

var callClaims = []claim{
	{"a call is found by agent, path and key", callFound},
	{"a call that is too old is not found and replaced", callTooOld},
	{"the keys that name a resource are dropped", callsDropped},
	{"the outcome of a call is set, and of no other one", callOutcomeSet},
	{"old keys are purged", callsPurged},
	{"an address is one session's alone", addressesUnique},
	{"of two calls with one key the second finds the first", callsWithOneKey},
}

var changeClaims = []claim{
	{"put of agents and sessions notes a change", changesNoted},
	{"a change is delivered once, in whatever order units commit", changesOutOfOrder},
	{"a reader of changes that were purged gets an error", changesPurged},
}

func findCall(t *testing.T, st ports.Store, agentID, path, key string, since time.Time) (c ports.Call, found bool) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		c, found, err = tx.Idempotency().Find(ctx, agentID, path, key, since)
		return err
	})
	return c, found
}

func putCalls(t *testing.T, st ports.Store, calls ...ports.Call) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		var errs []error
		for _, c := range calls {
			errs = append(errs, tx.Idempotency().Keep(ctx, c))
		}
		return errors.Join(errs...)
	})
}

func callFound(t *testing.T, st ports.Store) {
	want := ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k", Request: []byte{1, 0, 255}, Resource: "sess_1",
		CreatedAt: storeNow}
	putCalls(t, st, want)
	got, found := findCall(t, st, "agt_1", "/v1/sessions", "k", storeNow)
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("found %v (-want +got):\n%s", found, diff)
	}
	want.Outcome = ports.Created
	putCalls(t, st, want)
	if got, _ = findCall(t, st, "agt_1", "/v1/sessions", "k", storeNow); got.Outcome != ports.Created {
		t.Errorf("the outcome is %d", got.Outcome)
	}
	for _, c := range [][3]string{{"agt_2", "/v1/sessions", "k"}, {"agt_1", "/v1/sessions/x", "k"}, {"agt_1", "/v1/sessions", "K"}} {
		if _, found := findCall(t, st, c[0], c[1], c[2], time.Time{}); found {
			t.Errorf("%v is found too", c)
		}
	}
}

func callOutcomeSet(t *testing.T, st ports.Store) {
	call := ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k", Resource: "sess_1", CreatedAt: storeNow}
	other := call
	other.Key, other.Resource = "l", "sess_2"
	putCalls(t, st, call, other)
	set := func(key, resource string, to ports.Outcome) {
		t.Helper()
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			return tx.Idempotency().SetOutcome(ctx, "agt_1", "/v1/sessions", key, resource, to)
		})
	}
	for _, to := range []ports.Outcome{ports.Completed, ports.Created, ports.Pending, ports.Ended} {
		set("k", "sess_1", to)
		set("l", "sess_1", ports.Created) // its key names another session
		set("m", "sess_1", to)            // there is none, and none is stored
		if got, _ := findCall(t, st, "agt_1", "/v1/sessions", "k", storeNow); got.Outcome != to {
			t.Errorf("the outcome is %d, want %d", got.Outcome, to)
		}
	}
	if got, _ := findCall(t, st, "agt_1", "/v1/sessions", "l", storeNow); got.Outcome != ports.InFlight {
		t.Errorf("the outcome of the other is %d", got.Outcome)
	}
	if _, found := findCall(t, st, "agt_1", "/v1/sessions", "m", time.Time{}); found {
		t.Error("a key was stored")
	}
}

func callsWithOneKey(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	var effects atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			var found bool
			err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
				if _, found, err = tx.Idempotency().Find(ctx, "agt_1", "/p", "k", time.Time{}); err != nil || found {
					return err
				}
				overlap()
				return tx.Idempotency().Keep(ctx, ports.Call{AgentID: "agt_1", Path: "/p", Key: "k", CreatedAt: storeNow})
			})
			if err != nil {
				t.Error(err)
			} else if !found {
				effects.Add(1)
			}
		})
	}
	wg.Wait()
	if n := effects.Load(); n != 1 {
		t.Errorf("%d calls took effect, want 1", n)
	}
}

func callTooOld(t *testing.T, st ports.Store) {
	old := ports.Call{AgentID: "agt_1", Path: "/p", Key: "k", Request: []byte{1}, Resource: "sess_1", Outcome: ports.Created, CreatedAt: storeNow}
	putCalls(t, st, old)
	if _, found := findCall(t, st, "agt_1", "/p", "k", storeNow.Add(time.Microsecond)); found {
		t.Error("a call from before since is found")
	}
	next := ports.Call{AgentID: "agt_1", Path: "/p", Key: "k", Request: []byte{2}, Resource: "sess_2", CreatedAt: storeNow.Add(24 * time.Hour)}
	putCalls(t, st, next)
	got, _ := findCall(t, st, "agt_1", "/p", "k", storeNow.Add(time.Hour))
	if diff := cmp.Diff(next, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func callsDropped(t *testing.T, st ports.Store) {
	at := func(key, resource, agentID string) ports.Call {
		return ports.Call{AgentID: agentID, Path: "/p", Key: key, Resource: resource, CreatedAt: storeNow}
	}
	putCalls(t, st, at("1", "sess_1", "agt_1"), at("2", "sess_1", "agt_1"), at("3", "sess_2", "agt_1"), at("1", "sess_1", "agt_2"))
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Idempotency().DropFor(ctx, "agt_1", "sess_1") })
	for _, c := range []struct {
		agentID, key string
		want         bool
	}{{"agt_1", "1", false}, {"agt_1", "2", false}, {"agt_1", "3", true}, {"agt_2", "1", true}} {
		if _, found := findCall(t, st, c.agentID, "/p", c.key, storeNow); found != c.want {
			t.Errorf("key %s of %s is found: %v", c.key, c.agentID, found)
		}
	}
}

func callsPurged(t *testing.T, st ports.Store) {
	for i := range 5 {
		putCalls(t, st, ports.Call{AgentID: "agt_1", Path: "/p", Key: fmt.Sprint(i), CreatedAt: storeNow.Add(time.Duration(i) * time.Hour)})
	}
	for _, want := range []int{2, 1, 0} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			n, err := tx.Idempotency().Purge(ctx, storeNow.Add(3*time.Hour), 2)
			if n != want {
				t.Errorf("%d keys were purged, want %d", n, want)
			}
			return err
		})
	}
	if _, found := findCall(t, st, "agt_1", "/p", "3", time.Time{}); !found {
		t.Error("a young key is gone")
	}
}

func addressesUnique(t *testing.T, st ports.Store) {
	take := func(provider, sessionID string, ips ...string) error {
		return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			// A unit may go on after the refusal; it has taken none of them.
			err := tx.Addresses().Take(ctx, provider, sessionID, ips)
			if !errors.Is(err, ports.ErrDuplicate) {
				return err
			}
			taken, listErr := tx.Addresses().Taken(ctx, provider)
			if taken["192.0.2.3"] {
				t.Error("a refused call took an address")
			}
			return errors.Join(err, listErr)
		})
	}
	if err := errors.Join(take("p1", "sess_1", "192.0.2.1", "192.0.2.2"), take("p2", "sess_2", "192.0.2.1"), take("p1", "sess_1")); err != nil {
		t.Fatal(err)
	}
	if err := take("p1", "sess_3", "192.0.2.3", "192.0.2.2"); !errors.Is(err, ports.ErrDuplicate) {
		t.Errorf("an address that is taken: %v", err)
	}
	check := func(want map[string]bool) {
		t.Helper()
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Addresses().Taken(ctx, "p1")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			return err
		})
	}
	check(map[string]bool{"192.0.2.1": true, "192.0.2.2": true})
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Addresses().Free(ctx, "sess_1"), tx.Addresses().Free(ctx, "sess_1"))
	})
	check(map[string]bool{})
	if err := take("p1", "sess_3", "192.0.2.3", "192.0.2.2"); err != nil {
		t.Errorf("after they were freed: %v", err)
	}
}

// changesSince lists what was committed after a place, and the place behind it.
func changesSince(t *testing.T, st ports.Store, after ports.Cursor, limit int) (list []ports.Change, next ports.Cursor, err error) {
	t.Helper()
	err = st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		list, next, err = tx.Changes().Since(ctx, after, limit)
		return err
	})
	return list, next, err
}

func lastChange(t *testing.T, st ports.Store) (last ports.Cursor) {
	t.Helper()
	view(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
		last, err = tx.Changes().Last(ctx)
		return err
	})
	return last
}

// makeChanges puts two sessions and an agent.
func makeChanges(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	addSessions(t, st, dynamicSession("agt_1", "sess_1"), dynamicSession("agt_1", "sess_2"))
	for _, put := range []unit{
		func(ctx context.Context, tx ports.Tx) error {
			return tx.Sessions().Put(ctx, dynamicSession("agt_1", "sess_1"))
		},
		func(ctx context.Context, tx ports.Tx) error { return tx.Agents().Put(ctx, storeAgent("agt_1")) },
		func(ctx context.Context, tx ports.Tx) error {
			return tx.Sessions().Put(ctx, dynamicSession("agt_1", "sess_2"))
		},
	} {
		update(t, st, put)
	}
}

func changesNoted(t *testing.T, st ports.Store) {
	start := lastChange(t, st)
	if list, _, err := changesSince(t, st, start, 10); len(list) != 0 || err != nil {
		t.Errorf("a new store has %v, %v", list, err)
	}
	makeChanges(t, st)
	want := []ports.Change{{Session: "sess_1"}, {Agent: "agt_1"}, {Session: "sess_2"}}
	list, next, err := changesSince(t, st, start, 3)
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if again, _, err := changesSince(t, st, start, 3); len(again) != 3 || err != nil {
		t.Errorf("asked again from the same place: %v, %v", again, err)
	}
	if _, behind, err := changesSince(t, st, start, 2); !errors.Is(err, ports.ErrMissed) {
		t.Errorf("more than the limit: %v", err)
	} else if list, _, err := changesSince(t, st, behind, 2); len(list) != 0 || err != nil {
		t.Errorf("the place behind what was missed is followed by %v, %v", list, err)
	}
	if list, _, err := changesSince(t, st, next, 10); len(list) != 0 || err != nil {
		t.Errorf("after the last there is %v, %v", list, err)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Agents().Put(ctx, storeAgent("agt_1")) })
	if list, _, err := changesSince(t, st, next, 10); len(list) != 1 || err != nil {
		t.Errorf("one more is %v, %v", list, err)
	}
}

// changesOutOfOrder lets a unit that began first commit last, and one fail.
func changesOutOfOrder(t *testing.T, st ports.Store) {
	makeChanges(t, st)
	heard := map[string]int{}
	next := lastChange(t, st)
	listen := func() {
		t.Helper()
		list, behind, err := changesSince(t, st, next, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			heard[c.Session+c.Agent]++
		}
		next = behind
	}
	put := func(id string) error {
		return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return tx.Sessions().Put(ctx, dynamicSession("agt_1", id))
		})
	}
	slow, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		done <- st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Agents().Put(ctx, storeAgent("agt_1")); err != nil {
				return err
			}
			once.Do(func() { close(slow) })
			for range 20 { // where units run side by side, those below run meanwhile
				overlap()
			}
			return nil
		})
	}()
	<-slow
	err := st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Sessions().Put(ctx, dynamicSession("agt_1", "sess_2")), errUnit)
	})
	if !errors.Is(err, errUnit) {
		t.Error(err)
	}
	if err := put("sess_1"); err != nil {
		t.Error(err)
	}
	listen()
	if heard["sess_1"] != 1 {
		t.Errorf("got %v: what is committed is not delivered while another unit is running", heard)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	listen()
	listen()
	if diff := cmp.Diff(map[string]int{"sess_1": 1, "agt_1": 1}, heard); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func changesPurged(t *testing.T, st ports.Store) {
	start := lastChange(t, st)
	makeChanges(t, st)
	purge := func(before time.Time, limit int) (n int) {
		update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			n, err = tx.Changes().Purge(ctx, before, limit)
			return err
		})
		return n
	}
	if n := purge(time.Unix(0, 0), 10); n != 0 {
		t.Errorf("of what is old %d changes are purged", n)
	}
	if list, _, err := changesSince(t, st, start, 10); len(list) != 3 || err != nil {
		t.Errorf("after a purge of nothing: %v, %v", list, err)
	}
	last := lastChange(t, st)
	later := time.Now().Add(1000 * time.Hour)
	if n := purge(later, 1); n != 1 {
		t.Errorf("one change at a time: %d are purged", n)
	}
	for purge(later, 1) > 0 {
	}
	if _, _, err := changesSince(t, st, start, 10); !errors.Is(err, ports.ErrMissed) {
		t.Errorf("from before what was purged: %v", err)
	}
	if list, _, err := changesSince(t, st, last, 10); len(list) != 0 || err != nil {
		t.Errorf("from behind what was purged: %v, %v", list, err)
	}
	update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Agents().Put(ctx, storeAgent("agt_1")) })
	if list, _, err := changesSince(t, st, last, 10); len(list) != 1 || err != nil {
		t.Errorf("a change after the purge: %v, %v", list, err)
	}
}
