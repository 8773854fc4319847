package chain_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake/trongrid"
)

// A stranger's transfers are in the blocks and in no other history.
func TestTronHistoryIsOfOneAddress(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	big1 := big.NewInt(usdt)
	id := grid.Submit(trongrid.Tx{Logs: []trongrid.Log{trongrid.Transfer(trongrid.USDT, payer, stranger, big1),
		trongrid.Transfer(trongrid.USDT, payer, ours, big1), trongrid.Transfer(trongrid.USDT, ours, stranger, big1)}})
	grid.Mine(1 + trongrid.Gap)
	list := history(t, c)
	if len(list) != 2 || list[0].LogIndex != 1 || list[1].LogIndex != 2 {
		t.Errorf("the history has %+v, want logs 1 and 2", list)
	}
	if all, err := c.Transaction(t.Context(), id); err != nil || len(all) != 3 {
		t.Errorf("the transaction has %+v, %v; want 3 transfers", all, err)
	}
}

func TestTronReadsEveryPage(t *testing.T) {
	flood := func(grid *trongrid.Server) string {
		for range 10 {
			for range 50 {
				grid.Send(stranger, ours, 0)
			}
			grid.Mine(1)
		}
		id := grid.Send(payer, ours, usdt)
		grid.Mine(1 + trongrid.Gap)
		return id
	}
	t.Run("behind a flood of nothing, which costs no receipts", func(t *testing.T) {
		grid := trongrid.Start(t)
		c := tron(t, grid, func(cfg *chain.TronConfig) { cfg.APIKey = "key-1" })
		id := flood(grid)
		if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
			t.Errorf("the history has %v, want %s", got, id)
		}
		if pages, receipts := count(grid, indexPath), count(grid, solidByID); pages != 3 || receipts != 1 {
			t.Errorf("it took %d pages and %d receipts, want 3 and 1", pages, receipts)
		}
		for _, call := range grid.Calls() {
			if call.Key != "key-1" {
				t.Errorf("%s was called with the key %q", call.Path, call.Key)
			}
			if strings.HasPrefix(call.Path, indexPath) && !strings.Contains(call.Query, "limit=200") ||
				strings.Contains(call.Query, "fingerprint") && !strings.Contains(call.Query, "contract_address="+trongrid.USDT) {
				t.Errorf("a page was asked for with %s", call.Query)
			}
		}
	})
	t.Run("when a full page hides that there is another", func(t *testing.T) {
		grid := trongrid.Start(t)
		c := tron(t, grid)
		id := flood(grid)
		grid.Fail(indexPath, trongrid.DropFingerprint, 1)
		if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
			t.Errorf("the history has %v, want %s", got, id)
		}
	})
	t.Run("or fails when there is no way on", func(t *testing.T) {
		grid := trongrid.Start(t)
		c := tron(t, grid)
		for range 250 { // all of one time
			grid.Send(stranger, ours, 0)
		}
		grid.Mine(1)
		grid.Fail(indexPath, trongrid.DropFingerprint, -1)
		if list, err := pass(t, c); err == nil || list != nil {
			t.Errorf("a cut index gave %v, %v", list, err)
		}
	})
	t.Run("or fails when a page comes again", func(t *testing.T) {
		grid := trongrid.Start(t)
		c := tron(t, grid)
		grid.Send(payer, ours, usdt)
		grid.Mine(1 + trongrid.Gap)
		grid.Fail(indexPath, trongrid.RepeatFingerprint, -1)
		if list, err := pass(t, c); err == nil || list != nil {
			t.Errorf("a circle of pages gave %v, %v", list, err)
		}
		if n := count(grid, indexPath); n > 3 {
			t.Errorf("it took %d pages to notice", n)
		}
	})
	t.Run("or fails when they never end", func(t *testing.T) {
		grid := trongrid.Start(t)
		c := tron(t, grid)
		n := 0
		grid.Fail(indexPath, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			n++
			fmt.Fprintf(w, `{"success":true,"data":[],"meta":{"fingerprint":"f%d"}}`, n)
		}, -1)
		if list, err := pass(t, c); err == nil || list != nil || n > 1000 {
			t.Errorf("an endless index gave %v, %v after %d pages", list, err, n)
		}
	})
}

