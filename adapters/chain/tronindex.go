package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

const (
	pageRows = 200 // a page; to ask for more is answered 400
	maxPages = 500 // of one history
)

// hint is a transaction that the index lists for an address.
type hint struct {
	txID string
	at   time.Time
}

// indexRow is what is read of a row. It has neither block nor log index nor
// success, so it is never more than a hint.
type indexRow struct {
	TxID  string `json:"transaction_id"`
	Token struct {
		Address string `json:"address"` // empty for some of those who spam
	} `json:"token_info"`
	Time  int64  `json:"block_timestamp"` // ms
	From  string `json:"from"`
	To    string `json:"to"`
	Type  string `json:"type"` // the index lists approvals too
	Value string `json:"value"`
}

type indexPage struct {
	rows        []json.RawMessage
	fingerprint string
}

var (
	errFingerprint = errors.New("the index repeats a page")
	errPages       = fmt.Errorf("more than %d pages", maxPages)
	errFullPage    = errors.New("the index breaks off after a full page")
)

// touching returns the transactions of the token that touch an address in blocks
// from since on, both directions, each once. It reads all pages or fails.
func (t restNode) touching(ctx context.Context, address string, since time.Time) ([]hint, error) {
	// It is undocumented whether the bound is inclusive, so it is one less.
	from := max(since.UnixMilli()-1, 0)
	var (
		hints  []hint
		listed = map[string]bool{} // transactions
		used   = map[string]bool{} // fingerprints
		mark   string
	)
	for range maxPages {
		page, err := t.page(ctx, address, from, mark)
		if err != nil {
			return nil, err
		}
		newest, sorted := int64(0), true
		for _, raw := range page.rows {
			h, at, ok := t.row(raw, address, since)
			sorted = sorted && at >= newest
			newest = max(newest, at)
			if ok && !listed[h.txID] {
				listed[h.txID] = true
				hints = append(hints, h)
			}
		}
		switch {
		case page.fingerprint != "" && used[page.fingerprint]:
			return nil, errFingerprint
		case page.fingerprint != "":
			mark = page.fingerprint
			used[mark] = true
		case len(page.rows) < pageRows:
			return hints, nil
		case !sorted || newest-1 <= from:
			return nil, errFullPage
		default:
			// A full page that names no next one was seen to be cut off: go on
			// from its end.
			from, mark = newest-1, ""
		}
	}
	return nil, errPages
}

// row checks a row again, because the index ignores parameters that it does not
// support. A row that cannot be decoded is looked up if it names its
// transaction and otherwise skipped, so that one malformed row does not hide
// the rest.
func (t restNode) row(raw json.RawMessage, address string, since time.Time) (h hint, at int64, ok bool) {
	var row indexRow
	if err := json.Unmarshal(raw, &row); err != nil {
		id, named := normalTx(row.TxID)
		t.log.Warn("a row of the index cannot be read", "network", t.network, "address", address, "tx", id, "err", err)
		return hint{txID: id, at: time.UnixMilli(row.Time).UTC()}, row.Time, named
	}
	h.at = time.UnixMilli(row.Time).UTC()
	contract, err := decodeAddress(row.Token.Address)
	if err != nil || contract != t.contract || row.Type != "Transfer" || row.From != address && row.To != address ||
		h.at.Before(since) {
		return h, row.Time, false
	}
	if row.Value == "0" { // poisoning comes in hundreds, and a receipt costs a call
		return h, row.Time, false
	}
	if h.txID, ok = normalTx(row.TxID); !ok {
		t.log.Warn("a row of the index names no transaction", "network", t.network, "address", address)
	}
	return h, row.Time, ok
}

// page reads one page. The next one is requested by its fingerprint on the
// configured host: the link in the response leads around that host and the key.
func (t restNode) page(ctx context.Context, address string, from int64, mark string) (indexPage, error) {
	path := "/v1/accounts/" + address + "/transactions/trc20"
	query := url.Values{"limit": {strconv.Itoa(pageRows)}, "order_by": {"block_timestamp,asc"},
		"contract_address": {t.address}, "min_timestamp": {strconv.FormatInt(from, 10)}}
	if mark != "" {
		query.Set("fingerprint", mark)
	}
	var page indexPage
	err := t.source.index(ctx, path, query, func(body []byte) error {
		var out struct {
			Success bool            `json:"success"`
			Data    json.RawMessage `json:"data"`
			Meta    struct {
				Fingerprint string `json:"fingerprint"`
			} `json:"meta"`
		}
		if err := json.Unmarshal(body, &out); err != nil {
			return err
		}
		if !out.Success || !bytes.HasPrefix(out.Data, []byte("[")) {
			return errors.New("the answer reports a failure or has no data")
		}
		page.fingerprint = out.Meta.Fingerprint
		return json.Unmarshal(out.Data, &page.rows)
	})
	return page, err
}
