// Package codec encodes what storage keeps as bytes.
package codec

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"agentproxy/domain/eventlog"
)

// A chunk of events is one value:
//
//	version, then for each event: flags, id, at, [occurred at], type, host,
//	status, latency, [code, bytes, exit, message, how to fix], [count], [worker]
//
// Version 1 has no counts and no workers, version 2 has no workers; the least that does is written.
//
// Integers are varints, times the distance from the event before. A string that
// occurred before in the chunk is its number in the order of first appearance; 0
// announces a new one, length first, and the empty one is number 1. An id as
// ports.IDs makes it, evt_ and 20 letters and digits, takes its 104 bits. So an
// event takes some 25 bytes, most of them the id.
const chunkVersion, countedVersion, workersVersion = 1, 2, 3

// MaxEvents is the largest number of events in a chunk.
const MaxEvents = 1000

// The flags of an event; the two lowest bits are the source.
const (
	flagSource    = 0b11
	flagRetryable = 1 << 2
	flagPacked    = 1 << 3 // the id is packed
	flagOccurred  = 1 << 4 // the agent reported when it happened
	flagMore      = 1 << 5 // code, bytes, exit, message and how to fix follow
	flagCount     = 1 << 6 // how many equal events it counts follows
	flagWorker    = 1 << 7 // its worker follows
)

const (
	idHalf = 10 // characters; 36^10 < 2^52
)

var errChunk = errors.New("a chunk of events is damaged")

type chunkWriter struct {
	b       []byte
	numbers map[string]uint64
}

// AppendEvents appends a chunk of at most MaxEvents events to b.
func AppendEvents(b []byte, events []eventlog.Event) []byte {
	version := byte(chunkVersion)
	if slices.ContainsFunc(events, func(e eventlog.Event) bool { return e.Count > 1 }) {
		version = countedVersion
	}
	if slices.ContainsFunc(events, func(e eventlog.Event) bool { return e.Worker != "" }) {
		version = workersVersion
	}
	w := chunkWriter{b: append(b, version), numbers: map[string]uint64{"": 1}}
	last := int64(0)
	for i := range events {
		last = w.event(&events[i], last)
	}
	return w.b
}

func (w *chunkWriter) event(e *eventlog.Event, last int64) int64 {
	hi, lo, packed := packID(e.ID)
	more := e.Code != "" || e.Bytes != 0 || e.ExitIP != "" || e.Message != "" || e.HowToFix != ""
	flags := byte(e.Source) & flagSource
	for _, f := range [...]struct {
		on  bool
		bit byte
	}{{e.Retryable, flagRetryable}, {packed, flagPacked}, {!e.OccurredAt.IsZero(), flagOccurred}, {more, flagMore},
		{e.Count > 1, flagCount}, {e.Worker != "", flagWorker}} {
		if f.on {
			flags |= f.bit
		}
	}
	w.b = append(w.b, flags)
	if packed {
		w.b = append(w.b, byte(hi>>48)<<4|byte(lo>>48))
		w.b = append48(append48(w.b, hi), lo)
	} else {
		w.b = append(binary.AppendUvarint(w.b, uint64(len(e.ID))), e.ID...)
	}
	at := micros(e.At)
	w.int(at - last)
	if flags&flagOccurred != 0 {
		w.int(micros(e.OccurredAt) - at)
	}
	w.text(e.Type)
	w.text(e.TargetHost)
	w.int(int64(e.StatusCode))
	w.int(int64(e.LatencyMS))
	if more {
		w.text(e.Code)
		w.int(e.Bytes)
		w.text(e.ExitIP)
		w.text(e.Message)
		w.text(e.HowToFix)
	}
	if flags&flagCount != 0 {
		w.int(int64(e.Count))
	}
	if flags&flagWorker != 0 {
		w.text(e.Worker)
	}
	return at
}

func (w *chunkWriter) int(n int64) { w.b = binary.AppendVarint(w.b, n) }

func (w *chunkWriter) text(s string) {
	number, known := w.numbers[s]
	w.b = binary.AppendUvarint(w.b, number)
	if known {
		return
	}
	w.numbers[s] = uint64(len(w.numbers)) + 1
	w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...)
}

