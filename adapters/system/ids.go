package system

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync"
	"time"

	"agentproxy/ports"
)

// An id shows a number of 103 bits: the span of time that it was made in, and behind it 96 random bits. 20 digits to
// the base 36 hold 103.4 bits.
const (
	idLength = 20
	idBytes  = 12
	// Ids of one span are neighbours in an index, so that a batch writes few of its pages. After spans of them, which
	// is a second, they begin again: what is left of the 20 characters has no more room.
	spans    = 128
	spanTime = 8 * time.Millisecond
)

// half is 36^12, by which a number is split into what shows the first 8 digits and what shows the last 12. Both fit 64
// bits.
const half = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36

const digits = "0123456789abcdefghijklmnopqrstuvwxyz"

// IDs generates ids of 96 random bits. Its zero value is ready and may be used by
// many goroutines. It reads random bytes for 64 ids at a time, because one read
// from the kernel costs more than generating the id.
type IDs struct {
	mu    sync.Mutex
	block [64 * idBytes]byte
	rest  []byte // the part of block not yet used
}

var _ ports.IDs = (*IDs)(nil)

// New returns the prefix and 20 characters of 0-9 and a-z.
func (g *IDs) New(prefix string) string {
	span := uint64(time.Now().UnixMilli()/spanTime.Milliseconds()) % spans
	g.mu.Lock()
	if len(g.rest) == 0 {
		rand.Read(g.block[:]) // never fails: it ends the process instead
		g.rest = g.block[:]
	}
	random := [idBytes]byte(g.rest)
	g.rest = g.rest[idBytes:]
	g.mu.Unlock()
	return newID(prefix, span, random)
}

func newID(prefix string, span uint64, random [idBytes]byte) string {
	high, low := uint64(binary.BigEndian.Uint32(random[:])), binary.BigEndian.Uint64(random[4:])
	first, last := bits.Div64(span<<32|high, low, half)
	text := make([]byte, len(prefix)+idLength)
	copy(text, prefix)
	show(text[len(prefix):len(prefix)+8], first)
	show(text[len(prefix)+8:], last)
	return string(text)
}

// show writes a number to the base 36, with zeros in front.
func show(text []byte, n uint64) {
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[n%36]
		n /= 36
	}
}
