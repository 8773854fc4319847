package policy

import "hash/maphash"

// hosts is a set of names. A million of them take the bytes of the names and about ten more
// each: one text and a hash table of places in it, without a pointer for the garbage
// collector to follow. The hash is seeded, so that names that collide cannot be chosen.
type hosts struct {
	text  []byte   // each name behind its length
	table []uint32 // places in text plus 1, by open addressing; 0 is free
	n     int
}

var seed = maphash.MakeSeed()

// has reports whether a name is in the set.
func (h *hosts) has(name string) bool {
	return h.n > 0 && name != "" && h.table[h.slot(name)] != 0
}

// slot returns the place in the table where a name is or would be.
func (h *hosts) slot(name string) uint64 {
	mask := uint64(len(h.table) - 1)
	for i := maphash.String(seed, name) & mask; ; i = (i + 1) & mask {
		if at := h.table[i]; at == 0 || string(h.at(at)) == name {
			return i
		}
	}
}

// at returns the name at a place.
func (h *hosts) at(place uint32) []byte {
	length := uint32(h.text[place-1])
	return h.text[place : place+length]
}

// add adds a name of 1 to 255 bytes.
func (h *hosts) add(name string) {
	if (h.n+1)*4 > len(h.table)*3 {
		h.grow()
	}
	i := h.slot(name)
	if h.table[i] != 0 {
		return
	}
	h.table[i] = uint32(len(h.text) + 1)
	h.text = append(append(h.text, byte(len(name))), name...)
	h.n++
}

// grow doubles the table.
func (h *hosts) grow() {
	old := h.table
	h.table = make([]uint32, max(8, 2*len(old)))
	for _, place := range old {
		if place != 0 {
			h.table[h.slot(string(h.at(place)))] = place
		}
	}
}
