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

func TestTronContract(t *testing.T) {
	contract.Chain(t, func(t *testing.T) contract.ChainFixture {
		grid := trongrid.Start(t)
		c := tron(t, grid)
		return contract.ChainFixture{Chain: c, A: trongrid.Address(1), B: trongrid.Address(2), Advance: grid.Mine,
			Send: func(from, to string, amount domain.Money) recharge.Key {
				return recharge.Key{Network: c.Network(), TxID: grid.Send(from, to, int64(amount))}
			}}
	})
}
