// Package trongrid is a fake of TronGrid, and by /jsonrpc of a java-tron node: it serves the
// documented calls for a chain that the test scripts, and has every known failure of the real one.
//
//	grid := trongrid.Start(t)                  // or New, which is an http.Handler without a socket
//	tx := grid.Send(from, to, 10_000_000)      // waits for the next block
//	grid.Mine(1)                               // now it is in a block and in the index, but not final
//	grid.Mine(trongrid.Gap)                    // now it is final
//	grid.Fail("/v1/", trongrid.TooMany, 1)     // the next call of that prefix is refused
//
// A block takes 3 seconds of chain time, and the solid head follows Gap blocks behind unless Stall
// holds it. Chain time is not the clock: At sets the time of the next block.
package trongrid

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/btcsuite/btcd/btcutil/base58"
)

// Gap is the number of blocks that the solid head is behind.
const Gap = 19

const (
	// USDT is the token of the main network.
	USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
	// Every is the time between blocks.
	Every = 3 * time.Second

	first         = 60_000_000 // number of the first block
	history       = Gap + 1    // number of blocks of New
	prefix        = 0x41
	transferTopic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
	approvalTopic = "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7b925b3"
)

// Log is an event of a transaction in the form of a receipt: hexadecimal, with an address
// without its prefix. It is not checked.
type Log struct {
	Address string
	Topics  []string
	Data    string
	// NoTokenInfo lists it in the index with token_info {}.
	NoTokenInfo bool
}

// Tx is a transaction.
type Tx struct {
	ID     string // empty: generated
	Logs   []Log
	Result string // of the contract call; empty: SUCCESS
	Failed bool   // also marks the whole transaction as failed
}

type transaction struct {
	Tx
	block  int64
	time   time.Time
	listed bool // in the index
	held   bool // not in the answers of eth_getLogs
}

type block struct {
	number int64
	made   int64 // counts all blocks, also those that a fork replaced
	time   time.Time
	txs    []*transaction
}

// Call is a request that was made.
type Call struct {
	At    time.Time
	Path  string
	Query string
	Key   string // the header TRON-PRO-API-KEY
	// Methods are those of JSON-RPC, one for each call of a batch.
	Methods []string
}

// Count returns the number of calls, each of a batch counted.
func (c Call) Count() int { return max(len(c.Methods), 1) }

// mark is where the next page begins, and the parameters that have to stay the same for it.
type mark struct {
	end   int
	query string
}

// Server is the fake. It may be used by many goroutines.
type Server struct {
	// URL is set by Start.
	URL string

	mu      sync.Mutex
	token   string
	blocks  []block
	solid   int64
	stalled bool
	next    time.Time
	pending []*transaction
	rows    []Row
	late    bool
	made    uint64
	skew    map[string]int64
	coins   map[string]int64 // TRX by hexadecimal address, in millionths
	faults  []*fault
	calls   []Call
	marks   map[string]mark // by fingerprint

	quota    *quota // nil: none
	live     bool
	mined    int64
	hold     bool
	lag      int64
	mostLogs int
}

// Start serves a new chain on a loopback port until the test ends.
func Start(t testing.TB) *Server { return StartAt(t, first) }

// StartAt is like Start with the number of the first block.
func StartAt(t testing.TB, number int64) *Server {
	s := newAt(number)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	t.Cleanup(s.Heal) // ends slow answers
	s.URL = h.URL
	return s
}

// New returns a chain of some empty blocks that ends about now. It is an http.Handler.
func New() *Server { return newAt(first) }

func newAt(first int64) *Server {
	s := &Server{token: USDT, skew: map[string]int64{}, marks: map[string]mark{}, mostLogs: 10_000}
	s.next = time.Now().UTC().Truncate(Every).Add(-history * Every)
	s.blocks = []block{{number: first, time: s.next}}
	s.next = s.next.Add(Every)
	s.solid = first
	s.Mine(history)
	return s
}

// SetToken sets the contract of Send and of balances.
func (s *Server) SetToken(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = address
}

// Send moves the token in the next block and returns the id of the transaction, whose log
// 0 is the transfer.
func (s *Server) Send(from, to string, amount int64) string {
	s.mu.Lock()
	token := s.token
	s.mu.Unlock()
	return s.Submit(Tx{Logs: []Log{Transfer(token, from, to, big.NewInt(amount))}})
}

