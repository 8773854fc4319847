package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	rpcPath = "/jsonrpc"
	// maxBatch is how many calls java-tron accepts in a batch.
	maxBatch = 100
)

// rpcCall is a call of java-tron's JSON-RPC.
type rpcCall struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// rpcError is the error of a call that the node has understood.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, excerpt(e.Message)) }

// rpcReply is the answer to a call: Result, which may be null, or Error.
type rpcReply struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

var errRPCAnswer = errors.New("the answer is not that of the call")

func newCall(method string, params ...any) rpcCall {
	return rpcCall{Version: "2.0", Method: method, Params: params}
}

// rpc makes one call and decodes its result.
func (s *tronSource) rpc(ctx context.Context, c rpcCall, into any) error {
	var failed *rpcError
	err := s.call(ctx, http.MethodPost, rpcPath, nil, c, maxLogs, func(body []byte) error {
		var reply rpcReply
		if err := json.Unmarshal(body, &reply); err != nil {
			return err
		}
		if failed = reply.Error; failed != nil {
			return nil
		}
		if reply.ID == nil || *reply.ID != c.ID {
			return errRPCAnswer
		}
		return reply.decode(into)
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%s: %s: %w", s.network, c.Method, failed)
	}
	return err
}

// batch makes some calls in one request, which one node answers, and decodes each
// result. One that fails fails all.
func (s *tronSource) batch(ctx context.Context, calls []rpcCall, into []any) error {
	for i := range calls {
		calls[i].ID = i
	}
	var failed error
	err := s.call(ctx, http.MethodPost, rpcPath, nil, calls, maxLogs, func(body []byte) error {
		var replies []rpcReply
		if err := json.Unmarshal(body, &replies); err != nil {
			return err
		}
		answered := make([]bool, len(calls))
		for _, r := range replies {
			if r.ID == nil || *r.ID < 0 || *r.ID >= len(calls) || answered[*r.ID] {
				return errRPCAnswer
			}
			answered[*r.ID] = true
			if r.Error != nil {
				failed = fmt.Errorf("%s: %s: %w", s.network, calls[*r.ID].Method, r.Error)
				continue
			}
			if err := r.decode(into[*r.ID]); err != nil {
				return err
			}
		}
		if len(replies) != len(calls) {
			return errRPCAnswer
		}
		return nil
	})
	return errors.Join(err, failed)
}

func (r rpcReply) decode(into any) error {
	if len(r.Result) == 0 {
		return errRPCAnswer
	}
	return json.Unmarshal(r.Result, into)
}

// hexInt is a number in hexadecimal with 0x.
type hexInt int64

func (n *hexInt) UnmarshalJSON(b []byte) error {
	digits, ok := strings.CutPrefix(string(bytes.Trim(b, `"`)), "0x")
	v, err := strconv.ParseInt(digits, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("%q is not a number in hexadecimal", excerpt(string(b)))
	}
	*n = hexInt(v)
	return nil
}

func (n hexInt) String() string { return "0x" + strconv.FormatInt(int64(n), 16) }

// rpcBlock has the fields used of a block.
type rpcBlock struct {
	Number hexInt `json:"number"`
	Time   hexInt `json:"timestamp"` // s
}

// rpcLog is an event as eth_getLogs and a receipt list it.
type rpcLog struct {
	Address string   `json:"address"`
	Topics  []string `json:"topics"`
	Data    string   `json:"data"`
	Block   hexInt   `json:"blockNumber"`
	Hash    string   `json:"blockHash"`
	Time    *hexInt  `json:"blockTimestamp"` // s; older nodes leave it out
	TxID    string   `json:"transactionHash"`
	Removed bool     `json:"removed"`
}

// event returns the log as receipts of the other API have it, without 0x.
func (l *rpcLog) event() tronLog {
	e := tronLog{Address: strings.TrimPrefix(l.Address, "0x"), Data: strings.TrimPrefix(l.Data, "0x")}
	for _, topic := range l.Topics {
		e.Topics = append(e.Topics, strings.TrimPrefix(topic, "0x"))
	}
	return e
}
