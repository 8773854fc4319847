package chain_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake/trongrid"
)

// eachSource runs a test on TronGrid and on a plain node.
func eachSource(t *testing.T, test func(t *testing.T, grid *trongrid.Server, c *chain.Tron)) {
	for name, source := range map[string]func(*chain.TronConfig){"trongrid": func(*chain.TronConfig) {}, "jsonrpc": node} {
		t.Run(name, func(t *testing.T) {
			grid := trongrid.StartAt(t, 10_000)
			test(t, grid, tron(t, grid, source))
		})
	}
}

func incoming(t *testing.T, c *chain.Tron, to []string, first, last int64) []recharge.Transfer {
	t.Helper()
	if _, err := c.Heads(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := c.Incoming(t.Context(), to, first, last)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func calls(grid *trongrid.Server, method string) (n int) {
	for _, c := range grid.Calls() {
		if slices.Contains(c.Methods, method) {
			n++
		}
	}
	return n
}

// The index of a log counts in its block; that of a transfer is its position in the receipt.
func TestTronLogsAreHints(t *testing.T) {
	eachSource(t, func(t *testing.T, grid *trongrid.Server, c *chain.Tron) {
		grid.Send(payer, stranger, 5)
		grid.Send(payer, stranger, 5)
		id := grid.Send(payer, ours, usdt)
		zero := grid.Send(payer, ours, 0)
		grid.Mine(1)
		number, _ := grid.Head()
		seen := incoming(t, c, []string{ours}, number, number)
		if len(seen) != 1 || seen[0].State != recharge.Seen || seen[0].LogIndex != 0 || seen[0].TxID != id {
			t.Fatalf("the block has %+v", seen)
		}
		grid.Forget()
		for range 5 {
			incoming(t, c, []string{ours}, number, number)
		}
		if n := count(grid, "/wallet/gettransactioninfobyid") + calls(grid, "eth_getTransactionReceipt"); n > 0 {
			t.Errorf("what is not final yet was looked up %d times more", n)
		}
		grid.Mine(trongrid.Gap)
		final := incoming(t, c, []string{ours}, number, number)
		if len(final) != 1 || final[0].State != recharge.Final || final[0].TxID == zero {
			t.Errorf("later the block has %+v", final)
		}
	})
}

// A transaction that is in another block after a fork is looked up again.
func TestTronLogsAfterAFork(t *testing.T) {
	eachSource(t, func(t *testing.T, grid *trongrid.Server, c *chain.Tron) {
		id := grid.Send(payer, ours, usdt)
		grid.Mine(1)
		first, _ := grid.Head()
		if list := incoming(t, c, []string{ours}, first, first+50); len(list) != 1 || list[0].Block != first {
			t.Fatalf("at first there is %+v", list)
		}
		for _, tx := range grid.Reorg(1) {
			grid.Submit(tx)
		}
		grid.Mine(3)
		list := incoming(t, c, []string{ours}, first, first+50)
		if len(list) != 1 || list[0].Block == first || list[0].TxID != id {
			t.Errorf("after the fork there is %+v", list)
		}
	})
}

// A receipt that a node on a fork has, or has not, never makes a transfer final.
func TestTronLogWithoutAReceipt(t *testing.T) {
	eachSource(t, func(t *testing.T, grid *trongrid.Server, c *chain.Tron) {
		grid.Send(payer, ours, usdt)
		grid.Mine(1)
		number, _ := grid.Head()
		grid.Mine(trongrid.Gap)
		if _, err := c.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		nothing := trongrid.Fault(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/jsonrpc") {
				trongrid.Text(200, `[{"jsonrpc":"2.0","id":0,"result":null},{"jsonrpc":"2.0","id":1,"result":{"number":"0x1","timestamp":"0x1"}}]`)(w, r, next)
				return
			}
			trongrid.Nothing(w, r, next)
		})
		for _, path := range []string{"/walletsolidity/gettransactioninfobyid", "/wallet/gettransactioninfobyid", "/jsonrpc eth_getTransactionReceipt"} {
			grid.Fail(path, nothing, -1)
		}
		if list, err := c.Incoming(t.Context(), []string{ours}, number, number); err == nil {
			t.Errorf("without a receipt there is %+v", list)
		}
		grid.Mine(300)
		if _, err := c.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, err := c.Incoming(t.Context(), []string{ours}, number, number); err != nil || len(list) > 0 {
			t.Errorf("a log that never gets a receipt: %+v, %v", list, err)
		}
	})
}