// Submit adds a transaction to the next block and returns its id.
func (s *Server) Submit(tx Tx) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.ID == "" {
		s.made++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("tx"), s.made))
		tx.ID = hex.EncodeToString(sum[:])
	}
	s.pending = append(s.pending, &transaction{Tx: tx})
	return tx.ID
}

// Mine adds n blocks; the first contains what is pending.
func (s *Server) Mine(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.mined++
		b := block{number: s.latest().number + 1, made: s.mined, time: s.next, txs: s.pending}
		s.pending, s.next = nil, s.next.Add(Every)
		for _, tx := range b.txs {
			tx.block, tx.time, tx.listed, tx.held = b.number, b.time, !s.late, s.hold
		}
		s.blocks = append(s.blocks, b)
		if !s.stalled {
			s.solid = max(s.solid, b.number-Gap)
		}
	}
}

// At sets the time of the next block, which must be later than the last.
func (s *Server) At(next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !next.After(s.latest().time) {
		panic(fmt.Sprintf("trongrid: a block at %s after one at %s", next, s.latest().time))
	}
	s.next = next.UTC().Truncate(time.Millisecond)
}

// Solidify makes every block final.
func (s *Server) Solidify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.solid = s.latest().number
}

// Stall sets whether the solid head stays where it is.
func (s *Server) Stall(hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = hold
	if !hold {
		s.solid = max(s.solid, s.latest().number-Gap)
	}
}

// Reorg replaces the last n blocks that are not solid by n+1 empty ones. It returns their
// transactions, which may be submitted again.
func (s *Server) Reorg(n int) []Tx {
	s.mu.Lock()
	var gone []Tx
	replaced := 0
	for ; replaced < n && s.latest().number > s.solid; replaced++ {
		for _, tx := range s.latest().txs {
			gone = append(gone, tx.Tx)
		}
		s.next = s.latest().time
		s.blocks = s.blocks[:len(s.blocks)-1]
	}
	waiting := s.pending
	s.pending = nil
	s.mu.Unlock()
	s.Mine(replaced + 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(waiting, s.pending...)
	return gone
}

// HoldIndex omits transactions that are mined from now on from the index until
// ReleaseIndex. Receipts and blocks have them.
func (s *Server) HoldIndex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = true
}

// ReleaseIndex adds all held transactions to the index.
func (s *Server) ReleaseIndex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = false
	for _, b := range s.blocks {
		for _, tx := range b.txs {
			tx.listed = true
		}
	}
}

// Skew adds an amount without a transfer to the balance of an address.
func (s *Server) Skew(address string, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew[address] += amount
}

// Head returns the number and the time of the latest block.
func (s *Server) Head() (int64, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest().number, s.latest().time
}

// Solid returns the number of the solid head.
func (s *Server) Solid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.solid
}

// Calls returns the calls so far, including refused ones.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Forget deletes the calls so far.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// RoundTrip answers without a socket, so that a test can run in a bubble of
// testing/synctest. Cut needs a socket.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil { // the caller left before the answer
		return nil, err
	}
	res := w.Result()
	res.Request = r
	return res, nil
}

// Transfer returns the event of a transfer of a token.
func Transfer(token, from, to string, amount *big.Int) Log {
	return event(transferTopic, token, from, to, amount)
}

// Approval returns an event that looks like a transfer and moves nothing.
func Approval(token, owner, spender string, amount *big.Int) Log {
	return event(approvalTopic, token, owner, spender, amount)
}

func event(topic, token, from, to string, amount *big.Int) Log {
	return Log{Address: hexAddress(token), Topics: []string{topic, word(hexAddress(from)), word(hexAddress(to))},
		Data: word(amount.Text(16))}
}

// Address returns the n-th of an endless series of valid addresses.
func Address(n int) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("address"), uint64(n)))
	return base58.CheckEncode(sum[:20], prefix)
}

func (s *Server) latest() *block { return &s.blocks[len(s.blocks)-1] }

// hexAddress returns an address in hexadecimal without the prefix.
func hexAddress(address string) string {
	b, version, err := base58.CheckDecode(address)
	if err != nil || version != prefix || len(b) != 20 {
		panic("trongrid: " + address + " is no address")
	}
	return hex.EncodeToString(b)
}

func textAddress(digits string) string {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) < 20 {
		return ""
	}
	return base58.CheckEncode(b[len(b)-20:], prefix)
}

// word pads hexadecimal digits to 32 bytes.
func word(digits string) string { return fmt.Sprintf("%064s", digits) }
