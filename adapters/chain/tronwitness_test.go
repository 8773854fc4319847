package chain_test

import (
	"bytes"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"agentproxy/adapters/chain"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake/trongrid"
)

// witnessed reads grid, and second for transfers above one USDT.
func witnessed(t *testing.T, grid, second *trongrid.Server) *chain.Tron {
	return tron(t, grid, func(cfg *chain.TronConfig) {
		cfg.WitnessURL, cfg.WitnessAbove = second.URL, domain.Money(usdt)
	})
}

// sameOn sends a transfer on both chains and makes it final on the first, and on the second if final is true.
func sameOn(grid, second *trongrid.Server, amount, other int64, final bool) string {
	tx := func(amount int64) trongrid.Tx {
		return trongrid.Tx{ID: strings.Repeat("ab", 32), Logs: []trongrid.Log{
			trongrid.Transfer(trongrid.USDT, payer, ours, big.NewInt(amount))}}
	}
	id := grid.Submit(tx(amount))
	grid.Mine(1 + trongrid.Gap)
	if other >= 0 {
		second.Submit(tx(other))
		second.Mine(1)
	}
	if final {
		second.Mine(trongrid.Gap)
	}
	return id
}

// Small transfers need no second node up to ten times its amount in an hour.
func TestManySmallTransfersNeedTheSecondNode(t *testing.T) {
	t.Parallel()
	grid, second := trongrid.Start(t), trongrid.Start(t)
	var ids []string
	for range 11 {
		ids = append(ids, grid.Send(payer, ours, usdt))
		grid.Mine(1)
	}
	grid.Mine(trongrid.Gap)
	reader := witnessed(t, grid, second)
	if _, err := reader.Heads(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if _, err := reader.Transaction(t.Context(), id); (err == nil) != (i < 10) {
			t.Errorf("transfer %d: %v", i+1, err)
		}
	}
	if _, err := reader.Transaction(t.Context(), ids[0]); err != nil {
		t.Errorf("one that was final is not any more: %v", err)
	}
}

func TestALargeTransferNeedsTheSecondNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amount, other int64 // other -1: the second node has no such transaction
		final, want   bool
	}{
		"both have it":                 {5 * usdt, 5 * usdt, true, true},
		"the second has nothing":       {5 * usdt, -1, true, false},
		"the second has less":          {5 * usdt, 4 * usdt, true, false},
		"it is not final there":        {5 * usdt, 5 * usdt, false, false},
		"the limit is not passed":      {usdt, -1, true, true},
		"just above the limit, absent": {usdt + 1, -1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grid, second := trongrid.Start(t), trongrid.Start(t)
			id := sameOn(grid, second, c.amount, c.other, c.final)
			reader := witnessed(t, grid, second)
			if _, err := reader.Heads(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := reader.Transaction(t.Context(), id)
			if got := err == nil && len(list) == 1 && list[0].State == recharge.Final; got != c.want || !c.want && list != nil {
				t.Errorf("the transfers are %+v, %v", list, err)
			}
			block, _ := grid.Head()
			list, err = reader.Incoming(t.Context(), []string{ours}, block-100, block)
			if got := err == nil && len(list) == 1; got != c.want {
				t.Errorf("incoming are %+v, %v", list, err)
			}
		})
	}
}

func TestASecondNodeThatIsAwayDelaysALargeTransfer(t *testing.T) {
	t.Parallel()
	grid, second := trongrid.Start(t), trongrid.Start(t)
	id := sameOn(grid, second, 5*usdt, 5*usdt, true)
	reader := witnessed(t, grid, second)
	second.Fail("/jsonrpc", trongrid.NotFound, 1)
	if list, err := reader.Transaction(t.Context(), id); err == nil || list != nil {
		t.Errorf("the transfers are %+v, %v", list, err)
	}
	second.Heal()
	if list, err := reader.Transaction(t.Context(), id); err != nil || len(list) != 1 || list[0].State != recharge.Final {
		t.Errorf("afterwards they are %+v, %v", list, err)
	}
	if _, err := chain.NewTron(chain.TronConfig{Network: "tron-mainnet", WitnessURL: "http://203.0.113.7"}); err == nil {
		t.Error("a second node over http is accepted")
	}
}

// rename answers as a server does, with another id in place of one.
type rename struct {
	*trongrid.Server
	from, to string
}

func (s rename) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.Server.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	body = bytes.ReplaceAll(body, []byte(s.from), []byte(s.to))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, err
}

func TestTheReceiptOfAnotherTransactionIsNamed(t *testing.T) {
	t.Parallel()
	grid := trongrid.Start(t)
	id, other := sameOn(grid, grid, 5*usdt, -1, false), strings.Repeat("cd", 32)
	reader := tron(t, grid, func(cfg *chain.TronConfig) {
		cfg.Client = &http.Client{Transport: rename{grid, id, other}}
	})
	list, err := reader.Transaction(t.Context(), id)
	if err == nil || list != nil || !strings.HasSuffix(err.Error(), "is not the receipt of "+id+": it is that of "+other) {
		t.Errorf("the transfers are %+v, %v", list, err)
	}
}
