// Package column has how values are stored, and the columns of rows that hand-written statements
// read and write. The struct of a row is its one definition: its fields are the columns, in their
// order, with the names that GORM gives them. The fields of an embedded struct come in its place.
package column

import (
	"net/netip"
	"time"
)

// Micros returns how a time is stored: microseconds, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Time returns the time, in UTC, that is stored as n microseconds: 0 is the zero time.
func Time(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Flag returns how a boolean is stored.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Bytes returns b, and an empty slice for nil, which would become NULL.
func Bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Address returns how an address is stored: 16 bytes, so that a network is a range of them;
// none for no address.
func Address(a netip.Addr) []byte {
	if !a.IsValid() {
		return []byte{}
	}
	b := a.As16()
	return b[:]
}

// Addr returns the address that is stored as b, the zero Addr for none.
func Addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// AddressRange returns the first and the last address of a network, as they are stored.
func AddressRange(p netip.Prefix) (first, last []byte) {
	b, bits := p.Masked().Addr().As16(), p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	end := b
	for i := bits; i < 128; i++ {
		end[i/8] |= 1 << (7 - i%8)
	}
	return b[:], end[:]
}
