package recharge_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// The story of one agent: orders, and a chain of transfers to its address.
type story struct {
	orders []recharge.Order
	chain  []recharge.Transfer
	last   time.Duration // everything is final and every window closed or not
}

func drawStory(t *rapid.T) story {
	var s story
	amount := rapid.SampledFrom([]domain.Money{1 * usdt, 2 * usdt, 3 * usdt, 5 * usdt, 5*usdt + 1, 10 * usdt})
	// Most happens around the windows, some when late money is too late.
	when := rapid.OneOf(rapid.IntRange(-40, 90), rapid.IntRange(72*60, 72*60+60))
	for i := range rapid.IntRange(0, 4).Draw(t, "orders") {
		at := start.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "made")) * time.Minute)
		s.orders = append(s.orders, recharge.NewOrder(fmt.Sprintf("PAY%d", i), "agt_1", "tron-test", "T1",
			max(amount.Draw(t, "amount"), usdt)/usdt*usdt, at))
	}
	minutes := rapid.SliceOfN(when, 0, 7).Draw(t, "blocks")
	slices.Sort(minutes)
	for i, m := range minutes {
		in := recharge.Transfer{Key: recharge.Key{Network: "tron-test", TxID: fmt.Sprintf("%064x", rapid.IntRange(0, 1).Draw(t, "tx")), LogIndex: i},
			From: "T0", To: "T1", Amount: amount.Draw(t, "sum"), Block: int64(m + 100), BlockTime: start.Add(time.Duration(m) * time.Minute),
			State: recharge.Seen, AgentID: "agt_1"}
		s.chain = append(s.chain, in)
	}
	slices.SortFunc(s.chain, recharge.Compare)
	s.last = time.Duration(rapid.IntRange(80, 80*60).Draw(t, "end")) * time.Minute
	return s
}

// storedState is the orders and the transfers as a store keeps them.
type storedState struct {
	orders    map[string]recharge.Order
	transfers map[recharge.Key]recharge.Transfer
	lost      map[string]bool // orders that something was shown for which the chain took back
}

func newStoredState(s story) storedState {
	b := storedState{orders: map[string]recharge.Order{}, transfers: map[recharge.Key]recharge.Transfer{}, lost: map[string]bool{}}
	for _, o := range s.orders {
		b.orders[o.ID] = o
	}
	return b
}

// legal lists where an order may go.
var legal = map[recharge.Status][]recharge.Status{
	recharge.Pending:    {recharge.Confirming, recharge.Paid, recharge.Expired},
	recharge.Confirming: {recharge.Pending, recharge.Paid, recharge.Expired, recharge.Failed},
	recharge.Expired:    {recharge.Confirming, recharge.Paid},
}

// settle takes one look and checks what holds of each.
func (b storedState) settle(t *rapid.T, rng *rand.Rand, final, seen []recharge.Transfer, through time.Time) {
	var orders []recharge.Order
	for _, o := range b.orders {
		if o.Status != recharge.Paid && o.Status != recharge.Failed {
			orders = append(orders, o)
		}
	}
	orders, final, seen = shuffled(rng, orders), b.shown(rng, final), b.shown(rng, seen)
	kept := slices.Concat(orders)
	out := recharge.Settle(orders, final, seen, through)
	if !slices.Equal(kept, orders) {
		t.Fatal("the orders that were given are changed")
	}
	if len(out.Transfers) != len(final)+len(seen) {
		t.Fatalf("%d transfers were given, %d are back", len(final)+len(seen), len(out.Transfers))
	}
	for _, in := range out.Transfers {
		if was, known := b.transfers[in.Key]; known && was.State == recharge.Final {
			t.Fatalf("%v is settled again", in.Key)
		}
		b.transfers[in.Key] = in
	}
	for _, o := range out.Orders {
		was := b.orders[o.ID]
		if o.Status != was.Status && !slices.Contains(legal[was.Status], o.Status) {
			t.Fatalf("%s went from %s to %s", o.ID, was.Status, o.Status)
		}
		if o.Received < was.Received {
			t.Fatalf("%s received less: %s, then %s", o.ID, was.Received, o.Received)
		}
		b.orders[o.ID] = o
	}
	b.check(t, through)
}

// shown is a list in any order, each with the order that it was shown for.
func (b storedState) shown(rng *rand.Rand, list []recharge.Transfer) []recharge.Transfer {
	list = shuffled(rng, list)
	for i := range list {
		list[i].OrderID = b.transfers[list[i].Key].OrderID
	}
	return list
}

// check is what holds after every look.
func (b storedState) check(t *rapid.T, through time.Time) {
	sums, waiting := map[string]domain.Money{}, map[string]bool{}
	for _, in := range b.transfers {
		switch in.State {
		case recharge.Final:
			sums[in.OrderID] += in.Amount
		case recharge.Seen:
			waiting[in.OrderID] = true
		}
	}
	for _, o := range b.orders {
		if o.Received != sums[o.ID] {
			t.Fatalf("%s received %s and is matched with %s", o.ID, o.Received, sums[o.ID])
		}
		if paid := o.Received >= o.Amount; paid != (o.Status == recharge.Paid) || paid == o.PaidAt.IsZero() {
			t.Fatalf("%s of %s received %s and is %s at %s", o.ID, o.Amount, o.Received, o.Status, o.PaidAt)
		}
		if waiting[o.ID] && o.Status != recharge.Confirming {
			t.Fatalf("%s is %s though money is seen", o.ID, o.Status)
		}
		if o.Status.Open() && !waiting[o.ID] && through.After(o.ExpiresAt) {
			t.Fatalf("%s is %s after its window", o.ID, o.Status)
		}
		if o.Status == recharge.Failed && !b.lost[o.ID] {
			t.Fatalf("%s failed and nothing of it went away", o.ID)
		}
		if o.Status == recharge.Expired && !through.After(o.ExpiresAt) {
			t.Fatalf("%s expired before its window closed", o.ID)
		}
	}
}

