package recharge_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

const usdt = domain.Dollar

// start is when the orders of these tests are made; their window closes at end.
var (
	start = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	end   = start.Add(recharge.Window)
)

func TestCheckAmount(t *testing.T) {
	for amount, want := range map[domain.Money]bool{
		1 * usdt: true, 10_000 * usdt: true, 1*usdt + 10_000: true, 9_999*usdt + 990_000: true, 20 * usdt: true,
		0: false, -1 * usdt: false, 1*usdt - 10_000: false, 1*usdt - 1: false, 10_000*usdt + 1: false,
		10_000*usdt + 10_000: false, 1*usdt + 1: false, 1*usdt + 9_999: false, 5*usdt + 1_000: false,
		math.MaxInt64: false, math.MinInt64: false,
	} {
		err := recharge.CheckAmount(amount)
		if (err == nil) != want {
			t.Errorf("CheckAmount(%s) is %v", amount, err)
		}
		var refusal *domain.Error
		if err != nil && (!errors.As(err, &refusal) || refusal.Kind != domain.Invalid) {
			t.Errorf("CheckAmount(%s) is %v, no refusal of a field", amount, err)
		}
	}
}

func TestNewOrder(t *testing.T) {
	o := recharge.NewOrder("PAY1", "agt_1", "tron-test", "T1", 10*usdt, start)
	want := recharge.Order{ID: "PAY1", AgentID: "agt_1", Network: "tron-test", Address: "T1", Amount: 10 * usdt,
		Status: recharge.Pending, CreatedAt: start, ExpiresAt: end}
	if o != want {
		t.Errorf("the order is %+v, want %+v", o, want)
	}
	if o.Remainder() != 10*usdt {
		t.Errorf("a new order waits for %s", o.Remainder())
	}
	o.Received = 12 * usdt
	if o.Remainder() != 0 {
		t.Errorf("an order that was paid over waits for %s", o.Remainder())
	}
}

func TestOpen(t *testing.T) {
	for _, s := range recharge.Statuses {
		if want := s == recharge.Pending || s == recharge.Confirming; s.Open() != want {
			t.Errorf("%s is open: %t", s, s.Open())
		}
	}
}

var block int64

// transfer is one of its own block, mined at a time after start.
func transfer(amount domain.Money, at time.Duration) recharge.Transfer {
	block++
	return recharge.Transfer{Key: recharge.Key{Network: "tron-test", TxID: fmt.Sprintf("%064x", block)},
		From: "T0", To: "T1", Amount: amount, Block: block, BlockTime: start.Add(at), State: recharge.Seen, AgentID: "agt_1"}
}

// order is of 10 USDT, made at start.
func order(status recharge.Status, received domain.Money) recharge.Order {
	o := recharge.NewOrder("PAY1", "agt_1", "tron-test", "T1", 10*usdt, start)
	o.Status, o.Received = status, received
	if status == recharge.Paid {
		o.PaidAt = start.Add(time.Minute)
	}
	return o
}

// trigger is one look at the chain.
type trigger struct {
	name        string
	final, seen []recharge.Transfer
	through     time.Duration // after start
}

func triggers() []trigger {
	const in, late, tooLate = 10 * time.Minute, recharge.Window + time.Hour, recharge.Window + recharge.Late + time.Second
	one := func(amount domain.Money, at time.Duration) []recharge.Transfer {
		return []recharge.Transfer{transfer(amount, at)}
	}
	return []trigger{
		{"nothing, open", nil, nil, in},
		{"nothing, the last moment", nil, nil, recharge.Window},
		{"nothing, closed", nil, nil, recharge.Window + 1},
		{"short seen, open", nil, one(3*usdt, in), in},
		{"all seen, open", nil, one(10*usdt, in), in},
		{"all seen, closed", nil, one(10*usdt, late), late},
		{"all seen, too late", nil, one(10*usdt, tooLate), tooLate},
		{"short final, open", one(3*usdt, in), nil, in},
		{"short final, closed", one(3*usdt, in), nil, late},
		{"short final and rest seen, closed", one(3*usdt, in), one(7*usdt, late), late},
		{"all final, open", one(10*usdt, in), nil, in},
		{"all final, found when closed", one(10*usdt, recharge.Window), nil, late},
		{"over final, late", one(99*usdt, late), nil, late},
		{"all final, last of late", one(10*usdt, recharge.Window+recharge.Late), nil, tooLate},
		{"all final, too late", one(10*usdt, tooLate), nil, tooLate},
	}
}

