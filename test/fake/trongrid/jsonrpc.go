package trongrid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The bounds of java-tron's JSON-RPC (documentation-en, docs/api/json-rpc).
const (
	maxRange     = 5000 // blocks of eth_getLogs
	maxSubTopics = 1000 // values of one topic
	maxBatch     = 100  // calls of a batch
	balanceOf    = "0x70a08231"
)

type rpcRequest struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

type rpcFault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// rpcFilter is the parameter of eth_getLogs.
type rpcFilter struct {
	From    string            `json:"fromBlock"`
	To      string            `json:"toBlock"`
	Address string            `json:"address"`
	Topics  []json.RawMessage `json:"topics"`
}

// rpcRequests reads the calls of a request without consuming its body.
func rpcRequests(r *http.Request) (list []rpcRequest, batch bool) {
	if r.URL.Path != "/jsonrpc" || r.Body == nil {
		return nil, false
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if batch = bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")); batch {
		_ = json.Unmarshal(body, &list)
		return list, true
	}
	var one rpcRequest
	if json.Unmarshal(body, &one) == nil {
		list = append(list, one)
	}
	return list, false
}

// rpc serves POST /jsonrpc.
func (s *Server) rpc(w http.ResponseWriter, r *http.Request) {
	calls, batch := rpcRequests(r)
	if len(calls) == 0 || len(calls) > maxBatch {
		reply(w, http.StatusOK, rpcAnswer(rpcRequest{ID: []byte("null")}, nil, &rpcFault{-32600, "invalid json request"}))
		return
	}
	answers := make([]any, len(calls))
	for i, c := range calls {
		result, fault := s.rpcCall(c)
		answers[i] = rpcAnswer(c, result, fault)
	}
	if !batch {
		reply(w, http.StatusOK, answers[0])
		return
	}
	slices.Reverse(answers) // a batch may be answered in any order
	reply(w, http.StatusOK, answers)
}

func rpcAnswer(c rpcRequest, result any, fault *rpcFault) any {
	if fault != nil {
		return map[string]any{"jsonrpc": "2.0", "id": c.ID, "error": fault}
	}
	return map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": result}
}

func (s *Server) rpcCall(c rpcRequest) (any, *rpcFault) {
	param := func(i int, into any) bool {
		return i < len(c.Params) && json.Unmarshal(c.Params[i], into) == nil
	}
	if c.Version != "2.0" || len(c.ID) == 0 {
		return nil, &rpcFault{-32600, "invalid request"}
	}
	var text string
	switch c.Method {
	case "eth_blockNumber":
		return hexNumber(s.latest().number), nil
	case "eth_getBlockByNumber":
		number, fault := int64(0), (*rpcFault)(nil)
		if !param(0, &text) {
			return nil, &rpcFault{-32602, "invalid block number"}
		}
		if number, fault = s.rpcBlock(text); fault != nil {
			return nil, fault
		}
		if number < s.blocks[0].number || number > s.latest().number {
			return nil, nil
		}
		b := s.at(number)
		return map[string]any{"number": hexNumber(b.number), "hash": b.hash(), "timestamp": hexNumber(b.time.Unix()),
			"transactions": []string{}}, nil
	case "eth_getLogs":
		var f rpcFilter
		if !param(0, &f) {
			return nil, &rpcFault{-32602, "invalid filter"}
		}
		return s.rpcLogs(f)
	case "eth_getTransactionReceipt":
		if !param(0, &text) || len(strings.TrimPrefix(text, "0x")) != 64 {
			return nil, &rpcFault{-32602, "invalid hash value"}
		}
		return s.rpcReceipt(strings.TrimPrefix(text, "0x")), nil
	case "eth_call":
		var call struct{ To, Data string }
		if !param(0, &call) || !param(1, &text) || text != "latest" {
			return nil, &rpcFault{-32602, "QUANTITY not supported, just support TAG as latest"}
		}
		if call.To != "0x"+hexAddress(s.token) || !strings.HasPrefix(call.Data, balanceOf) || len(call.Data) != len(balanceOf)+64 {
			return nil, &rpcFault{-32600, "Smart contract is not exist."}
		}
		return fmt.Sprintf("0x%064x", s.sum(textAddress(call.Data[len(balanceOf):]), s.latest().number)), nil
	case "eth_getBalance":
		var tag string
		if !param(0, &text) || !param(1, &tag) || tag != "latest" {
			return nil, &rpcFault{-32602, "QUANTITY not supported, just support TAG as latest"}
		}
		return fmt.Sprintf("0x%x", s.coins[strings.TrimPrefix(text, "0x")]), nil
	}
	return nil, &rpcFault{-32601, "the method " + c.Method + " does not exist/is not available"}
}

