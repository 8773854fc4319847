package payments_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/test/apptest"
)

// A payment to an address of the rest, made before its agent orders again, is found with the order at once.
func TestAnAddressThatGetsAnOrderIsReadFromWhereTheRestIs(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		b.advance(recharge.Window + recharge.Late + time.Hour)
		b.watch()
		b.pay(o.Address, "7")
		b.mine(600) // half an hour, far more than every scan reads again
		b.watch()
		b.expectCredited(agent, "0")
		b.order(agent, "20")
		b.watch()
		b.expectCredited(agent, "7")
	})
}

// A leader that is new, or whose last scan is long ago, misses nothing of an address that left the rest meanwhile.
func TestARestartMissesNothingOfTheRest(t *testing.T) {
	t.Parallel()
	expectStable(t, func(t *testing.T, b *fixture) {
		agent, o := b.payer("10")
		b.advance(recharge.Window + recharge.Late + time.Hour)
		b.watch()
		b.pay(o.Address, "7")
		b.mine(600)
		b.watch()
		b.order(agent, "20")
		b.restart()
		b.watch()
		b.expectCredited(agent, "7")
	})
}

// What fails while the rest is read is read again, and the scan goes on.
func TestTheRestIsReadAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, o := b.payer("10")
	b.advance(recharge.Window + recharge.Late + time.Hour)
	b.watch()
	b.pay(o.Address, "7")
	b.advance(time.Hour)
	b.chain.OnCall(func(call string) error {
		if call == "incoming" {
			return fmt.Errorf("away")
		}
		return nil
	})
	if err := b.payments.Watch(context.Background()); err == nil {
		t.Error("a failure is no error")
	}
	b.chain.OnCall(nil)
	b.advance(10 * time.Minute)
	b.watch()
	b.expectCredited(agent, "7")
}

// The calls of a day that read transfers, with a scan every five minutes here, by how many addresses there are that were
// never paid. A service whose quota lets it scan every half minute makes 2,880 in place of 288.
//
//	addresses    calls    before
//	        1      312       288
//	  200,000    5,112    57,888
func TestManyAddressesCostFewCalls(t *testing.T) {
	t.Parallel()
	for _, addresses := range []int{1, 200_000} {
		b := fixtureOf(apptest.New(t))
		_, o := b.payer("10")
		b.watch()
		b.Exec(fmt.Sprintf(`INSERT INTO recharge_addresses (network, fingerprint, idx, agent_id, address, created_at, read_through, audited_at, drift)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			SELECT 'tron-test', 'x', i, 'agt_' || i, 'T' || i, 0, 0, 0, 0 FROM n`, addresses))
		b.Exec(`INSERT INTO recharge_keys (network, fingerprint, next) VALUES ('tron-test', 'x', ?)`, addresses+1)
		before := b.chain.Calls()["incoming"]
		for range 24 * 12 {
			b.mine(100)
			b.Exec(`UPDATE recharge_orders SET status = 'pending', expires_at = ?`, b.Clock.Now().Add(time.Hour).UnixMicro())
			b.watch()
		}
		calls := b.chain.Calls()["incoming"] - before
		if most := 288 + 24*((addresses+999)/1000); calls < 288 || calls > most {
			t.Errorf("%d addresses cost %d calls a day, want at most %d", addresses, calls, most)
		}
		b.pay(o.Address, "10")
		b.settle()
		b.watch()
		b.expectCredited(o.AgentID, "10")
	}
}
