package chain_test

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake/trongrid"
)

var (
	payer    = trongrid.Address(1)
	ours     = trongrid.Address(2)
	stranger = trongrid.Address(3)
	foreign  = trongrid.Address(4) // a contract that calls itself USDT too
)

const usdt = int64(domain.Dollar)

// pass reads the heads and then a history, as the watcher does.
func pass(t *testing.T, c *chain.Tron) ([]recharge.Transfer, error) {
	t.Helper()
	if _, err := c.Heads(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.History(t.Context(), ours, time.Time{})
}

func history(t *testing.T, c *chain.Tron) []recharge.Transfer {
	t.Helper()
	list, err := pass(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// finals are the transactions of the final transfers.
func finals(list []recharge.Transfer) []string {
	var ids []string
	for _, tr := range list {
		if tr.State == recharge.Final {
			ids = append(ids, tr.TxID)
		}
	}
	return ids
}

// count is how many calls had a path with a prefix.
func count(grid *trongrid.Server, prefix string) (n int) {
	for _, c := range grid.Calls() {
		if strings.HasPrefix(c.Path, prefix) {
			n++
		}
	}
	return n
}

const (
	indexPath   = "/v1/accounts/"
	solidByID   = "/walletsolidity/gettransactioninfobyid"
	byID        = "/wallet/gettransactioninfobyid"
	logsPath    = "/jsonrpc eth_getLogs"
	solidHead   = "/walletsolidity/getnowblock"
	latestHead  = "/wallet/getnowblock"
	callPath    = "/jsonrpc eth_call"
	balancePath = "/walletsolidity/triggerconstantcontract"
)

func TestTronTakesOnlyWhatMovedTheToken(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	transfer := func(token string, amount int64) trongrid.Log {
		return trongrid.Transfer(token, payer, ours, big.NewInt(amount))
	}
	good := transfer(trongrid.USDT, usdt)
	edit := func(change func(*trongrid.Log)) trongrid.Log {
		l := good
		l.Topics = slices.Clone(l.Topics)
		change(&l)
		return l
	}
	huge := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	const ignored = recharge.Ignored
	// Forms that receipts have in some answers, and by which no node finds a log.
	unlogged := map[string]bool{"the contract with its prefix": true, "a party with its prefix": true}
	for _, test := range []struct {
		name string
		tx   trongrid.Tx
		want []int // log indexes of what is returned
		as   recharge.State
	}{
		{"a transfer", trongrid.Tx{Logs: []trongrid.Log{good}}, []int{0}, recharge.Final},
		{"several of one transaction, equal ones too", trongrid.Tx{Logs: []trongrid.Log{transfer(foreign, 1), good, good,
			trongrid.Approval(trongrid.USDT, payer, ours, huge), transfer(trongrid.USDT, 2*usdt)}}, []int{1, 2, 4}, recharge.Final},
		{"one that another contract made", trongrid.Tx{Logs: []trongrid.Log{{Address: strings.Repeat("ab", 20)}, good}}, []int{1}, recharge.Final},
		{"the contract with its prefix", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Address = "41" + l.Address })}}, []int{0}, recharge.Final},
		{"digits in upper case", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) {
			l.Address, l.Data, l.Topics[0] = strings.ToUpper(l.Address), strings.ToUpper(l.Data), strings.ToUpper(l.Topics[0])
		})}}, []int{0}, recharge.Final},
		{"a party with its prefix", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics[2] = l.Topics[2][:22] + "41" + l.Topics[2][24:] })}}, []int{0}, recharge.Final},
		{"an approval of all there is", trongrid.Tx{Logs: []trongrid.Log{trongrid.Approval(trongrid.USDT, payer, ours, huge)}}, nil, ""},
		{"a foreign token of the same name and decimals", trongrid.Tx{Logs: []trongrid.Log{transfer(foreign, usdt)}}, nil, ""},
		{"a call that reverted", trongrid.Tx{Logs: []trongrid.Log{good}, Result: "REVERT"}, nil, ""},
		{"a call that ran out of energy", trongrid.Tx{Logs: []trongrid.Log{good}, Result: "OUT_OF_ENERGY"}, nil, ""},
		{"a result that is spelled as the default is", trongrid.Tx{Logs: []trongrid.Log{good}, Result: "SUCESS"}, nil, ""},
		{"a transaction that failed", trongrid.Tx{Logs: []trongrid.Log{good}, Failed: true}, nil, ""},
		{"nothing", trongrid.Tx{Logs: []trongrid.Log{transfer(trongrid.USDT, 0)}}, nil, ""},
		{"nothing beside something", trongrid.Tx{Logs: []trongrid.Log{transfer(trongrid.USDT, 0), good}}, []int{1}, recharge.Final},
		{"more than there can be", trongrid.Tx{Logs: []trongrid.Log{trongrid.Transfer(trongrid.USDT, payer, ours, huge)}}, []int{0}, ignored},
		{"one more than an int64", trongrid.Tx{Logs: []trongrid.Log{trongrid.Transfer(trongrid.USDT, payer, ours, new(big.Int).Lsh(big.NewInt(1), 63))}}, []int{0}, ignored},
		{"one more than 64 bits", trongrid.Tx{Logs: []trongrid.Log{trongrid.Transfer(trongrid.USDT, payer, ours, new(big.Int).Lsh(big.NewInt(1), 64))}}, []int{0}, ignored},
		{"an amount that is cut", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Data = l.Data[2:] })}}, []int{0}, ignored},
		{"no amount", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Data = "" })}}, []int{0}, ignored},
		{"an amount of other letters", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Data = strings.Repeat("zz", 32) })}}, []int{0}, ignored},
		{"no topics", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics = nil }), good}}, []int{1}, recharge.Final},
		{"too few topics", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics = l.Topics[:2] }), good}}, []int{1}, recharge.Final},
		{"too many topics", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics = append(l.Topics, l.Data) }), good}}, []int{1}, recharge.Final},
		{"a topic that is cut", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics[2] = l.Topics[2][:20] }), good}}, []int{1}, recharge.Final},
		{"a topic that is no address", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Topics[2] = "01" + l.Topics[2][2:] }), good}}, []int{1}, recharge.Final},
		{"an address that is cut", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.Address = l.Address[:10] }), good}}, []int{1}, recharge.Final},
		{"no token info in the index", trongrid.Tx{Logs: []trongrid.Log{edit(func(l *trongrid.Log) { l.NoTokenInfo = true }), good}}, []int{0, 1}, recharge.Final},
		{"a foreign token without token info", trongrid.Tx{Logs: []trongrid.Log{{Address: strings.Repeat("ab", 20), Topics: good.Topics, Data: good.Data, NoTokenInfo: true}}}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := grid.Submit(test.tx)
			grid.Mine(1)
			number, _ := grid.Head()
			grid.Mine(trongrid.Gap)
			list, err := pass(t, c)
			if err != nil {
				t.Fatal(err)
			}
			of := slices.DeleteFunc(list, func(tr recharge.Transfer) bool { return tr.TxID != id })
			alone, err := c.Transaction(t.Context(), id)
			if err != nil || !slices.Equal(alone, of) {
				t.Errorf("the transaction has %+v, %v; the history %+v", alone, err, of)
			}
			block, err := c.Incoming(t.Context(), []string{ours}, number, number)
			if err != nil || !slices.Equal(block, of) && !unlogged[test.name] {
				t.Errorf("the block has %+v, %v; the history %+v", block, err, of)
			}
			var got []int
			for _, tr := range of {
				got = append(got, tr.LogIndex)
				if tr.State != test.as || tr.From != payer || tr.To != ours || (tr.State == ignored) != (tr.Amount == 0 && tr.Note != "") {
					t.Errorf("%+v is not from the payer to us and %s", tr, test.as)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it has the logs %v, want %v", got, test.want)
			}
		})
	}
}

