package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// tronReceipt has the fields used of a transaction's receipt.
type tronReceipt struct {
	ID    string `json:"id"`
	Block int64  `json:"blockNumber"`
	Time  int64  `json:"blockTimeStamp"` // ms
	// Result is an enumeration whose zero is left out: only "FAILED" appears.
	Result  string `json:"result"`
	Receipt struct {
		Result string `json:"result"` // of the contract call
	} `json:"receipt"`
	Log []tronLog `json:"log"`
}

// tronLog is an event. A contract can emit any event, so only those of the
// token count.
type tronLog struct {
	Address string   `json:"address"` // 20 bytes, without the prefix
	Topics  []string `json:"topics"`
	Data    string   `json:"data"`
}

const (
	// transferTopic is the Keccak hash of Transfer(address,address,uint256).
	transferTopic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
	tronPrefix    = "41" // of an address, in hexadecimal
)

var errReceipt = errors.New("no id, block or time")

// check refuses what is not the receipt of a transaction and writes the id in its normal form.
func (r *tronReceipt) check(txID string) error {
	id, ok := normalTx(r.ID)
	if !ok || r.Block < 0 || r.Time <= 0 {
		return errReceipt
	}
	if r.ID = id; id != txID {
		return fmt.Errorf("it is that of %s", id)
	}
	return nil
}

// appendTransfers appends the token's Transfer events of a receipt. A call that
// failed moved nothing, whatever its other fields are.
func (t *Tron) appendTransfers(list []recharge.Transfer, r *tronReceipt, state recharge.State) []recharge.Transfer {
	if r.Receipt.Result != "SUCCESS" || r.Result == "FAILED" {
		return list
	}
	for i := range r.Log {
		l := &r.Log[i]
		if !t.isTransfer(l) {
			continue
		}
		tr := recharge.Transfer{Key: recharge.Key{Network: t.network, TxID: r.ID, LogIndex: i},
			Block: r.Block, BlockTime: time.UnixMilli(r.Time).UTC(), State: state}
		from, okFrom := topicAddress(l.Topics[1])
		to, okTo := topicAddress(l.Topics[2])
		if !okFrom || !okTo {
			t.log.Warn("a transfer of the token has a party that is not an address", "network", t.network, "tx", r.ID, "log", i)
			continue
		}
		var word [32]byte
		whole := decodeHex(word[:], l.Data)
		amount, small := smallAmount(&word)
		switch {
		case !whole:
			tr.State, tr.Note = recharge.Ignored, "the amount is not 32 bytes"
		case !small:
			tr.State, tr.Note = recharge.Ignored, "the amount is above what USDT can have"
		case amount == 0:
			continue
		}
		tr.From, tr.To, tr.Amount = encodeAddress(from), encodeAddress(to), amount
		list = append(list, tr)
	}
	return list
}

// isTransfer reports whether an event is the token's own Transfer (TIP-20). It
// compares the contract, because any token may have the name and the symbol.
func (t *Tron) isTransfer(l *tronLog) bool {
	if len(l.Topics) != 3 || !strings.EqualFold(l.Topics[0], transferTopic) {
		return false
	}
	var contract [20]byte
	text := l.Address
	if len(text) == 42 && strings.HasPrefix(text, tronPrefix) {
		text = text[2:]
	}
	return decodeHex(contract[:], text) && contract == t.contract
}

// topicAddress decodes an address padded to 32 bytes, with or without the
// prefix 0x41.
func topicAddress(topic string) (b [20]byte, ok bool) {
	var word [32]byte
	if !decodeHex(word[:], topic) || [11]byte(word[:11]) != [11]byte{} || word[11] != 0 && word[11] != addressPrefix {
		return b, false
	}
	return [20]byte(word[12:]), true
}

// smallAmount decodes a uint256. It returns false if it exceeds domain.Money.
func smallAmount(word *[32]byte) (domain.Money, bool) {
	low := binary.BigEndian.Uint64(word[24:])
	if [24]byte(word[:24]) != [24]byte{} || low > math.MaxInt64 {
		return 0, false
	}
	return domain.Money(low), true
}

// normalTx returns a transaction id as 64 lower case digits, or false.
func normalTx(id string) (string, bool) {
	var b [32]byte
	if !decodeHex(b[:], id) {
		return "", false
	}
	return strings.ToLower(id), true
}

// decodeHex decodes text into dst and reports whether it had exactly that
// length. It does not allocate: a block has thousands of these.
func decodeHex(dst []byte, text string) bool {
	if len(text) != 2*len(dst) {
		return false
	}
	for i := range dst {
		high, low := nibble(text[2*i]), nibble(text[2*i+1])
		if high|low > 0xf {
			return false
		}
		dst[i] = high<<4 | low
	}
	return true
}

// nibble returns the value of a hexadecimal digit, or a number above 15.
func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}