// A thousand addresses are one call, and so are 5,000 blocks; an answer that would be
// too long is asked for in parts.
func TestTronLogRanges(t *testing.T) {
	eachSource(t, func(t *testing.T, grid *trongrid.Server, c *chain.Tron) {
		var to []string
		for n := range 2500 {
			to = append(to, trongrid.Address(100+n))
		}
		first, _ := grid.Head()
		for n := range 60 {
			grid.Send(payer, to[n*41], usdt)
			grid.Send(payer, stranger, usdt)
			grid.Mine(200)
		}
		last, _ := grid.Head()
		grid.Mine(trongrid.Gap)
		grid.Forget()
		if list := incoming(t, c, to, first, last); len(list) != 60 || !slices.IsSortedFunc(list, recharge.Compare) {
			t.Errorf("there are %d transfers, want 60 in order", len(list))
		}
		if n := calls(grid, "eth_getLogs"); n != 9 { // three ranges of three thousands
			t.Errorf("%d calls read the logs, want 9", n)
		}
		paid, _ := grid.Head()
		paid++
		for range 4 {
			grid.Send(payer, to[7], usdt)
			grid.Send(payer, to[8], usdt)
		}
		grid.Mine(1 + trongrid.Gap)
		grid.MostLogs(4)
		if list := incoming(t, c, to, first, paid); len(list) != 68 {
			t.Errorf("in parts there are %d transfers, want 68", len(list))
		}
		grid.MostLogs(3)
		if _, err := c.Incoming(t.Context(), to, paid, paid); err == nil {
			t.Error("what one address has in one block cannot be split")
		}
	})
}

// The quota of the day slows calls down to one a second, and no call fails by it.
func TestTronGoesOnWithoutAQuota(t *testing.T) {
	for name, status := range map[string]int{"403": 403, "503": 503} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
				c := open(func(cfg *chain.TronConfig) { cfg.APIKey = "k" })
				grid.Quota(1000, status)
				grid.Spend()
				begin := time.Now()
				for range 30 {
					if _, err := c.Heads(t.Context()); err != nil {
						t.Fatalf("after %s: %v", time.Since(begin), err)
					}
				}
				if took := time.Since(begin); took < 59*time.Second || took > 75*time.Second {
					t.Errorf("60 calls took %s", took)
				}
				time.Sleep(24 * time.Hour)
				begin = time.Now()
				for range 8 {
					if _, err := c.Heads(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("a day later 16 calls take %s", took)
				}
			})
		})
	}
}

// A day has no more calls than the plan, however many are asked for.
func TestTronCallsOfADay(t *testing.T) {
	bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
		c := open(func(cfg *chain.TronConfig) { cfg.APIKey = "k" })
		for begin := time.Now(); time.Since(begin) < 24*time.Hour; {
			if _, err := c.Final(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(grid, "/"); n < 43_000 || n > 45_000 {
			t.Errorf("a day has %d calls", n)
		}
	})
}

func TestTronBalancesAreReadByTheHundred(t *testing.T) {
	eachSource(t, func(t *testing.T, grid *trongrid.Server, c *chain.Tron) {
		var of []string
		for n := range 250 {
			of = append(of, trongrid.Address(100+n))
		}
		grid.Send(payer, of[0], 7)
		grid.Send(payer, of[249], 9)
		grid.Mine(1)
		list, err := c.Balances(t.Context(), of)
		if err != nil || len(list) != 250 || list[0] != 7 || list[249] != 9 || list[100] != 0 {
			t.Errorf("the balances are %v, %v", list, err)
		}
		if n := count(grid, "/jsonrpc"); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		grid.Fail("/jsonrpc", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			trongrid.Text(200, `[{"jsonrpc":"2.0","id":0,"result":"0x01"}]`)(w, r, next)
		}, 1)
		if list, err := c.Balances(t.Context(), of[:2]); err == nil {
			t.Errorf("half an answer is %v", list)
		}
		grid.Fail("/jsonrpc", trongrid.Text(200, `[{"jsonrpc":"2.0","id":0,"result":"0x01"}]`), 1)
		if list, err := c.Balances(t.Context(), of[:1]); err == nil {
			t.Errorf("a balance that is no word is %v", list)
		}
	})
}
