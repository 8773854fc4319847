package chain_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/test/fake/trongrid"
)

// An answer of a plain node that is not what was asked for is an error, and leaves no trace.
func TestNodeFailuresProveNothing(t *testing.T) {
	faults := map[string]trongrid.Fault{
		"429": trongrid.TooMany, "503 and HTML": trongrid.Unavailable, "404": trongrid.NotFound, "200 and an error": trongrid.ErrorText,
		"200 and HTML": trongrid.HTML, "null": trongrid.Text(200, "null"), "nothing": trongrid.Text(200, ""), "an object": trongrid.Text(200, "{}"),
		"a list": trongrid.Text(200, "[]"), "a refusal": trongrid.Text(200, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no"}}`),
		"refusals":         trongrid.Text(200, `[{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no"}},{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}]`),
		"another's answer": trongrid.Text(200, `{"jsonrpc":"2.0","id":7,"result":[]}`), "twice one": trongrid.Text(200, `[{"id":0,"result":null},{"id":0,"result":null}]`),
		"a wrong type": trongrid.Text(200, `{"jsonrpc":"2.0","id":0,"result":7}`),
	}
	for method, call := range map[string]func(c *chain.Tron, id string, block int64) (any, error){
		"eth_getBlockByNumber": func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Heads(t.Context()) },
		"eth_getLogs": func(c *chain.Tron, _ string, n int64) (any, error) {
			return c.Incoming(t.Context(), []string{ours}, n, n)
		},
		"eth_getTransactionReceipt": func(c *chain.Tron, id string, _ int64) (any, error) { return c.Transaction(t.Context(), id) },
		"eth_blockNumber":           func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Balance(t.Context(), ours) },
		"eth_call":                  func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Balances(t.Context(), []string{ours}) },
	} {
		t.Run(method, func(t *testing.T) {
			grid := trongrid.StartAt(t, 1000)
			id := grid.Send(payer, ours, usdt)
			grid.Mine(1)
			block, _ := grid.Head()
			grid.Mine(trongrid.Gap)
			for name, fault := range faults {
				c := tron(t, grid, node, func(cfg *chain.TronConfig) { cfg.Suspended = 1 })
				if _, err := c.Heads(t.Context()); err != nil {
					t.Fatal(err)
				}
				grid.Fail("/jsonrpc "+method, fault, 1)
				if got, err := call(c, id, block); err == nil {
					t.Errorf("%s: the answer was %+v", name, got)
				}
				grid.Heal()
				if _, err := call(c, id, block); err != nil {
					t.Errorf("after %s: %v", name, err)
				}
			}
		})
	}
}

// A node executes calls on its latest block alone: what is not final is taken back.
func TestNodeBalanceIsTheFinalOne(t *testing.T) {
	grid := trongrid.StartAt(t, 1000)
	c := tron(t, grid, node)
	balance := func(want int64) {
		t.Helper()
		if _, err := c.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Balance(t.Context(), ours); err != nil || int64(got) != want {
			t.Errorf("the balance is %d, %v; want %d", got, err, want)
		}
	}
	grid.Send(payer, ours, 100)
	grid.Mine(1 + trongrid.Gap)
	grid.Send(payer, ours, 7)
	grid.Send(ours, payer, 30)
	grid.Send(ours, ours, 5)
	grid.Mine(1)
	balance(100)
	grid.Mine(trongrid.Gap)
	balance(77)
}

// A receipt without the time of its block, as older nodes have it.
func TestNodeWithoutTheTimeOfALog(t *testing.T) {
	grid := trongrid.StartAt(t, 1000)
	c := tron(t, grid, node)
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1)
	_, at := grid.Head()
	grid.Mine(trongrid.Gap)
	grid.Fail("/jsonrpc eth_getTransactionReceipt", trongrid.Without("blockTimestamp"), -1)
	list, err := c.Transaction(t.Context(), id)
	if err != nil || len(list) != 1 || !list[0].BlockTime.Equal(at.Truncate(time.Second)) {
		t.Errorf("the transaction has %+v, %v", list, err)
	}
	if list, err := c.Transaction(t.Context(), strings.Repeat("0f", 32)); err != nil || len(list) != 0 {
		t.Errorf("an unknown one has %+v, %v", list, err)
	}
}
