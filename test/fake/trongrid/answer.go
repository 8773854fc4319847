package trongrid

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is a row of the index.
type Row struct {
	TxID  string         `json:"transaction_id"`
	Token map[string]any `json:"token_info"`
	Time  int64          `json:"block_timestamp"` // ms
	From  string         `json:"from"`
	To    string         `json:"to"`
	Type  string         `json:"type"`
	Value string         `json:"value"`
	// Raw replaces the row in the answer if it is set.
	Raw json.RawMessage `json:"-"`
}

// List adds a row to the index that no block has.
func (s *Server) List(rows ...Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, rows...)
}

// ServeHTTP answers a call, or lets the quota or a fault of Fail answer it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.grow()
	call := Call{At: time.Now(), Path: r.URL.Path, Query: r.URL.RawQuery, Key: r.Header.Get("TRON-PRO-API-KEY")}
	calls, _ := rpcRequests(r)
	for _, c := range calls {
		call.Methods = append(call.Methods, c.Method)
	}
	name := strings.Join(append([]string{call.Path}, call.Methods...), " ")
	s.mu.Lock()
	s.calls = append(s.calls, call)
	if q := s.quota; q != nil && !q.admit(max(len(calls), 1), call.At) {
		s.mu.Unlock()
		q.refuse(w, r)
		return
	}
	var what Fault
	for _, f := range s.faults {
		if f.times != 0 && strings.HasPrefix(name, f.prefix) {
			f.times--
			what = f.what
			break
		}
	}
	s.mu.Unlock()
	if what != nil {
		what(w, r, http.HandlerFunc(s.answer))
		return
	}
	s.answer(w, r)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/jsonrpc" && r.Method == http.MethodPost {
		s.rpc(w, r)
		return
	}
	if address, ok := strings.CutPrefix(r.URL.Path, "/v1/accounts/"); ok && r.Method == http.MethodGet {
		if address, ok = strings.CutSuffix(address, "/transactions/trc20"); ok {
			s.index(w, r, address)
			return
		}
	}
	var in struct {
		Value     string `json:"value"`
		Num       int64  `json:"num"`
		Owner     string `json:"owner_address"`
		Contract  string `json:"contract_address"`
		Selector  string `json:"function_selector"`
		Parameter string `json:"parameter"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		reply(w, http.StatusOK, map[string]string{"Error": "class org.tron.json.JSONException : " + err.Error()})
		return
	}
	head := s.latest().number
	node, call, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if node == "walletsolidity" {
		head = s.solid
	}
	switch {
	case node != "wallet" && node != "walletsolidity" || r.Method != http.MethodPost:
		reply(w, http.StatusNotFound, map[string]string{"Error": "this API is unavailable due to config"})
	case call == "getnowblock":
		reply(w, http.StatusOK, showBlock(s.at(head)))
	case call == "getblockbynum" && (in.Num < s.blocks[0].number || in.Num > head):
		reply(w, http.StatusOK, struct{}{})
	case call == "getblockbynum":
		reply(w, http.StatusOK, showBlock(s.at(in.Num)))
	case call == "gettransactioninfobyid":
		for _, b := range s.blocks {
			for _, tx := range b.txs {
				if strings.EqualFold(tx.ID, in.Value) && b.number <= head {
					reply(w, http.StatusOK, receipt(tx))
					return
				}
			}
		}
		reply(w, http.StatusOK, struct{}{}) // unknown, or not mined yet: the answer is the same
	case call == "gettransactioninfobyblocknum":
		list := []any{}
		if in.Num >= s.blocks[0].number && in.Num <= head {
			for _, tx := range s.at(in.Num).txs {
				list = append(list, receipt(tx))
			}
		}
		reply(w, http.StatusOK, list)
	case call == "triggerconstantcontract":
		if textAddress(in.Owner) == "" || len(in.Owner) != 42 {
			reply(w, http.StatusOK, map[string]any{"result": map[string]any{"code": "CONTRACT_VALIDATE_ERROR",
				"message": hex.EncodeToString([]byte("Invalid owner address provided."))}}) // the text is invented
			return
		}
		s.balance(w, in.Contract, in.Selector, in.Parameter, head)
	default:
		reply(w, http.StatusNotFound, map[string]string{"Error": "this API is unavailable due to config"})
	}
}

func (s *Server) at(number int64) *block { return &s.blocks[number-s.blocks[0].number] }

func showBlock(b *block) any {
	raw := map[string]any{"number": b.number, "timestamp": b.time.UnixMilli(), "version": 31,
		"parentHash": fmt.Sprintf("%064x", b.number-1), "witness_address": "41" + strings.Repeat("0", 40)}
	out := map[string]any{"blockID": fmt.Sprintf("%064x", b.number), "block_header": map[string]any{"raw_data": raw}}
	var txs []any
	for _, tx := range b.txs {
		txs = append(txs, map[string]any{"txID": tx.ID, "ret": []any{map[string]string{"contractRet": result(tx)}}})
	}
	if txs != nil {
		out["transactions"] = txs
	}
	return out
}

func result(tx *transaction) string {
	if tx.Result == "" {
		return "SUCCESS"
	}
	return tx.Result
}

// contractOf returns the contract that a transaction called, which is that of its first event.
func contractOf(tx *transaction) string {
	if len(tx.Logs) == 0 {
		return "41" + strings.Repeat("0", 40)
	}
	return "41" + tx.Logs[0].Address
}

func receipt(tx *transaction) any {
	out := map[string]any{"id": tx.ID, "blockNumber": tx.block, "blockTimeStamp": tx.time.UnixMilli(), "fee": 345000,
		"contractResult": []string{""}, "contract_address": contractOf(tx),
		"receipt": map[string]any{"energy_usage_total": 64285, "net_usage": 345, "result": result(tx)}}
	if tx.Failed { // the field is absent on success
		out["result"] = "FAILED"
	}
	logs := []any{}
	for _, l := range tx.Logs { // the node omits empty fields
		shown := map[string]any{"address": l.Address}
		if len(l.Topics) > 0 {
			shown["topics"] = l.Topics
		}
		if l.Data != "" {
			shown["data"] = l.Data
		}
		logs = append(logs, shown)
	}
	if len(logs) > 0 {
		out["log"] = logs
	}
	return out
}

// index serves /v1/accounts/{address}/transactions/trc20. Its lower bound is exclusive:
// nothing documents that it is not.
func (s *Server) index(w http.ResponseWriter, r *http.Request, address string) {
	q := r.URL.Query()
	number := func(name string, otherwise int64) int64 {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	limit := number("limit", 20)
	if limit > 200 || limit < 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var rows []Row
	for _, row := range append(s.listed(), s.rows...) {
		token, _ := row.Token["address"].(string)
		switch {
		case row.Raw != nil:
		case row.From != address && row.To != address:
			continue
		case len(row.Token) > 0 && q.Get("contract_address") != "" && token != q.Get("contract_address"):
			continue
		case row.Time <= number("min_timestamp", -1), row.Time > number("max_timestamp", 1<<62):
			continue
		case q.Get("only_to") == "true" && row.To != address, q.Get("only_from") == "true" && row.From != address:
			continue
		case q.Get("only_confirmed") == "true" && row.Time > s.at(s.solid).time.UnixMilli():
			continue
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return int(a.Time - b.Time) })
	if q.Get("order_by") != "block_timestamp,asc" {
		slices.Reverse(rows)
	}
	fingerprint := q.Get("fingerprint")
	q.Del("fingerprint")
	if m, known := s.marks[fingerprint]; known && m.query != address+"?"+q.Encode() { // "all other parameters must stay identical"
		w.WriteHeader(http.StatusBadRequest) // invented
		return
	}
	from := min(s.marks[fingerprint].end, len(rows))
	page := rows[from:min(from+int(limit), len(rows))]
	meta := map[string]any{"at": time.Now().UnixMilli(), "page_size": len(page)}
	if end := from + len(page); end < len(rows) {
		next := fmt.Sprintf("mark%dx%d", end, len(s.calls))
		s.marks[next] = mark{end, address + "?" + q.Encode()}
		meta["fingerprint"] = next
		meta["links"] = map[string]string{"next": "https://api.trongrid.io" + r.URL.Path + "?" + q.Encode() + "&fingerprint=" + next}
	}
	data := []any{}
	for _, row := range page {
		if row.Raw != nil {
			data = append(data, row.Raw)
			continue
		}
		if row.Token == nil {
			row.Token = map[string]any{}
		}
		data = append(data, row)
	}
	reply(w, http.StatusOK, map[string]any{"data": data, "success": true, "meta": meta})
}

// listed returns the rows of mined transactions: every Transfer and Approval of every
// token, of failed calls too.
func (s *Server) listed() []Row {
	var rows []Row
	for _, b := range s.blocks {
		for _, tx := range b.txs {
			if !tx.listed {
				continue
			}
			for _, l := range tx.Logs {
				if len(l.Topics) != 3 {
					continue
				}
				row := Row{TxID: tx.ID, Time: b.time.UnixMilli(), From: textAddress(l.Topics[1]), To: textAddress(l.Topics[2]),
					Token: map[string]any{"symbol": "USDT", "address": textAddress(l.Address), "decimals": 6, "name": "Tether USD"}}
				switch strings.ToLower(l.Topics[0]) {
				case transferTopic:
					row.Type = "Transfer"
				case approvalTopic:
					row.Type = "Approval"
				default:
					continue
				}
				if l.NoTokenInfo {
					row.Token = nil
				}
				if amount, ok := new(big.Int).SetString(l.Data, 16); ok {
					row.Value = amount.String()
				}
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// balance serves balanceOf up to a head. It is 0 for an address that sent more than it
// received.
func (s *Server) balance(w http.ResponseWriter, contract, selector, parameter string, head int64) {
	address := textAddress(parameter)
	if contract != "41"+hexAddress(s.token) || selector != "balanceOf(address)" || len(parameter) != 64 {
		reply(w, http.StatusOK, map[string]any{"result": map[string]any{"code": "CONTRACT_VALIDATE_ERROR",
			"message": hex.EncodeToString([]byte("Smart contract is not exist."))}})
		return
	}
	reply(w, http.StatusOK, map[string]any{"result": map[string]any{"result": true}, "energy_used": 935,
		"constant_result": []string{fmt.Sprintf("%064x", s.sum(address, head))},
		"transaction":     map[string]any{"ret": []any{map[string]string{}}}})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