// TestTransitions decides each cell of every standing by every look.
func TestTransitions(t *testing.T) {
	const (
		P = recharge.Pending
		C = recharge.Confirming
		D = recharge.Paid
		X = recharge.Expired
		F = recharge.Failed
	)
	looks := triggers()
	for _, row := range []struct {
		from     recharge.Status
		received domain.Money
		want     [15]recharge.Status
	}{
		// nothing: open, last, closed | seen: short, all, closed, too late | final: short, closed, +rest | all, found, over late, last late, too late
		{P, 0, [15]recharge.Status{P, P, X, C, C, C, X, C, X, C, D, D, D, D, X}},
		{C, 0, [15]recharge.Status{P, P, F, C, C, C, F, C, X, C, D, D, D, D, F}},
		{C, 4 * usdt, [15]recharge.Status{C, C, X, C, C, C, X, C, X, C, D, D, D, D, X}},
		{X, 0, [15]recharge.Status{X, X, X, C, C, C, X, X, X, C, D, D, D, D, X}},
		{X, 4 * usdt, [15]recharge.Status{X, X, X, C, C, C, X, X, X, C, D, D, D, D, X}},
		{D, 10 * usdt, [15]recharge.Status{D, D, D, D, D, D, D, D, D, D, D, D, D, D, D}},
		{F, 0, [15]recharge.Status{F, F, F, F, F, F, F, F, F, F, F, F, F, F, F}},
	} {
		for i, look := range looks {
			o := order(row.from, row.received)
			got := recharge.Settle([]recharge.Order{o}, look.final, look.seen, start.Add(look.through))
			after := o
			if len(got.Orders) > 0 {
				after = got.Orders[0]
			}
			name := fmt.Sprintf("%s with %s: %s", row.from, row.received, look.name)
			if after.Status != row.want[i] {
				t.Errorf("%s gives %s, want %s", name, after.Status, row.want[i])
			}
			if len(got.Orders) > 1 || len(got.Orders) == 1 && after == o {
				t.Errorf("%s: an order that did not change is listed", name)
			}
			if (after.Status == D) == after.PaidAt.IsZero() || after.ID != o.ID || after.Amount != o.Amount || after.ExpiresAt != o.ExpiresAt {
				t.Errorf("%s gives %+v", name, after)
			}
			if absorbing := row.from == D || row.from == F; absorbing && len(got.Orders) > 0 {
				t.Errorf("%s changed the order to %+v", name, after)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	const (
		old   = -time.Hour       // late at start, may still be paid
		young = -time.Minute     // open at start
		dead  = -80 * time.Hour  // never paid any more
		ahead = 20 * time.Second // made after the block, by our clock
	)
	type made struct {
		at       time.Duration
		amount   domain.Money
		received domain.Money
		status   recharge.Status
	}
	for _, c := range []struct {
		name   string
		orders []made
		amount domain.Money
		want   int // of orders; -1: none
	}{
		{"no order takes it", nil, 5, -1},
		{"the exact one before the oldest", []made{{young - 1, 9, 0, "pending"}, {young, 5, 0, "pending"}}, 5, 1},
		{"the oldest of two exact ones", []made{{young, 5, 0, "pending"}, {young - 1, 5, 0, "pending"}}, 5, 1},
		{"the remainder counts, not the amount", []made{{young - 1, 5, 2, "confirming"}, {young, 5, 0, "pending"}}, 3, 0},
		{"an amount that was received in part is not exact", []made{{young - 1, 5, 2, "confirming"}, {young, 5, 0, "pending"}}, 5, 1},
		{"the oldest when none is exact", []made{{young, 9, 0, "pending"}, {young - 1, 7, 0, "pending"}}, 5, 1},
		{"an open exact one before a late exact one", []made{{old, 5, 0, "expired"}, {young, 5, 0, "pending"}}, 5, 1},
		{"a late exact one before an open inexact one", []made{{old, 5, 0, "expired"}, {young, 9, 0, "pending"}}, 5, 0},
		{"an open inexact one before a late inexact one", []made{{old, 7, 0, "expired"}, {young, 9, 0, "pending"}}, 5, 1},
		{"a late inexact one before none", []made{{old, 7, 0, "expired"}}, 5, 0},
		{"an exact one that was made after the block", []made{{ahead, 5, 0, "pending"}}, 5, 0},
		{"no inexact one that was made after the block", []made{{ahead, 9, 0, "pending"}}, 5, -1},
		{"no inexact one that was made at the block", []made{{0, 9, 0, "pending"}}, 5, -1},
		{"none after the time for late money", []made{{dead, 5, 0, "expired"}}, 5, -1},
		{"none that is paid", []made{{young, 5, 5, "paid"}}, 5, -1},
		{"none that failed", []made{{young, 5, 0, "failed"}}, 5, -1},
		{"by the block time: expired on paper, open at the block", []made{{young, 5, 0, "expired"}, {young + 1, 5, 0, "pending"}}, 5, 0},
		{"by the block time: pending on paper, late at the block", []made{{old, 5, 0, "pending"}, {young, 5, 0, "pending"}}, 5, 1},
		{"whole, though it is too much", []made{{young, 5, 0, "pending"}, {young + 1, 5, 0, "pending"}}, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var orders []recharge.Order
			for i, m := range c.orders {
				o := recharge.NewOrder(fmt.Sprintf("PAY%d", i), "agt_1", "tron-test", "T1", m.amount*usdt, start.Add(m.at))
				o.Received, o.Status = m.received*usdt, m.status
				orders = append(orders, o)
			}
			in := transfer(c.amount*usdt, 0)
			in.OrderID = "PAY provisional"
			want := ""
			if c.want >= 0 {
				want = orders[c.want].ID
			}
			final := recharge.Settle(orders, []recharge.Transfer{in}, nil, start)
			seen := recharge.Settle(orders, nil, []recharge.Transfer{in}, start)
			if got := final.Transfers[0]; got.OrderID != want || got.State != recharge.Final {
				t.Errorf("final it pays %q as %s, want %q", got.OrderID, got.State, want)
			}
			if got := seen.Transfers[0]; got.OrderID != want || got.State != recharge.Seen {
				t.Errorf("seen it pays %q as %s, want %q", got.OrderID, got.State, want)
			}
			for _, o := range final.Orders {
				paid := domain.Money(0)
				if o.ID == want {
					paid = in.Amount
				}
				if o.Received != orders[o.ID[3]-'0'].Received+paid {
					t.Errorf("%s received %s", o.ID, o.Received)
				}
			}
			for _, o := range seen.Orders {
				if o.Received != orders[o.ID[3]-'0'].Received || o.Status == recharge.Paid {
					t.Errorf("what is only seen made %+v", o)
				}
			}
		})
	}
}

func TestPaidAtIsTheBlockThatReachedTheAmount(t *testing.T) {
	a, b, c := transfer(4*usdt, time.Minute), transfer(7*usdt, 2*time.Minute), transfer(10*usdt, 3*time.Minute)
	got := recharge.Settle([]recharge.Order{order(recharge.Pending, 0)}, []recharge.Transfer{c, b, a}, nil, end)
	// 10 is exact only while nothing was received: in chain order, 4 comes first.
	if len(got.Orders) != 1 || got.Orders[0].Status != recharge.Paid || got.Orders[0].Received != 11*usdt ||
		!got.Orders[0].PaidAt.Equal(b.BlockTime) || got.Transfers[2].OrderID != "" {
		t.Errorf("settled: %+v", got)
	}
}

// Money that was shown for an order and pays another is still there: only what
// the chain took back makes an order fail.
func TestMoneyThatPaysAnotherOrderMakesNoneFail(t *testing.T) {
	abandoned, fresh := order(recharge.Confirming, 0), order(recharge.Pending, 0)
	fresh.ID, fresh.CreatedAt, fresh.ExpiresAt = "PAY2", end.Add(time.Hour), end.Add(2*time.Hour)
	in := transfer(10*usdt, recharge.Window+time.Hour+time.Minute)
	for _, c := range []struct {
		name        string
		shown       string
		final, seen bool
		want        recharge.Status
	}{
		{"it is seen for the other", abandoned.ID, false, true, recharge.Expired},
		{"it is final and pays the other", abandoned.ID, true, false, recharge.Expired},
		{"it is gone", abandoned.ID, false, false, recharge.Failed},
		{"another was shown for it and is gone", "", false, true, recharge.Failed},
	} {
		var final, seen []recharge.Transfer
		in.OrderID = c.shown
		if c.final {
			final = append(final, in)
		}
		if c.seen {
			seen = append(seen, in)
		}
		got := recharge.Settle([]recharge.Order{abandoned, fresh}, final, seen, end.Add(time.Hour))
		if len(got.Orders) == 0 || got.Orders[0].ID != abandoned.ID || got.Orders[0].Status != c.want {
			t.Errorf("%s: the orders are %+v, want %s", c.name, got.Orders, c.want)
		}
	}
}
