package metering_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// renewBoth renews the leases of two replicas at once.
func renewBoth(t *testing.T, w *apptest.World, used int64, of [2][]string) {
	t.Helper()
	var wg sync.WaitGroup
	for replica, ids := range of {
		requests := make([]traffic.LeaseRequest, len(ids))
		for i, id := range ids {
			requests[i] = traffic.LeaseRequest{SessionID: id, Lease: "l" + id, Up: used, Want: 1 << 20}
		}
		wg.Go(func() {
			grants, err := w.Traffic.Renew(context.Background(), fmt.Sprint("r", replica), requests)
			if err != nil || len(grants) != len(requests) {
				t.Errorf("replica %d: %d grants for %d asks, %v", replica, len(grants), len(requests), err)
			}
		})
	}
	wg.Wait()
}

// Two replicas serve sessions of the same agents. At the hour each of them charges all of them.
func TestReplicasThatChargeAtTheHourDoNotDeadlock(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	a, b := w.RegisterFunded(10_000), w.RegisterFunded(10_000)
	var of [2][]string
	for _, next := range []struct {
		replica int
		agent   string
	}{{0, a}, {1, b}, {0, b}, {1, a}} {
		for range 25 {
			of[next.replica] = append(of[next.replica], w.Buy(next.agent, apptest.Local).ID)
		}
	}
	used := int64(0)
	for range 6 {
		renewBoth(t, w, used, of)
		used += 50_000
		renewBoth(t, w, used, of)
		w.Clock.Advance(time.Hour)
	}
}

// An agent with many small sessions uses some up and ends the others, while the replica renews the
// leases of everybody.
func TestOneAgentDoesNotDelayTheRenewalOfOthers(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprint("it ends sessions: ", ends), func(t *testing.T) {
			w := apptest.OpenPostgres(t)
			other, agent := w.RegisterFunded(1000), w.RegisterFunded(1000)
			var others []string
			for range 10 {
				others = append(others, w.Buy(other, apptest.Local).ID)
			}
			var took []time.Duration
			for round := range 6 {
				took = append(took, useUpAndEnd(t, w, agent, others, int64(round), ends))
			}
			slices.Sort(took)
			t.Logf("a renewal took %s at the median, %s at most", took[len(took)/2], took[len(took)-1])
		})
	}
}

// useUpAndEnd lets an agent buy 24 sessions, use up 12 and end 12 at once, and returns how long the
// renewal took.
func useUpAndEnd(t *testing.T, w *apptest.World, agent string, others []string, round int64, ends bool) time.Duration {
	t.Helper()
	ctx := context.Background()
	var used, ended []string
	for range 12 {
		used, ended = append(used, w.BuySmall(agent).ID), append(ended, w.BuySmall(agent).ID)
	}
	granted := map[string]int64{}
	for range 30 {
		var requests []traffic.LeaseRequest
		for _, id := range used {
			requests = append(requests, traffic.LeaseRequest{SessionID: id, Lease: "l" + id, Want: 100_000_000})
		}
		grants, err := w.Traffic.Renew(ctx, "r", requests)
		apptest.OK(t, err)
		for _, g := range grants {
			granted[g.SessionID] = g.Granted
		}
	}
	var requests []traffic.LeaseRequest
	for _, id := range others {
		requests = append(requests, traffic.LeaseRequest{SessionID: id, Lease: "l" + id, Up: 10_000 * round, Want: 1 << 20})
	}
	for i := range used {
		requests = append(requests, traffic.LeaseRequest{SessionID: used[i], Lease: "l" + used[i], Up: granted[used[i]], Want: 1 << 20},
			traffic.LeaseRequest{SessionID: ended[i], Lease: "l" + ended[i], Want: 1 << 20})
	}
	var wg sync.WaitGroup
	for _, id := range slices.Backward(ended) {
		if ends {
			wg.Go(func() { _, _ = w.Sessions.Terminate(ctx, agent, id) })
		}
	}
	began := time.Now()
	grants, err := w.Traffic.Renew(ctx, "r", requests)
	took := time.Since(began)
	wg.Wait()
	if apptest.OK(t, err); len(grants) != len(requests) {
		t.Errorf("%d grants for %d asks", len(grants), len(requests))
	}
	return took
}

// An operator disables an agent, which ends its sessions, while they are renewed at the hour.
func TestDisablingAnAgentDoesNotDeadlockWithRenewals(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	for range 6 {
		agent := w.RegisterFunded(1000)
		var ids []string
		for range 12 {
			ids = append(ids, w.Buy(agent, apptest.Local).ID)
		}
		half := [2][]string{ids[:6], ids[6:]}
		renewBoth(t, w, 0, half)
		renewBoth(t, w, 100_000, half)
		w.Clock.Advance(time.Hour)
		var wg sync.WaitGroup
		wg.Go(func() { apptest.OK(t, w.Accounts.Disable(context.Background(), agent, "abuse")) })
		renewBoth(t, w, 200_000, half)
		wg.Wait()
	}
}

// What a seller counts of a direct session moves the wallet and the counters of its agent, as a
// renewal of its other sessions does.
func TestUsageOfDirectSessionsDoesNotDeadlockWithRenewals(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	agent := w.RegisterFunded(1000)
	for range 12 {
		direct, used := w.BuySmall(agent), w.BuySmall(agent)
		g := w.RenewLease(traffic.LeaseRequest{SessionID: used.ID, Lease: "l", Want: 100_000_000})
		for g.Granted < 100_000_000 {
			g = w.RenewLease(traffic.LeaseRequest{SessionID: used.ID, Lease: "l", Want: 100_000_000})
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			apptest.OK(t, w.Store.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
				s, err := tx.Sessions().Load(ctx, direct.ID)
				if err != nil {
					return err
				}
				return w.Transitions.RecordUsage(ctx, tx, s, 100_000_000, w.Clock.Now())
			}))
		})
		w.RenewLease(traffic.LeaseRequest{SessionID: used.ID, Lease: "l", Up: 100_000_000})
		wg.Wait()
		for _, id := range []string{direct.ID, used.ID} {
			apptest.Equal(t, "the session", w.Read(agent, id).Status, session.Expired)
		}
	}
	apptest.Equal(t, "charged", w.Balance(agent), 1000*domain.Dollar+10*domain.Dollar-24*apptest.Dollars("0.04"))
}

// A purchase locks the agent and then the wallet. What a session buys by itself has locked the wallet already, so
// that it must not wait for the agent.
func TestAnAdditionDoesNotWaitForTheAgent(t *testing.T) {
	t.Parallel()
	w := apptest.OpenPostgres(t)
	change(w, func(p *catalog.Product) { p.MinTier = account.FundedTier })
	agent := w.RegisterFunded(100)
	v := autoSession(w, agent, 20, 1)
	w.UseBytes(v.ID, "a", 80_000_000) // its share is left
	granted := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Want: 1_000_000}).Granted
	apptest.Equal(t, "additions before", w.Read(agent, v.ID).TopUps.No, 0)
	apptest.OK(t, w.DB.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Agents().Get(ctx, agent); err != nil { // locks it until the end of this unit
			return err
		}
		_, err := w.Traffic.Renew(context.WithoutCancel(t.Context()), "r",
			[]traffic.LeaseRequest{{SessionID: v.ID, Lease: "l", Up: granted, Want: 1 << 20}})
		return err
	}))
	apptest.Equal(t, "additions", w.Read(agent, v.ID).TopUps.No, 1)
}
