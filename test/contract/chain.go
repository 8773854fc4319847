package contract

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// ChainFixture is a chain to which a test can add. A has unlimited money; B and
// every other address starts with nothing.
type ChainFixture struct {
	Chain ports.Chain
	// Send hands in one transfer. It is in a block after the next Advance, in the
	// same one as what was handed in since the last.
	Send func(from, to string, amount domain.Money) recharge.Key
	// Advance adds a number of blocks to the chain.
	Advance func(blocks int)
	A, B    string // valid addresses
}

// Chain holds a ports.Chain to its promises. Open returns a chain of at least
// one final block, on which A and B did nothing yet.
func Chain(t *testing.T, open func(t *testing.T) ChainFixture) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, f ChainFixture)
	}{
		{"its heads never go back and the final one is never ahead", chainHeads},
		{"a transfer is seen before it is final", chainFinality},
		{"a history has both directions from a time on", chainHistory},
		{"a long history is complete", chainLongHistory},
		{"the transfers to addresses are what their histories have", chainIncoming},
		{"above the final head nothing is final", chainAbove},
		{"a block before a time is not later", chainSince},
		{"transfers of one block keep their order", chainOrder},
		{"a balance is the sum of what is final", chainBalance},
		{"what is not on the chain is empty", chainUnknown},
		{"amounts are exact", chainAmounts},
		{"it compares addresses byte by byte", chainValid},
		{"a cancelled call is an error", chainCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func (f ChainFixture) heads(t *testing.T) recharge.Heads {
	t.Helper()
	h, err := f.Chain.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// history reads a history of an address after the heads, as a pass does.
func (f ChainFixture) history(t *testing.T, address string, since time.Time) []recharge.Transfer {
	t.Helper()
	f.heads(t)
	list, err := f.Chain.History(t.Context(), address, since)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (f ChainFixture) transaction(t *testing.T, txID string) []recharge.Transfer {
	t.Helper()
	f.heads(t)
	list, err := f.Chain.Transaction(t.Context(), txID)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mature makes everything so far final.
func (f ChainFixture) mature() { f.Advance(f.Chain.Required() + 2) }

func chainHeads(t *testing.T, f ChainFixture) {
	if f.Chain.Network() == "" || f.Chain.Required() < 1 {
		t.Errorf("the network is %q and %d blocks are required", f.Chain.Network(), f.Chain.Required())
	}
	last := f.heads(t)
	for range 5 {
		f.Advance(3)
		h := f.heads(t)
		if h.Final.Number < last.Final.Number || h.Latest.Number < last.Latest.Number || h.Final.Time.Before(last.Final.Time) {
			t.Errorf("the heads went from %+v to %+v", last, h)
		}
		if h.Latest.Number < last.Latest.Number+3 {
			t.Errorf("three blocks after %d the latest is %d", last.Latest.Number, h.Latest.Number)
		}
		if h.Final.Number > h.Latest.Number || h.Final.Time.After(h.Latest.Time) || h.Final.Number < 1 || h.Final.Time.IsZero() {
			t.Errorf("the heads are %+v", h)
		}
		if h.Final.Time.Location() != time.UTC || h.Latest.Time.Location() != time.UTC {
			t.Errorf("the heads are not in UTC: %+v", h)
		}
		last = h
	}
}

func chainFinality(t *testing.T, f ChainFixture) {
	k := f.Send(f.A, f.B, 10*domain.Dollar)
	f.Advance(1)
	seen := f.transaction(t, k.TxID)
	want := recharge.Transfer{Key: k, From: f.A, To: f.B, Amount: 10 * domain.Dollar, State: recharge.Seen}
	if len(seen) != 1 {
		t.Fatalf("after one block the transaction has %+v", seen)
	}
	want.Block, want.BlockTime = seen[0].Block, seen[0].BlockTime
	if seen[0] != want || want.Block <= f.heads(t).Final.Number || want.BlockTime.IsZero() || want.BlockTime.Location() != time.UTC {
		t.Errorf("after one block the transfer is %+v, want %+v in a block above the final head", seen[0], want)
	}
	if list := f.history(t, f.B, time.Time{}); !slices.Equal(list, seen) {
		t.Errorf("the history has %+v, want %+v", list, seen)
	}
	f.mature()
	want.State = recharge.Final
	if final := f.transaction(t, k.TxID); len(final) != 1 || final[0] != want || want.Block > f.heads(t).Final.Number {
		t.Errorf("later it is %+v, want %+v", final, want)
	}
	if list := f.history(t, f.B, time.Time{}); !slices.Equal(list, []recharge.Transfer{want}) {
		t.Errorf("later the history has %+v, want %+v", list, want)
	}
	if again := f.transaction(t, strings.ToUpper(k.TxID)); len(again) > 1 || len(again) == 1 && again[0] != want {
		t.Errorf("asked for in upper case it is %+v", again)
	}
}

func chainHistory(t *testing.T, f ChainFixture) {
	in := f.Send(f.A, f.B, 5*domain.Dollar)
	f.Advance(4)
	out := f.Send(f.B, f.A, 2*domain.Dollar)
	f.mature()
	list := f.history(t, f.B, time.Time{})
	if len(list) != 2 || list[0].Key != in || list[1].Key != out || list[1].From != f.B {
		t.Fatalf("the history is %+v, want %v and then %v", list, in, out)
	}
	if other := f.history(t, f.A, time.Time{}); !slices.Equal(other, list) {
		t.Errorf("the other side's history is %+v, want %+v", other, list)
	}
	for name, c := range map[string]struct {
		since time.Time
		want  []recharge.Transfer
	}{
		"the time of the first block":          {list[0].BlockTime, list},
		"just after the first block":           {list[0].BlockTime.Add(time.Microsecond), list[1:]},
		"just before the second block":         {list[1].BlockTime.Add(-time.Microsecond), list[1:]},
		"the time of the second block":         {list[1].BlockTime, list[1:]},
		"just after the second block":          {list[1].BlockTime.Add(time.Microsecond), nil},
		"the second block, in a zone of +5:30": {list[1].BlockTime.In(time.FixedZone("", 19800)), list[1:]},
	} {
		if got := f.history(t, f.B, c.since); !slices.Equal(got, c.want) {
			t.Errorf("since %s the history is %+v, want %+v", name, got, c.want)
		}
	}
}

// chainLongHistory reads a history that is longer than any source's page.
func chainLongHistory(t *testing.T, f ChainFixture) {
	sent := map[recharge.Key]bool{}
	for range 9 {
		for range 50 {
			sent[f.Send(f.A, f.B, domain.Dollar)] = true
		}
		f.Advance(1)
	}
	if len(sent) != 450 {
		t.Fatalf("450 transfers have %d keys", len(sent))
	}
	f.mature()
	list := f.history(t, f.B, time.Time{})
	for _, tr := range list {
		if tr.State != recharge.Final || !sent[tr.Key] {
			t.Errorf("%+v is not final, was not sent or comes twice", tr)
		}
		delete(sent, tr.Key)
	}
	if len(sent) > 0 {
		t.Errorf("%d of 450 transfers are missing", len(sent))
	}
	if !slices.IsSortedFunc(list, recharge.Compare) {
		t.Error("the history is not in chain order")
	}
}

func (f ChainFixture) incoming(t *testing.T, to []string, first, last int64) []recharge.Transfer {
	t.Helper()
	list, err := f.Chain.Incoming(t.Context(), to, first, last)
	if err != nil {
		t.Fatalf("blocks %d to %d: %v", first, last, err)
	}
	return list
}

func chainIncoming(t *testing.T, f ChainFixture) {
	start := f.heads(t).Latest.Number
	for range 3 {
		f.Send(f.A, f.B, 3*domain.Dollar)
		f.Send(f.A, f.B, 4*domain.Dollar)
		f.Send(f.B, f.A, domain.Dollar)
		f.Send(f.B, f.B, 1)
		f.Advance(2)
	}
	f.mature()
	h := f.heads(t)
	to := func(address string) []recharge.Transfer {
		return slices.DeleteFunc(f.history(t, address, time.Time{}), func(tr recharge.Transfer) bool { return tr.To != address })
	}
	for _, address := range []string{f.A, f.B} {
		var blocks []recharge.Transfer
		for n := start; n <= h.Final.Number; n++ {
			for _, tr := range f.incoming(t, []string{address}, n, n) {
				if tr.Block != n {
					t.Errorf("block %d has %+v", n, tr)
				}
				blocks = append(blocks, tr)
			}
		}
		want := to(address)
		if len(want) != 3 && len(want) != 9 || !slices.Equal(blocks, want) {
			t.Errorf("to %s the blocks have %+v, the history %+v", address, blocks, want)
		}
		if whole := f.incoming(t, []string{address}, start, h.Final.Number); !slices.Equal(whole, want) {
			t.Errorf("to %s all blocks have %+v, the history %+v", address, whole, want)
		}
	}
	all := append(to(f.A), to(f.B)...)
	slices.SortFunc(all, recharge.Compare)
	if both := f.incoming(t, []string{f.B, f.A}, start, h.Final.Number); !slices.Equal(both, all) {
		t.Errorf("to both there are %+v, want %+v", both, all)
	}
	if none := f.incoming(t, nil, start, h.Final.Number); len(none) != 0 {
		t.Errorf("to no address there are %+v", none)
	}
}

func chainAbove(t *testing.T, f ChainFixture) {
	k := f.Send(f.A, f.B, domain.Dollar)
	f.Advance(1)
	h := f.heads(t)
	list := f.incoming(t, []string{f.B}, h.Final.Number+1, h.Latest.Number)
	if len(list) != 1 || list[0].Key != k || list[0].State != recharge.Seen {
		t.Errorf("above the final head %d there is %+v", h.Final.Number, list)
	}
	if final := f.incoming(t, []string{f.B}, max(h.Final.Number-10, 0), h.Final.Number); len(final) != 0 {
		t.Errorf("up to it there is %+v", final)
	}
	only, err := f.Chain.Final(t.Context())
	if err != nil || only.Number < h.Final.Number {
		t.Errorf("the final head alone is %+v, %v; it was %+v", only, err, h.Final)
	}
}

func chainSince(t *testing.T, f ChainFixture) {
	f.Advance(10)
	f.Send(f.A, f.B, domain.Dollar)
	f.mature()
	made := f.history(t, f.B, time.Time{})[0]
	for _, before := range []time.Duration{0, time.Millisecond, time.Second, time.Minute, 100 * 365 * 24 * time.Hour} {
		n, err := f.Chain.Since(t.Context(), made.BlockTime.Add(-before))
		if err != nil || n < 0 || n > made.Block {
			t.Errorf("%s before block %d is block %d, %v", before, made.Block, n, err)
		}
	}
}

func chainOrder(t *testing.T, f ChainFixture) {
	keys := map[recharge.Key]domain.Money{}
	for i := range 6 { // equal amounts between the same parties, twice each
		amount := domain.Money(1+i/2) * domain.Dollar
		keys[f.Send(f.A, f.B, amount)] = amount
	}
	if len(keys) != 6 {
		t.Fatalf("six transfers have the keys %v", keys)
	}
	f.mature()
	list := f.history(t, f.B, time.Time{})
	if len(list) != 6 {
		t.Fatalf("of six transfers the history has %+v", list)
	}
	for _, tr := range list {
		if tr.Block != list[0].Block || keys[tr.Key] != tr.Amount {
			t.Errorf("%+v is in another block than %d or has another amount than was sent", tr, list[0].Block)
		}
		if of := f.transaction(t, tr.TxID); !slices.Contains(of, tr) {
			t.Errorf("the transaction of %+v has %+v", tr, of)
		}
		delete(keys, tr.Key)
	}
	if !slices.IsSortedFunc(list, recharge.Compare) || len(keys) > 0 {
		t.Errorf("not in chain order or not each once: %+v", list)
	}
	if block := f.incoming(t, []string{f.B}, list[0].Block, list[0].Block); !slices.Equal(block, list) {
		t.Errorf("the block has %+v; want %+v", block, list)
	}
}

func chainBalance(t *testing.T, f ChainFixture) {
	balance := func(want domain.Money) {
		t.Helper()
		f.heads(t)
		if got, err := f.Chain.Balance(t.Context(), f.B); err != nil || got != want {
			t.Errorf("the balance is %s, %v; want %s", got, err, want)
		}
	}
	latest := func(want domain.Money) {
		t.Helper()
		got, err := f.Chain.Balances(t.Context(), []string{f.B, f.B})
		if err != nil || !slices.Equal(got, []domain.Money{want, want}) {
			t.Errorf("at the latest block the balances are %v, %v; want twice %s", got, err, want)
		}
	}
	used := func(want bool) {
		t.Helper()
		if got, err := f.Chain.Used(t.Context(), []string{f.A, f.B}); err != nil || len(got) != 2 || got[1] != want {
			t.Errorf("used are %v, %v; want the second to be %v", got, err, want)
		}
	}
	balance(0)
	used(false)
	f.Send(f.A, f.B, 10*domain.Dollar)
	f.Send(f.A, f.B, 1)
	f.Advance(1)
	balance(0) // seen is not held
	used(true)
	latest(10*domain.Dollar + 1)
	f.mature()
	balance(10*domain.Dollar + 1)
	latest(10*domain.Dollar + 1)
	f.Send(f.B, f.A, 4*domain.Dollar)
	f.mature()
	balance(6*domain.Dollar + 1)
	var sum domain.Money
	for _, tr := range f.history(t, f.B, time.Time{}) {
		switch f.B {
		case tr.To:
			sum += tr.Amount
		case tr.From:
			sum -= tr.Amount
		}
	}
	balance(sum)
}

func chainUnknown(t *testing.T, f ChainFixture) {
	f.Send(f.A, f.A, domain.Dollar)
	f.mature()
	if list := f.history(t, f.B, time.Time{}); len(list) != 0 {
		t.Errorf("the history of an address that did nothing is %+v", list)
	}
	if list := f.history(t, f.A, time.Time{}); len(list) != 1 {
		t.Errorf("a transfer to oneself is in the history %d times", len(list))
	}
	if list := f.transaction(t, strings.Repeat("0f", 32)); len(list) != 0 {
		t.Errorf("an unknown transaction has %+v", list)
	}
}

func chainAmounts(t *testing.T, f ChainFixture) {
	amounts := []domain.Money{1, 9_999_999_999_999, 10_010_000, 16_400_000, 64_100_000, 1 << 53, 1<<53 + 1}
	want := map[recharge.Key]domain.Money{}
	for _, m := range amounts {
		want[f.Send(f.A, f.B, m)] = m
	}
	f.mature()
	list := f.history(t, f.B, time.Time{})
	for _, tr := range list {
		if tr.Amount != want[tr.Key] {
			t.Errorf("%v moved %s, want %s", tr.Key, tr.Amount, want[tr.Key])
		}
	}
	if len(list) != len(amounts) {
		t.Errorf("%d transfers of %d", len(list), len(amounts))
	}
}

func chainValid(t *testing.T, f ChainFixture) {
	if !f.Chain.Valid(f.A) || !f.Chain.Valid(f.B) || f.A == f.B {
		t.Fatalf("%q and %q are not two valid addresses", f.A, f.B)
	}
	last := f.A[len(f.A)-1:]
	for name, s := range map[string]string{
		"nothing": "", "a character short": f.A[:len(f.A)-1], "a space behind": f.A + " ", "a space before": " " + f.A,
		"lower case": strings.ToLower(f.A), "another last letter": f.A[:len(f.A)-1] + cmp.Or(strings.Trim("x", last), "y"),
	} {
		if f.Chain.Valid(s) {
			t.Errorf("%s: %q is valid", name, s)
		}
	}
}

func chainCancelled(t *testing.T, f ChainFixture) {
	k := f.Send(f.A, f.B, domain.Dollar)
	f.mature()
	h := f.heads(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"heads":       func() error { _, err := f.Chain.Heads(ctx); return err },
		"history":     func() error { _, err := f.Chain.History(ctx, f.B, time.Time{}); return err },
		"final":       func() error { _, err := f.Chain.Final(ctx); return err },
		"incoming":    func() error { _, err := f.Chain.Incoming(ctx, []string{f.B}, 0, h.Final.Number); return err },
		"balances":    func() error { _, err := f.Chain.Balances(ctx, []string{f.B}); return err },
		"used":        func() error { _, err := f.Chain.Used(ctx, []string{f.B}); return err },
		"transaction": func() error { _, err := f.Chain.Transaction(ctx, k.TxID); return err },
		"balance":     func() error { _, err := f.Chain.Balance(ctx, f.B); return err },
	} {
		if call() == nil {
			t.Errorf("%s: a cancelled call succeeded", name)
		}
	}
	if list := f.history(t, f.B, time.Time{}); len(list) != 1 {
		t.Errorf("after cancelled calls the history is %+v", list)
	}
}