func TestTronJudgesEveryRowAgain(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	send := func(l trongrid.Log) string { return grid.Submit(trongrid.Tx{Logs: []trongrid.Log{l}}) }
	old := grid.Send(payer, ours, usdt)
	grid.Mine(2)
	_, at := grid.Head()
	send(trongrid.Transfer(foreign, payer, ours, big.NewInt(usdt)))
	send(trongrid.Approval(trongrid.USDT, payer, ours, big.NewInt(usdt)))
	want := grid.Send(payer, ours, usdt)
	grid.Mine(1 + trongrid.Gap)
	usdtInfo := map[string]any{"address": trongrid.USDT}
	none := strings.Repeat("12", 32)
	grid.List(
		trongrid.Row{Raw: json.RawMessage(`{"transaction_id":"` + none + `","token_info":{"address":"` + trongrid.USDT +
			`"},"block_timestamp":1,"from":"` + payer + `","to":"` + stranger + `","type":"Transfer","value":"5"}`)},
		trongrid.Row{TxID: none, Token: usdtInfo, Time: 1, From: payer, To: ours, Type: "Transfer", Value: "5"})
	grid.Fail(indexPath, trongrid.IgnoreFilters, -1)
	if _, err := c.Heads(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := c.History(t.Context(), ours, at)
	if err != nil || !slices.Equal(finals(list), []string{want}) {
		t.Errorf("the history since %s has %v, %v; want %s without %s", at, list, err, want, old)
	}
	if n := count(grid, solidByID); n != 1 {
		t.Errorf("rows that do not count cost %d receipts", n-1)
	}
}

func TestTronOneStrangeRowDoesNotHideTheRest(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	hidden := grid.Submit(trongrid.Tx{Logs: []trongrid.Log{func() trongrid.Log {
		l := trongrid.Transfer(trongrid.USDT, payer, ours, big.NewInt(usdt))
		l.NoTokenInfo = true
		return l
	}()}})
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1 + trongrid.Gap)
	for _, raw := range []string{`7`, `null`, `"text"`, `[]`, `{}`, `{"transaction_id":5}`,
		`{"transaction_id":"../../etc","token_info":{"address":"` + trongrid.USDT + `"},"to":"` + ours + `","type":"Transfer","block_timestamp":9000000000000}`,
		`{"transaction_id":"` + hidden + `","value":7,"token_info":null}`} {
		grid.List(trongrid.Row{Raw: json.RawMessage(raw)})
	}
	got := finals(history(t, c))
	if len(got) != 2 || !slices.Contains(got, id) || !slices.Contains(got, hidden) {
		t.Errorf("the history has %v, want %s and, whose row cannot be read, %s", got, id, hidden)
	}
}

func TestTronAsksInMilliseconds(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	since := time.Date(2026, 8, 1, 2, 3, 4, 567_800_000, time.FixedZone("", 7200))
	for _, test := range []struct {
		since time.Time
		want  string
	}{{since, "1785542584566"}, {time.Time{}, "0"}, {time.Unix(0, 0), "0"}} {
		grid.Forget()
		if _, err := c.History(t.Context(), ours, test.since); err != nil {
			t.Fatal(err)
		}
		calls := grid.Calls()
		if q := calls[len(calls)-1].Query; !strings.Contains(q, "min_timestamp="+test.want+"&") {
			t.Errorf("since %s it asks %s, want %s", test.since, q, test.want)
		}
	}
}

func TestTronIndexThatLags(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	grid.HoldIndex()
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1 + trongrid.Gap)
	if list := history(t, c); len(list) != 0 {
		t.Errorf("before the index has it the history is %+v", list)
	}
	grid.ReleaseIndex()
	if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
		t.Errorf("then the history has %v, want %s", got, id)
	}
}

func TestTronReceiptThatIsMissing(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1)
	grid.Fail(byID, trongrid.Nothing, 1)
	if list := history(t, c); len(list) != 0 {
		t.Errorf("of what is not final, without a receipt, the history has %+v", list)
	}
	if list := history(t, c); len(list) != 1 || list[0].State != recharge.Seen {
		t.Errorf("with its receipt the history has %+v", list)
	}
	grid.Mine(trongrid.Gap)
	grid.Fail(solidByID, trongrid.Nothing, 1)
	if list := history(t, c); len(list) != 1 || list[0].State != recharge.Seen {
		t.Errorf("while the solid node lags the history has %+v, want it only seen", list)
	}
	grid.Fail(solidByID, trongrid.Nothing, 1)
	grid.Fail(byID, trongrid.Nothing, 1)
	if list, err := pass(t, c); err == nil || list != nil {
		t.Errorf("below the final head, without a receipt, the history is %+v, %v: a gap", list, err)
	}
	if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
		t.Errorf("in the end the history has %v, want %s", got, id)
	}
}

// A row that the index keeps of a block that was replaced must not block the
// address for ever.
func TestTronForgetsWhatNeverGetsAReceipt(t *testing.T) {
	grid := trongrid.Start(t)
	c := tron(t, grid)
	_, at := grid.Head()
	grid.List(trongrid.Row{TxID: strings.Repeat("12", 32), Time: at.UnixMilli(), From: payer, To: ours, Type: "Transfer", Value: "5",
		Token: map[string]any{"address": trongrid.USDT}})
	id := grid.Send(payer, ours, usdt)
	grid.Mine(1 + trongrid.Gap)
	if list, err := pass(t, c); err == nil {
		t.Errorf("at first the history is %+v", list)
	}
	grid.Mine(200) // 10 minutes
	if got := finals(history(t, c)); !slices.Equal(got, []string{id}) {
		t.Errorf("10 minutes later the history has %v, want %s", got, id)
	}
}