func append48(b []byte, n uint64) []byte {
	return append(b, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// packID returns the 20 characters of an id as two numbers of base 36, and false for another id.
func packID(id string) (hi, lo uint64, ok bool) {
	digits, found := strings.CutPrefix(id, eventlog.IDPrefix)
	if !found || len(digits) != 2*idHalf {
		return 0, 0, false
	}
	var halves [2]uint64
	for i := range len(digits) {
		c := uint64(digits[i])
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 10
		default:
			return 0, 0, false
		}
		halves[i/idHalf] = halves[i/idHalf]*36 + c
	}
	return halves[0], halves[1], true
}

func unpackID(hi, lo uint64) string {
	var b [len(eventlog.IDPrefix) + 2*idHalf]byte
	copy(b[:], eventlog.IDPrefix)
	for i, n := range [2]uint64{hi, lo} {
		for at := len(eventlog.IDPrefix) + (i+1)*idHalf - 1; at >= len(eventlog.IDPrefix)+i*idHalf; at-- {
			b[at] = "0123456789abcdefghijklmnopqrstuvwxyz"[n%36]
			n /= 36
		}
	}
	return string(b[:])
}

// chunkReader decodes a chunk. After a fault it reads zeros.
type chunkReader struct {
	b       []byte
	texts   []string
	damaged bool
	counted bool // events may have a count
	workers bool // events may have a worker
}

// DecodeEvents returns the events of a chunk. It returns an error for bytes that AppendEvents cannot
// have written.
func DecodeEvents(b []byte) ([]eventlog.Event, error) {
	r := chunkReader{b: b, texts: []string{""}}
	version := r.byte()
	if version < chunkVersion || version > workersVersion {
		return nil, errChunk
	}
	r.counted, r.workers = version >= countedVersion, version == workersVersion
	var events []eventlog.Event
	last := int64(0)
	for len(r.b) > 0 && !r.damaged {
		if len(events) == MaxEvents {
			return nil, errChunk
		}
		var e eventlog.Event
		e, last = r.event(last)
		events = append(events, e)
	}
	if r.damaged {
		return nil, errChunk
	}
	return events, nil
}

func (r *chunkReader) event(last int64) (eventlog.Event, int64) {
	var e eventlog.Event
	flags := r.byte()
	e.Source, e.Retryable = eventlog.Source(flags&flagSource), flags&flagRetryable != 0
	if e.Source > eventlog.Service {
		r.damaged = true
	}
	if flags&flagPacked != 0 {
		top := uint64(r.byte())
		hi, lo := r.read48(), r.read48()
		e.ID = unpackID(top>>4<<48|hi, top&0xf<<48|lo)
	} else {
		e.ID = string(r.take(r.uint()))
	}
	at := last + r.int()
	e.At = fromMicros(at)
	if flags&flagOccurred != 0 {
		e.OccurredAt = fromMicros(at + r.int())
	}
	e.Type, e.TargetHost = r.text(), r.text()
	e.StatusCode, e.LatencyMS = int(r.int()), int(r.int())
	if flags&flagMore != 0 {
		e.Code, e.Bytes, e.ExitIP = r.text(), r.int(), r.text()
		e.Message, e.HowToFix = r.text(), r.text()
	}
	if flags&flagCount != 0 {
		e.Count = int(r.int())
		r.damaged = r.damaged || !r.counted || e.Count <= 1
	}
	if flags&flagWorker != 0 {
		e.Worker = r.text()
		r.damaged = r.damaged || !r.workers || e.Worker == ""
	}
	return e, at
}

func (r *chunkReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.damaged = nil, true
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *chunkReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *chunkReader) read48() (n uint64) {
	for _, b := range r.take(6) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (r *chunkReader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	r.take(uint64(max(size, 0)))
	r.damaged = r.damaged || size <= 0
	return n
}

func (r *chunkReader) int() int64 {
	n, size := binary.Varint(r.b)
	r.take(uint64(max(size, 0)))
	r.damaged = r.damaged || size <= 0
	return n
}

func (r *chunkReader) text() string {
	number := r.uint()
	if number == 0 {
		s := string(r.take(r.uint()))
		r.texts = append(r.texts, s)
		return s
	}
	if number > uint64(len(r.texts)) {
		r.damaged = true
		return ""
	}
	return r.texts[number-1]
}

// Newest returns the latest time among events.
func Newest(events []eventlog.Event) (at time.Time) {
	for i := range events {
		if events[i].At.After(at) {
			at = events[i].At
		}
	}
	return at
}

// micros returns the microseconds since 1970, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
