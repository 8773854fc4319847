package system

import (
	"crypto/rand"
	"encoding/base32"
	"sync"

	"agentproxy/ports"
)

// An id takes 13 random bytes, of which its 20 characters of 5 bits show the
// first 100 bits.
const (
	idLength = 20
	idBytes  = 13
)

var idText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// IDs generates ids of 100 random bits. Its zero value is ready and may be used by
// many goroutines. It reads random bytes for 64 ids at a time, because one read
// from the kernel costs more than generating the id.
type IDs struct {
	mu    sync.Mutex
	block [64 * idBytes]byte
	rest  []byte // the part of block not yet used
}

var _ ports.IDs = (*IDs)(nil)

// New returns the prefix and 20 characters of a-z and 2-7.
func (g *IDs) New(prefix string) string {
	var text [(idBytes*8 + 4) / 5]byte
	g.mu.Lock()
	if len(g.rest) == 0 {
		rand.Read(g.block[:]) // never fails: it ends the process instead
		g.rest = g.block[:]
	}
	idText.Encode(text[:], g.rest[:idBytes])
	g.rest = g.rest[idBytes:]
	g.mu.Unlock()
	return prefix + string(text[:idLength])
}
