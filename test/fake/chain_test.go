package fake_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake"
)

const usdt = domain.Dollar

func history(t *testing.T, c *fake.Chain, address string) []recharge.Transfer {
	t.Helper()
	list, err := c.History(context.Background(), address, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func keysOf(list []recharge.Transfer) []recharge.Key {
	var keys []recharge.Key
	for _, t := range list {
		keys = append(keys, t.Key)
	}
	return keys
}

func TestChainMinesAndBecomesFinal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fake.NewChain("tron-test", fake.Start)
	from, to := fake.ChainAddress(1), fake.ChainAddress(2)
	key := c.Send(from, to, 5*usdt)
	if got := history(t, c, to); len(got) != 0 {
		t.Fatalf("before a block there is %v", got)
	}
	c.Mine(1)
	if got := c.Now(); !got.Equal(fake.Start.Add(fake.BlockEvery)) {
		t.Errorf("the block is of %s", got)
	}
	before, err := c.Heads(ctx)
	if err != nil || before.Latest.Number-before.Final.Number != fake.FinalBehind {
		t.Fatalf("heads %v, %v", before, err)
	}
	for i := range fake.FinalBehind + 1 {
		want := recharge.Seen
		if i == fake.FinalBehind {
			want = recharge.Final
		}
		for _, address := range []string{from, to} {
			got := history(t, c, address)
			if len(got) != 1 || got[0].Key != key || got[0].State != want || got[0].Block != before.Latest.Number ||
				!got[0].BlockTime.Equal(before.Latest.Time) || got[0].Amount != 5*usdt || got[0].To != to || got[0].From != from {
				t.Fatalf("after %d blocks on top the history is %+v", i, got)
			}
		}
		balance, err := c.Balance(ctx, to)
		if err != nil || (balance == 5*usdt) != (want == recharge.Final) || (len(c.Finals()) == 1) != (want == recharge.Final) {
			t.Errorf("after %d blocks on top the balance is %s, %v", i, balance, err)
		}
		block, err := c.Incoming(ctx, []string{from, to}, before.Latest.Number, before.Latest.Number)
		if err != nil || len(block) != 1 || block[0].State != want {
			t.Errorf("after %d blocks on top the block has %+v, %v", i, block, err)
		}
		c.Mine(1)
	}
	if got, err := c.History(ctx, to, before.Latest.Time.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("a history since later is %v, %v", got, err)
	}
	if got, err := c.History(ctx, to, before.Latest.Time); err != nil || len(got) != 1 {
		t.Errorf("a history since the block is %v, %v", got, err)
	}
}

func TestChainShowsOnlyWhatCounts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fake.NewChain("tron-test", fake.Start)
	from, to := fake.ChainAddress(1), fake.ChainAddress(2)
	keys := c.SendTx(
		fake.Move{From: from, To: to, Amount: usdt},
		fake.Move{From: from, To: to, Amount: usdt, Foreign: true},
		fake.Move{From: from, To: to, Amount: usdt, Failed: true},
		fake.Move{From: from, To: to},
		fake.Move{From: from, To: to, Amount: usdt},
		fake.Move{From: from, To: to, Absurd: true},
	)
	c.Mine(1 + fake.FinalBehind)
	block, err := c.Incoming(ctx, []string{to}, 1001, 1001)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := c.Transaction(ctx, keys[0].TxID)
	if err != nil {
		t.Fatal(err)
	}
	want := []recharge.Key{keys[0], keys[4], keys[5]}
	for _, list := range [][]recharge.Transfer{block, tx, history(t, c, to)} {
		if !slices.Equal(keysOf(list), want) || list[2].State != recharge.Ignored || list[2].Amount != 0 || list[2].Note == "" {
			t.Errorf("shown is %+v", list)
		}
	}
	if got := keysOf(c.Finals()); !slices.Equal(got, want[:2]) {
		t.Errorf("the truth is %v", got)
	}
	if got, err := c.Balance(ctx, to); err != nil || got != 2*usdt {
		t.Errorf("the balance is %s, %v", got, err)
	}
}

