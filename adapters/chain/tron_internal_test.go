package chain

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"agentproxy/domain/recharge"
)

// FuzzReceipt reads any receipt: whatever its logs contain, the result is a
// transfer that can be stored.
func FuzzReceipt(f *testing.F) {
	whole, err := os.ReadFile("testdata/receipt.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	usdt := strings.Repeat("0", 24)
	for _, log := range []string{
		`{}`, `{"topics":null}`, `{"topics":[]}`, `{"topics":["","",""]}`, `{"address":"a614f803b6fd780986a42c78ec9c7f77e6ded13c"}`,
		`{"address":"a614f803b6fd780986a42c78ec9c7f77e6ded13c","topics":["` + transferTopic + `","",""],"data":"0"}`,
		`{"address":"a614f803b6fd780986a42c78ec9c7f77e6ded13c","topics":["` + transferTopic + `","` + usdt +
			strings.Repeat("ab", 20) + `","` + usdt + strings.Repeat("cd", 20) + `"],"data":"` + strings.Repeat("f", 64) + `"}`,
	} {
		f.Add([]byte(`{"id":"` + strings.Repeat("AB", 32) + `","blockNumber":5,"blockTimeStamp":9,"receipt":{"result":"SUCCESS"},"log":[` + log + `]}`))
	}
	tron, err := NewTron(TronConfig{Network: "tron-mainnet"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r tronReceipt
		if json.Unmarshal(body, &r) != nil {
			return
		}
		if id, _ := normalTx(r.ID); r.check(id) != nil {
			return
		}
		last := -1
		for _, tr := range tron.appendTransfers(nil, &r, recharge.Final) {
			switch {
			case !tron.Valid(tr.From) || !tron.Valid(tr.To):
				t.Errorf("%+v has a party that is no address", tr)
			case (tr.State == recharge.Final) != (tr.Amount > 0), (tr.State == recharge.Ignored) != (tr.Note != ""), tr.Amount < 0:
				t.Errorf("%+v is neither money nor ignored", tr)
			case tr.LogIndex <= last || tr.LogIndex >= len(r.Log):
				t.Errorf("%+v comes after log %d of %d", tr, last, len(r.Log))
			case tr.TxID != strings.ToLower(tr.TxID) || len(tr.TxID) != 64:
				t.Errorf("the id %q is not in its normal form", tr.TxID)
			}
			last = tr.LogIndex
		}
	})
}

// The receipt in testdata is written out in the reference of the node, with
// known addresses.
func TestTronReceiptOfTheReference(t *testing.T) {
	body, err := os.ReadFile("testdata/receipt.json")
	if err != nil {
		t.Fatal(err)
	}
	var r tronReceipt
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	tron, err := NewTron(TronConfig{Network: "tron-mainnet"})
	if err != nil {
		t.Fatal(err)
	}
	list := tron.appendTransfers(nil, &r, recharge.Final)
	if len(list) != 1 {
		t.Fatalf("it has %+v", list)
	}
	tr := list[0]
	if tr.From != "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK" || tr.To != "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH" || tr.Amount != 10_010_000 ||
		tr.Block != 85343241 || tr.BlockTime.UnixMilli() != 1786700820000 || tr.LogIndex != 0 || tr.TxID != strings.Repeat("a", 64) {
		t.Errorf("it has %+v", tr)
	}
}
