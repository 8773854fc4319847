package health

import (
	"encoding/binary"
	"math"
)

// encodingVersion is the first byte of an encoded State. A change of the layout
// or of what a field means takes the next number, and decoding keeps the old.
const encodingVersion = 1

// typicalSize is the room for a State with a dozen hosts and a spread of
// latencies; a larger one grows the buffer once.
const typicalSize = 768

// MarshalBinary encodes the state for storage, a few hundred bytes as a rule.
// The error is always nil.
func (s *State) MarshalBinary() ([]byte, error) {
	return s.AppendBinary(make([]byte, 0, typicalSize))
}

// AppendBinary appends what MarshalBinary returns. Integers are varints, weights
// the eight bytes of a float64, little endian; tables hold what is not zero. The
// names of the hosts are at the end, so that decoding allocates once.
func (s *State) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, encodingVersion, s.announced, s.streak)
	for _, weight := range s.bad {
		b = appendFloat(b, weight)
	}
	b = appendFloat(b, s.all)
	b = appendMicros(b, s.lastAt)
	for _, at := range s.lastOf {
		b = appendMicros(b, at)
	}
	for _, at := range s.unhelpful {
		b = appendMicros(b, at)
	}
	b = s.recent.append(b)
	b = binary.AppendUvarint(b, s.rotations)
	if s.rotations > 0 { // before the first one the past is empty
		b = s.past.append(b)
	}
	b = s.exit.append(b)
	return s.hosts.append(b), nil
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

func appendMicros(b []byte, at micros) []byte { return binary.AppendUvarint(b, uint64(at)) }

// append writes the head and, for each second that has reports, the newest
// first, its age and their number.
func (c *reportCap) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(c.head))
	b = append(b, c.sum)
	left := c.sum
	for age := int64(0); left > 0; age++ {
		if n := *c.at(age); n > 0 {
			b = append(b, byte(age), n)
			left -= n
		}
	}
	return b
}

func (t *tally) append(b []byte) []byte {
	b = binary.AppendUvarint(b, t.scored)
	b = binary.AppendUvarint(b, t.good)
	b = t.reported.append(b)
	b = t.latency.append(b)
	return t.observed.append(b)
}

func (c *counts) append(b []byte) []byte {
	for _, n := range c.byType {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, c.codes.n)
	for _, row := range c.codes.rows[:c.codes.n] {
		b = binary.AppendUvarint(b, uint64(row.code))
		b = binary.AppendUvarint(b, uint64(row.events))
	}
	b = binary.AppendUvarint(b, c.codes.other)
	return appendMicros(b, c.lastAt)
}

// append writes each bucket that is not empty as its distance to the one before
// and its number. A distance of 0 ends the list: the first bucket is at 1.
func (l *latencies) append(b []byte) []byte {
	previous := -1
	if !l.empty() {
		for i, n := range l.buckets[:bucketOf(l.max)+1] {
			if n > 0 {
				b = binary.AppendUvarint(b, uint64(i-previous))
				b = binary.AppendUvarint(b, uint64(n))
				previous = i
			}
		}
	}
	b = append(b, 0)
	if l.empty() {
		return b
	}
	b = binary.AppendUvarint(b, l.sum)
	b = binary.AppendUvarint(b, uint64(l.min))
	return binary.AppendUvarint(b, uint64(l.max))
}

func (t *hostTable) append(b []byte) []byte {
	b = append(b, t.n)
	for _, row := range t.rows[:t.n] {
		b = append(b, byte(len(row.host))) // at most MaxHost
		b = binary.AppendUvarint(b, uint64(row.events))
		b = appendFloat(b, row.bad)
	}
	for _, row := range t.rows[:t.n] {
		b = append(b, row.host...)
	}
	return b
}