func TestChainForks(t *testing.T) {
	t.Parallel()
	c := fake.NewChain("tron-test", fake.Start)
	to := fake.ChainAddress(2)
	first := c.Send(fake.ChainAddress(1), to, usdt)
	c.Mine(fake.FinalBehind)
	second := c.Send(fake.ChainAddress(1), to, usdt)
	c.Mine(1) // the first is final now
	if got := c.Fork(100, true); !slices.Equal(got, []recharge.Key{second}) {
		t.Fatalf("the fork took %v", got)
	}
	if got := keysOf(history(t, c, to)); !slices.Equal(got, []recharge.Key{first}) {
		t.Errorf("after the fork there is %v", got)
	}
	c.Mine(1)
	if got := history(t, c, to); len(got) != 2 || got[1].Key != second || got[1].Block != 1000+fake.FinalBehind+2 {
		t.Errorf("mined again is %+v", got)
	}
	c.Fork(1, false)
	c.Mine(50)
	if got := keysOf(history(t, c, to)); !slices.Equal(got, []recharge.Key{first}) {
		t.Errorf("what was taken away is back: %v", got)
	}
}

func TestChainLies(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	c := fake.NewChain("tron-test", fake.Start)
	to := fake.ChainAddress(2)
	key := c.Send(fake.ChainAddress(1), to, usdt)
	c.Mine(1)
	c.Hide(key, 2)
	for i, want := range []int{0, 0, 1} {
		if got := history(t, c, to); len(got) != want {
			t.Errorf("read %d shows %v", i, got)
		}
	}
	broken := errors.New("broken")
	c.OnCall(func(call string) error {
		if call == "balance" {
			return broken
		}
		c.Mine(1)
		return nil
	})
	if _, err := c.Balance(ctx, to); !errors.Is(err, broken) {
		t.Errorf("the balance is %v", err)
	}
	h, err := c.Heads(ctx)
	if err != nil || h.Latest.Number != 1002 {
		t.Errorf("heads %v, %v", h, err)
	}
	cancel()
	if _, err := c.Heads(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled heads are %v", err)
	}
	if got := c.Calls(); got["history"] != 3 || got["balance"] != 1 || got["heads"] != 2 {
		t.Errorf("the calls are %v", got)
	}
}

func TestChainAddresses(t *testing.T) {
	t.Parallel()
	c := fake.NewChain("tron-test", fake.Start)
	keys := fake.NewKeys("aaaa")
	one, err := keys.Address(1)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := fake.NewKeys("aaaa").Address(1)
	two, _ := keys.Address(2)
	other, _ := fake.NewKeys("bbbb").Address(1)
	if one != again || one == two || one == other || keys.Fingerprint() != "aaaa" {
		t.Error("derived addresses are not the same for the same index and key alone")
	}
	if _, err := keys.Address(1 << 31); err == nil {
		t.Error("an index that does not exist has an address")
	}
	for address, want := range map[string]bool{
		one: true, fake.ChainAddress(7): true, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t": true,
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T": false, "": false, "T": false, one[1:]: false, " " + one: false,
		"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa": false,
	} {
		if got := c.Valid(address); got != want || want && address[0] != 'T' {
			t.Errorf("Valid(%q) is %t", address, got)
		}
	}
}

func TestChainMayBeShared(t *testing.T) {
	t.Parallel()
	c := fake.NewChain("tron-test", fake.Start)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				k := c.Send(fake.ChainAddress(1), fake.ChainAddress(2), usdt)
				c.Hide(k, 1)
				c.Mine(1)
				c.Fork(1, true)
				_, _ = c.History(context.Background(), fake.ChainAddress(2), time.Time{})
			}
		})
	}
	wg.Wait()
	c.Mine(1 + fake.FinalBehind)
	if got := len(c.Finals()); got != 200 {
		t.Errorf("%d transfers are final, want 200", got)
	}
}
