package chain_test

import (
	"testing"

	"agentproxy/adapters/chain"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/contract"
	"agentproxy/test/fake/trongrid"
)

// tron reads a fake TronGrid without keeping to a plan, and tries again soon.
func tron(t *testing.T, grid *trongrid.Server, changes ...func(*chain.TronConfig)) *chain.Tron {
	t.Helper()
	cfg := chain.TronConfig{Network: "tron-mainnet", BaseURL: grid.URL, PerSecond: 1e6, Pause: 1}
	for _, change := range changes {
		change(&cfg)
	}
	c, err := chain.NewTron(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// node makes the source a plain node.
func node(cfg *chain.TronConfig) { cfg.JSONRPC = true }

func TestTronContract(t *testing.T) {
	for name, source := range map[string]func(*chain.TronConfig){"trongrid": func(*chain.TronConfig) {}, "jsonrpc": node} {
		t.Run(name, func(t *testing.T) { tronContract(t, source) })
	}
}

func tronContract(t *testing.T, source func(*chain.TronConfig)) {
	contract.Chain(t, func(t *testing.T) contract.ChainFixture {
		grid := trongrid.StartAt(t, 1000) // without an index the history of all blocks is read
		c := tron(t, grid, source)
		t.Cleanup(func() {
			for _, call := range grid.Calls() {
				if c := new(chain.TronConfig); call.Path != "/jsonrpc" {
					if source(c); c.JSONRPC {
						t.Errorf("a plain node is called at %s", call.Path)
					}
				}
			}
		})
		return contract.ChainFixture{Chain: c, A: trongrid.Address(1), B: trongrid.Address(2), Advance: grid.Mine,
			Send: func(from, to string, amount domain.Money) recharge.Key {
				return recharge.Key{Network: c.Network(), TxID: grid.Send(from, to, int64(amount))}
			}}
	})
}