func TestTronReorganisation(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	id := grid.Send(payer, ours, usdt)
	grid.Mine(3)
	before := history(t, c)
	if len(before) != 1 || before[0].State != recharge.Seen {
		t.Fatalf("it is seen as %+v", before)
	}
	gone := grid.Reorg(3)
	if list := history(t, c); len(list) != 0 {
		t.Errorf("without its block the history has %+v", list)
	}
	if list, err := c.Transaction(t.Context(), id); err != nil || len(list) != 0 {
		t.Errorf("without its block the transaction has %+v, %v", list, err)
	}
	if len(gone) != 1 || gone[0].ID != id {
		t.Fatalf("the fork took %+v", gone)
	}
	grid.Submit(gone[0])
	grid.Mine(1 + trongrid.Gap)
	after := history(t, c)
	if len(after) != 1 || after[0].State != recharge.Final || after[0].Key != before[0].Key || after[0].Block == before[0].Block {
		t.Errorf("in another block it is %+v, was %+v", after, before)
	}
}

func TestTronCountsNoConfirmations(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	id := grid.Send(payer, ours, usdt)
	grid.Stall(true) // producers are missing
	grid.Mine(100)
	if list := history(t, c); len(list) != 1 || list[0].State != recharge.Seen {
		t.Errorf("100 blocks later and not solid it is %+v", list)
	}
	grid.Stall(false)
	// Until the heads are read again a pass sees one end of the chain.
	for name, read := range map[string]func() ([]recharge.Transfer, error){
		"history":     func() ([]recharge.Transfer, error) { return c.History(t.Context(), ours, time.Time{}) },
		"transaction": func() ([]recharge.Transfer, error) { return c.Transaction(t.Context(), id) },
	} {
		if list, err := read(); err != nil || len(list) != 1 || list[0].State != recharge.Seen {
			t.Errorf("above the final head that was read, the %s has %+v, %v", name, list, err)
		}
	}
	if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
		t.Errorf("solid, the finals are %v, want %s", got, id)
	}
}