func shuffled[T any](rng *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func drawRand(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 1))
}

// upTo splits a chain at a time: what is at or before it, and the rest.
func upTo(chain []recharge.Transfer, at time.Time) (before, after []recharge.Transfer) {
	for _, in := range chain {
		if in.BlockTime.After(at) {
			after = append(after, in)
		} else {
			before = append(before, in)
		}
	}
	return before, after
}

// Scanning often and scanning once lead to the same result. What is seen
// between shows, and decides nothing.
func TestSplitsSettleTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rng := drawStory(t), drawRand(t)
		finish := start.Add(s.last)
		once, often := newStoredState(s), newStoredState(s)
		chain, _ := upTo(s.chain, finish)
		once.settle(t, rng, chain, nil, finish)

		looks := rapid.SliceOfN(rapid.IntRange(-60, int(s.last/time.Minute)), 0, 6).Draw(t, "looks")
		slices.Sort(looks)
		rest, head := chain, -60
		for _, m := range append(looks, int(s.last/time.Minute)) {
			through := start.Add(time.Duration(m) * time.Minute)
			var final, seen []recharge.Transfer
			final, rest = upTo(rest, through)
			head = max(head, m+rapid.IntRange(0, 20).Draw(t, "ahead"))
			seen, _ = upTo(rest, start.Add(time.Duration(head)*time.Minute))
			if n := rapid.IntRange(0, len(final)).Draw(t, "in a call before"); n > 0 {
				// The chain is surely known up to just before the last of them.
				often.settle(t, rng, final[:n], slices.Concat(final[n:], seen), final[n-1].BlockTime.Add(-1))
				final = final[n:]
			}
			often.settle(t, rng, final, seen, through)
		}
		if !maps.Equal(once.orders, often.orders) {
			t.Fatalf("orders differ:\n%+v\n%+v", once.orders, often.orders)
		}
		if !maps.Equal(once.transfers, often.transfers) {
			t.Fatalf("transfers differ:\n%+v\n%+v", once.transfers, often.transfers)
		}
	})
}

// A second look at the same chain changes nothing.
func TestLookingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rng := drawStory(t), drawRand(t)
		through := start.Add(time.Duration(rapid.IntRange(-60, 80*60).Draw(t, "through")) * time.Minute)
		final, seen := upTo(s.chain, through)
		b := newStoredState(s)
		b.settle(t, rng, final, seen, through)
		orders, transfers := maps.Clone(b.orders), maps.Clone(b.transfers)
		for range 2 {
			b.settle(t, rng, nil, shownAgain(b), through)
		}
		if !maps.Equal(orders, b.orders) || !maps.Equal(transfers, b.transfers) {
			t.Fatalf("a second look changed\n%+v\n%+v\nto\n%+v\n%+v", orders, transfers, b.orders, b.transfers)
		}
	})
}

func shownAgain(b storedState) []recharge.Transfer {
	var list []recharge.Transfer
	for _, in := range b.transfers {
		if in.State == recharge.Seen {
			list = append(list, in)
		}
	}
	return list
}

// Blocks that are replaced, in any way, never move money: what is final decides
// what an order received, and it is never lost.
func TestReplacedBlocksMoveNoMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, rng := drawStory(t), drawRand(t)
		b := newStoredState(s)
		at := start.Add(-time.Hour)
		rest := s.chain
		for range rapid.IntRange(1, 8).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "wait")) * time.Minute)
			var final []recharge.Transfer
			final, rest = upTo(rest, at)
			for k, in := range b.transfers { // what was seen is gone, unless it shows again
				if in.State == recharge.Seen {
					in.State = recharge.Orphaned
					b.transfers[k] = in
				}
			}
			var seen []recharge.Transfer
			for _, in := range rest {
				if rapid.Bool().Draw(t, "seen") {
					seen = append(seen, in)
				}
			}
			now := slices.Concat(final, seen)
			for k, in := range b.transfers {
				there := slices.ContainsFunc(now, func(n recharge.Transfer) bool { return n.Key == k })
				b.lost[in.OrderID] = b.lost[in.OrderID] || in.State == recharge.Orphaned && !there
			}
			b.settle(t, rng, final, seen, at)
		}
		var given, kept domain.Money
		settled, _ := upTo(s.chain, at)
		for _, in := range settled {
			given += in.Amount
			if b.transfers[in.Key].State != recharge.Final {
				t.Fatalf("%v is not settled", in.Key)
			}
		}
		for _, in := range b.transfers {
			if in.State == recharge.Final {
				kept += in.Amount
			}
		}
		if given != kept {
			t.Fatalf("%s arrived, %s is settled", given, kept)
		}
	})
}

func TestCompareIsAnOrder(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) recharge.Transfer {
		return recharge.Transfer{Key: recharge.Key{Network: "tron-test", TxID: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tx"),
			LogIndex: rapid.IntRange(0, 2).Draw(t, "log")}, Block: rapid.Int64Range(0, 2).Draw(t, "block")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		ab, bc, ac := recharge.Compare(a, b), recharge.Compare(b, c), recharge.Compare(a, c)
		if ab != -recharge.Compare(b, a) || (ab == 0) != (a == b) || ab <= 0 && bc <= 0 && ac > 0 {
			t.Fatalf("%+v %+v %+v: %d %d %d", a, b, c, ab, bc, ac)
		}
		if a.Block != b.Block && ab != cmp.Compare(a.Block, b.Block) {
			t.Fatal("a later block comes first")
		}
	})
}
