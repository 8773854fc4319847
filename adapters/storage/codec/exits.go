package codec

import (
	"encoding/binary"
	"net/netip"

	"agentproxy/domain/exitlog"
)

// MaxExits is the largest number of connections in a chunk of the exit log.
const MaxExits = 2000

// exitsVersion begins a chunk: version, then for each connection its number, the texts as in a
// chunk of events, the addresses with their ports, the times and the bytes. Integers are
// varints, times the distance from the one before.
const exitsVersion = 1

// AppendExits appends a chunk of at most MaxExits connections to b. Their replica is not part
// of it.
func AppendExits(b []byte, list []exitlog.Connection) []byte {
	w := chunkWriter{b: append(b, exitsVersion), numbers: map[string]uint64{"": 1}}
	last := int64(0)
	for i := range list {
		c := &list[i]
		w.b = binary.AppendUvarint(w.b, c.Number)
		for _, s := range [...]string{c.Agent, c.Session, c.Worker, c.Host, c.Seller, c.Token, string(c.End)} {
			w.text(s)
		}
		w.address(c.Client)
		w.address(c.Target)
		w.address(c.Exit)
		opened, closed := micros(c.Opened), micros(c.Closed)
		w.int(opened - last)
		if closed != 0 {
			closed = max(closed-opened, 0) + 1 // 0 is one that is open
		}
		w.int(closed)
		w.int(micros(c.Seen) - opened)
		w.int(c.Bytes)
		last = opened
	}
	return w.b
}

func (w *chunkWriter) address(a netip.AddrPort) {
	text, _ := a.Addr().MarshalBinary() // it never fails
	w.b = append(append(w.b, byte(len(text))), text...)
	w.b = binary.AppendUvarint(w.b, uint64(a.Port()))
}

// DecodeExits calls fn for each connection of a chunk. It returns an error for bytes that
// AppendExits cannot have written.
func DecodeExits(b []byte, fn func(exitlog.Connection)) error {
	r := chunkReader{b: b, texts: []string{""}}
	if r.byte() != exitsVersion {
		return errChunk
	}
	last := int64(0)
	for n := 0; len(r.b) > 0; n++ {
		c, opened := r.exit(last)
		if r.damaged || n == MaxExits {
			return errChunk
		}
		fn(c)
		last = opened
	}
	return nil
}

func (r *chunkReader) exit(last int64) (exitlog.Connection, int64) {
	c := exitlog.Connection{Number: r.uint()}
	var end string
	for _, s := range [...]*string{&c.Agent, &c.Session, &c.Worker, &c.Host, &c.Seller, &c.Token, &end} {
		*s = r.text()
	}
	c.End = exitlog.End(end)
	c.Client, c.Target, c.Exit = r.address(), r.address(), r.address()
	opened := last + r.int()
	c.Opened = fromMicros(opened)
	if closed := r.int(); closed != 0 {
		c.Closed = fromMicros(opened + closed - 1)
	}
	c.Seen, c.Bytes = fromMicros(opened+r.int()), r.int()
	return c, opened
}

func (r *chunkReader) address() netip.AddrPort {
	var a netip.Addr
	if err := a.UnmarshalBinary(r.take(uint64(r.byte()))); err != nil {
		r.damaged = true
	}
	port := r.uint()
	r.damaged = r.damaged || port > 1<<16-1
	return netip.AddrPortFrom(a, uint16(port))
}