func TestTronReadsAFinalReceiptOnce(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1)
	history(t, c)
	grid.Forget()
	history(t, c)
	if n := count(grid, byID); n != 1 {
		t.Errorf("what is only seen was asked for %d times, want again", n)
	}
	grid.Mine(trongrid.Gap)
	first := history(t, c)
	mine, err := c.Transaction(t.Context(), id)
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	mine[0].Amount = 0 // a caller may do with it what it likes
	grid.Forget()
	for range 3 {
		if again := history(t, c); !slices.Equal(again, first) {
			t.Errorf("again the history is %+v, want %+v", again, first)
		}
	}
	if n := count(grid, solidByID) + count(grid, byID); n != 0 {
		t.Errorf("a final receipt was read %d times more", n)
	}
}

func TestTronHeads(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	grid.Mine(30)
	first, err := c.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if calls := grid.Calls(); len(calls) != 2 || calls[0].Path != solidHead || calls[1].Path != latestHead {
		t.Errorf("the heads were read as %+v, want the final one first", calls)
	}
	block := func(n int64) trongrid.Fault {
		return trongrid.Text(200, fmt.Sprintf(`{"blockID":"00","block_header":{"raw_data":{"number":%d,"timestamp":1785511209000}}}`, n))
	}
	grid.Fail(solidHead, block(first.Final.Number-3), 1)
	grid.Fail(latestHead, block(first.Latest.Number-40), 1)
	if h, err := c.Heads(t.Context()); err != nil || h != first {
		t.Errorf("from a node that lags the heads are %+v, %v; want %+v", h, err, first)
	}
	grid.Fail(solidHead, block(first.Final.Number-1000), 1)
	if h, err := c.Heads(t.Context()); err == nil {
		t.Errorf("from a node that is far behind the heads are %+v", h)
	}
	for name, body := range map[string]string{"nothing": `{}`, "no number": `{"blockID":"00","block_header":{"raw_data":{"timestamp":1}}}`,
		"no time": `{"block_header":{"raw_data":{"number":99999999999}}}`, "an array": `[]`, "a number as text": `{"block_header":{"raw_data":{"number":"9"}}}`} {
		grid.Fail(solidHead, trongrid.Text(200, body), 1)
		if h, err := c.Heads(t.Context()); err == nil {
			t.Errorf("%s: the heads are %+v", name, h)
		}
	}
}