// rpcBlock returns the number of a block parameter.
func (s *Server) rpcBlock(text string) (int64, *rpcFault) {
	switch text {
	case "latest", "":
		return s.latest().number, nil
	case "finalized":
		return s.solid, nil
	case "earliest":
		return 0, nil
	case "pending", "safe":
		return 0, &rpcFault{-32602, "TAG " + text + " not supported"}
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil || !strings.HasPrefix(text, "0x") {
		return 0, &rpcFault{-32602, "invalid block number"}
	}
	return n, nil
}

// rpcLogs serves eth_getLogs. Nodes were seen to leave out logs: those that HoldLogs names, and all
// of the blocks that a lagging node does not have.
func (s *Server) rpcLogs(f rpcFilter) (any, *rpcFault) {
	from, fault := s.rpcBlock(f.From)
	if fault != nil {
		return nil, fault
	}
	to, fault := s.rpcBlock(f.To)
	switch {
	case fault != nil:
		return nil, fault
	case from > to:
		return nil, &rpcFault{-32602, "please verify: fromBlock <= toBlock"}
	case to-from >= maxRange:
		return nil, &rpcFault{-32602, fmt.Sprintf("exceed max block range: %d", maxRange)}
	case len(f.Topics) > 4:
		return nil, &rpcFault{-32602, "topics size should be <= 4"}
	}
	topics := make([]map[string]bool, len(f.Topics)) // nil matches all
	for i, raw := range f.Topics {
		var one string
		var many []string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &one) == nil:
			many = []string{one}
		case json.Unmarshal(raw, &many) != nil:
			return nil, &rpcFault{-32602, "invalid topic(s): " + string(raw)}
		}
		if len(many) > maxSubTopics {
			return nil, &rpcFault{-32602, fmt.Sprintf("exceed max topics: %d", maxSubTopics)}
		}
		topics[i] = map[string]bool{}
		for _, t := range many {
			topics[i][strings.ToLower(strings.TrimPrefix(t, "0x"))] = true
		}
	}
	found := []any{}
	for n := max(from, s.blocks[0].number); n <= min(to, s.latest().number-s.lag); n++ {
		index := 0
		for at, tx := range s.at(n).txs {
			for _, l := range tx.Logs {
				if !tx.held && "0x"+strings.ToLower(l.Address) == strings.ToLower(f.Address) && matches(l, topics) {
					found = append(found, s.rpcLog(s.at(n), tx, at, index, l))
				}
				index++
			}
		}
	}
	if len(found) > s.mostLogs {
		return nil, &rpcFault{-32005, fmt.Sprintf("query returned more than %d results", s.mostLogs)}
	}
	return found, nil
}

func matches(l Log, topics []map[string]bool) bool {
	for i, wanted := range topics {
		if wanted != nil && (i >= len(l.Topics) || !wanted[strings.ToLower(l.Topics[i])]) {
			return false
		}
	}
	return true
}

// rpcLog shows an event. Its logIndex counts in the block and not in the transaction.
func (s *Server) rpcLog(b *block, tx *transaction, at, index int, l Log) any {
	topics := []string{}
	for _, t := range l.Topics {
		topics = append(topics, "0x"+t)
	}
	return map[string]any{"address": "0x" + strings.ToLower(l.Address), "topics": topics, "data": "0x" + l.Data,
		"blockNumber": hexNumber(b.number), "blockHash": b.hash(), "blockTimestamp": hexNumber(b.time.Unix()),
		"transactionHash": "0x" + tx.ID, "transactionIndex": hexNumber(int64(at)), "logIndex": hexNumber(int64(index)), "removed": false}
}

func (s *Server) rpcReceipt(id string) any {
	for i := range s.blocks {
		b, index := &s.blocks[i], 0
		for at, tx := range b.txs {
			if !strings.EqualFold(tx.ID, id) {
				index += len(tx.Logs)
				continue
			}
			status, logs := "0x1", []any{}
			if tx.Failed || result(tx) != "SUCCESS" {
				status = "0x0"
			}
			for i, l := range tx.Logs {
				logs = append(logs, s.rpcLog(b, tx, at, index+i, l))
			}
			return map[string]any{"transactionHash": "0x" + tx.ID, "blockNumber": hexNumber(b.number), "blockHash": b.hash(),
				"transactionIndex": hexNumber(int64(at)), "status": status, "type": "0x0", "logs": logs}
		}
	}
	return nil
}

// SetCoins sets the TRX of an address, in millionths.
func (s *Server) SetCoins(address string, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.coins == nil {
		s.coins = map[string]int64{}
	}
	s.coins[hexAddress(address)] = amount
}

// HoldLogs omits transactions that are mined from now on from the answers of eth_getLogs; ReleaseLogs
// adds them. Receipts have them all the time.
func (s *Server) HoldLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = true
}

// ReleaseLogs ends HoldLogs.
func (s *Server) ReleaseLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = false
	for _, b := range s.blocks {
		for _, tx := range b.txs {
			tx.held = false
		}
	}
}

// Lag lets eth_getLogs be answered by a node that lacks the last blocks.
func (s *Server) Lag(blocks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = int64(blocks)
}

// MostLogs sets how many events an answer of eth_getLogs has at most; more are error -32005.
func (s *Server) MostLogs(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mostLogs = n
}

// sum returns what an address has received less what it has sent up to a block, at least 0.
func (s *Server) sum(address string, head int64) int64 {
	sum := s.skew[address]
	for i := range s.blocks {
		b := &s.blocks[i]
		for _, tx := range b.txs {
			for _, l := range tx.Logs {
				amount, ok := new(big.Int).SetString(l.Data, 16)
				if b.number > head || result(tx) != "SUCCESS" || tx.Failed || !strings.EqualFold(l.Address, hexAddress(s.token)) ||
					len(l.Topics) != 3 || !strings.EqualFold(l.Topics[0], transferTopic) || !ok || !amount.IsInt64() {
					continue
				}
				if textAddress(l.Topics[2]) == address {
					sum += amount.Int64()
				}
				if textAddress(l.Topics[1]) == address {
					sum -= amount.Int64()
				}
			}
		}
	}
	return max(sum, 0)
}

func hexNumber(n int64) string { return "0x" + strconv.FormatInt(n, 16) }

// hash differs between the blocks of a fork.
func (b *block) hash() string { return fmt.Sprintf("0x%016x%048x", b.number, b.made) }
