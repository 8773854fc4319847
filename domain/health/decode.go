package health

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrCorrupt is returned for bytes that are not an encoded State.
var ErrCorrupt = errors.New("health: corrupt state")

// UnmarshalBinary reads what MarshalBinary wrote. It keeps nothing of data. All
// else is ErrCorrupt, and the state is then a fresh one.
func (s *State) UnmarshalBinary(data []byte) error {
	r := reader{rest: data}
	*s = State{}
	if r.byte(math.MaxUint8) != encodingVersion {
		return ErrCorrupt
	}
	s.read(&r)
	if r.failed {
		*s = State{}
		return ErrCorrupt
	}
	return nil
}

func (s *State) read(r *reader) {
	s.announced = s.Summary.read(r)
	for i := range s.lastOf {
		s.lastOf[i] = r.micros()
	}
	for i := range s.unhelpful {
		s.unhelpful[i] = r.micros()
	}
	s.recent.read(r)
	s.rotations = r.uvarint(math.MaxInt64)
	if s.rotations > 0 {
		s.past.read(r)
	}
	s.exit.read(r)
	s.hosts.read(r)
}

func (w *weights) read(r *reader) {
	for i := range w.bad {
		w.bad[i] = r.weight()
	}
	w.all = r.weight()
	r.require(w.badness() <= w.all+1e-6) // no event costs more than 1
}

func (c *reportCap) read(r *reader) {
	c.head = int64(r.uvarint(uint64(lastMoment / second)))
	c.sum = r.byte(reportsPerMinute)
	next := uint8(0)
	for left := c.sum; left > 0 && !r.failed; {
		age := r.byte(capSeconds - 1)
		n := r.byte(left)
		r.require(age >= next && n > 0)
		*c.at(int64(age)) = n
		next, left = age+1, left-n
	}
}

func (t *tally) read(r *reader) {
	t.scored = r.uvarint(math.MaxInt64)
	t.good = r.uvarint(t.scored)
	t.reported.read(r)
	t.latency.read(r)
	t.observed.read(r)
}

func (c *counts) read(r *reader) {
	for i := range c.byType {
		c.byType[i] = r.uvarint(math.MaxInt64)
	}
	c.codes.n = r.byte(codesKept)
	for i := range c.codes.rows[:c.codes.n] {
		code, events := r.uvarint(MaxStatusCode), r.uvarint(math.MaxUint32)
		r.require(code > 0 && events > 0)
		c.codes.rows[i] = codeRow{uint16(code), uint32(events)}
	}
	c.codes.other = r.uvarint(math.MaxInt64)
	c.lastAt = r.micros()
}

func (l *latencies) read(r *reader) {
	first, last := -1, -1
	for step := r.uvarint(latencyBuckets); step > 0; step = r.uvarint(latencyBuckets) {
		if last += int(step); last >= latencyBuckets {
			r.fail()
			return
		}
		if first < 0 {
			first = last
		}
		l.buckets[last] = uint32(r.uvarint(math.MaxUint32))
		r.require(l.buckets[last] > 0)
	}
	if last < 0 {
		return
	}
	l.sum = r.uvarint(math.MaxInt64)
	l.min = uint32(r.uvarint(MaxLatencyMS))
	l.max = uint32(r.uvarint(MaxLatencyMS))
	r.require(l.min <= l.max && bucketOf(l.min) == first && bucketOf(l.max) == last)
}

func (t *hostTable) read(r *reader) {
	t.n = r.byte(hostsKept)
	var sizes [hostsKept]uint8
	for i := range t.rows[:t.n] {
		sizes[i] = r.byte(MaxHost)
		r.require(sizes[i] > 0)
		t.rows[i].events = uint32(r.uvarint(math.MaxUint32))
		t.rows[i].bad = r.weight()
	}
	names := string(r.rest)
	for i := range t.rows[:t.n] {
		size := int(sizes[i])
		if size > len(names) {
			r.fail()
			return
		}
		t.rows[i].host, names = names[:size], names[size:]
	}
	r.require(names == "")
}

// reader decodes a State. After the first fault every read is 0.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) fail() { r.rest, r.failed = nil, true }

func (r *reader) require(ok bool) {
	if !ok {
		r.fail()
	}
}

func (r *reader) byte(limit uint8) uint8 {
	if len(r.rest) == 0 || r.rest[0] > limit {
		r.fail()
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reader) uvarint(limit uint64) uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 && uint64(r.rest[0]) <= limit { // most are one byte
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, size := binary.Uvarint(r.rest)
	if size <= 0 || v > limit {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return v
}

func (r *reader) micros() micros { return micros(r.uvarint(uint64(lastMoment))) }

// weight reads a float64 that a weight can be; NaN fails the comparison.
func (r *reader) weight() float64 {
	if len(r.rest) < 8 {
		r.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
	if !(v >= 0 && v <= maxWeight) {
		r.fail()
		return 0
	}
	r.rest = r.rest[8:]
	return v
}