func TestTronTransactionIDs(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	id := grid.Send(payer, ours, usdt)
	upper := strings.Repeat("AB", 32)
	grid.Submit(trongrid.Tx{ID: upper, Logs: []trongrid.Log{trongrid.Transfer(trongrid.USDT, payer, ours, big.NewInt(1))}})
	grid.Mine(1 + trongrid.Gap)
	if list, err := c.Transaction(t.Context(), strings.ToUpper(id)); err != nil || len(list) != 1 || list[0].TxID != id {
		t.Errorf("asked for in upper case it has %+v, %v", list, err)
	}
	number, _ := grid.Head()
	if _, err := c.Heads(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := c.Incoming(t.Context(), []string{ours}, number-trongrid.Gap, number)
	if err != nil || len(list) != 2 || !slices.ContainsFunc(list, func(tr recharge.Transfer) bool { return tr.TxID == strings.ToLower(upper) }) {
		t.Errorf("the block has %+v, %v; want the id in lower case", list, err)
	}
	for _, bad := range []string{"", "12", id + "00", "0x" + id[2:], id[:62] + "zz", id[:63] + " "} {
		if list, err := c.Transaction(t.Context(), bad); err == nil {
			t.Errorf("%q has %+v", bad, list)
		}
	}
	other := fmt.Sprintf(`{"id":"%s","blockNumber":%d,"blockTimeStamp":9,"receipt":{"result":"SUCCESS"}}`, strings.Repeat("cd", 32), number)
	for _, body := range []string{other, `null`, `[]`, `{"resMessage":"no"}`, `{"error":"no"}`} {
		grid.Fail(solidByID, trongrid.Text(200, body), 1)
		if list, err := c.Transaction(t.Context(), strings.Repeat("ef", 32)); err == nil {
			t.Errorf("the answer %s gave %+v", body, list)
		}
		grid.Heal()
	}
}

func TestTronBalanceThatCannotBeRead(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	grid.Skew(ours, 7)
	if m, err := c.Balance(t.Context(), ours); err != nil || m != 7 {
		t.Fatalf("the balance is %s, %v", m, err)
	}
	one := strings.Repeat("0", 63) + "1"
	for name, body := range map[string]string{
		"a code":            `{"result":{"code":"CONTRACT_VALIDATE_ERROR","message":"aa"}}`,
		"a code and more":   `{"result":{"result":true,"code":"OTHER_ERROR"},"constant_result":["` + one + `"]}`,
		"a revert":          `{"result":{"result":true},"constant_result":["` + one + `"],"transaction":{"ret":[{"ret":"FAILED"}]}}`,
		"another revert":    `{"result":{"result":true},"constant_result":["` + one + `"],"transaction":{"ret":[{"contractRet":"REVERT"}]}}`,
		"no result":         `{"constant_result":["` + one + `"]}`,
		"no constant":       `{"result":{"result":true}}`,
		"an empty list":     `{"result":{"result":true},"constant_result":[]}`,
		"an empty constant": `{"result":{"result":true},"constant_result":[""]}`,
		"a short constant":  `{"result":{"result":true},"constant_result":["01"]}`,
		"too much":          `{"result":{"result":true},"constant_result":["` + strings.Repeat("f", 64) + `"]}`,
		"nothing":           `{}`,
		"an array":          `[]`,
	} {
		grid.Fail(balancePath, trongrid.Text(200, body), 1)
		if m, err := c.Balance(t.Context(), ours); err == nil {
			t.Errorf("%s: the balance is %s", name, m)
		}
	}
	if m, err := c.Balance(t.Context(), ours[:33]+"x"); err == nil {
		t.Errorf("the balance of no address is %s", m)
	}
	if list, err := c.History(context.Background(), strings.ToLower(ours), time.Time{}); err == nil {
		t.Errorf("the history of no address is %+v", list)
	}
}
