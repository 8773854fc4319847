package codec

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

// Archived is a worker of a session that is archived, with its state of health as it was stored: empty
// if it had none.
type Archived struct {
	worker.Worker
	Health []byte
}

// archiveVersion begins the archive of a session's workers. What follows is deflated: for each worker
// the distance of its id from the one before, its name, texts as in a chunk of events, its numbers,
// times as distances, and its health, length first.
const archiveVersion = 1

var errArchive = errors.New("the archive of a session is damaged")

// AppendArchive appends the workers of a session to b. Their session is not part of it.
func AppendArchive(b []byte, list []Archived) []byte {
	w := chunkWriter{numbers: map[string]uint64{"": 1}}
	var id, created int64
	for i := range list {
		id, created = w.worker(&list[i], id, created)
	}
	var packed bytes.Buffer
	z, _ := flate.NewWriter(&packed, flate.BestCompression) // it fails for an unknown level alone
	_, _ = z.Write(w.b)                                     // a buffer takes everything
	_ = z.Close()
	return append(append(b, archiveVersion), packed.Bytes()...)
}

// worker appends one worker, and returns its id and when it was made.
func (w *chunkWriter) worker(a *Archived, id, created int64) (nextID, nextCreated int64) {
	made := micros(a.CreatedAt)
	w.int(a.ID - id)
	w.bytes([]byte(a.Name))
	w.text(a.Location.Country)
	w.text(a.Location.City)
	w.bool(a.Strict, a.Unique, a.Lost, a.Changeable)
	exit, _ := a.Exit.IP.MarshalBinary() // it never fails
	w.bytes(exit)
	for _, n := range [...]int64{a.TTL.Microseconds(), a.MaxBytes, int64(a.Turn), int64(a.Rotations), a.Usage.Up,
		a.Usage.Down, a.Usage.Connections, made - created} {
		w.int(n)
	}
	w.since(a.AssignedAt, made)
	w.since(a.LastUsedAt, made)
	w.since(a.LastError.At, made)
	w.text(a.LastError.Code)
	w.bytes(a.Health)
	return a.ID, made
}

func (w *chunkWriter) bytes(b []byte) {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(b))), b...)
}

// bool appends up to eight flags in a byte.
func (w *chunkWriter) bool(flags ...bool) {
	var b byte
	for i, on := range flags {
		if on {
			b |= 1 << i
		}
	}
	w.b = append(w.b, b)
}

// since appends a time as its distance from another one, and whether there is one.
func (w *chunkWriter) since(t time.Time, from int64) {
	w.bool(!t.IsZero())
	if !t.IsZero() {
		w.int(micros(t) - from)
	}
}

// DecodeArchive returns what AppendArchive wrote. It returns an error for bytes that it cannot have
// written.
func DecodeArchive(b []byte) ([]Archived, error) {
	if len(b) == 0 || b[0] != archiveVersion {
		return nil, errArchive
	}
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(b[1:])))
	if err != nil {
		return nil, errors.Join(errArchive, err)
	}
	r := chunkReader{b: plain, texts: []string{""}}
	var list []Archived
	var id, created int64
	for len(r.b) > 0 {
		a := r.worker(id, created)
		if r.damaged {
			return nil, errArchive
		}
		id, created = a.ID, micros(a.CreatedAt)
		list = append(list, a)
	}
	return list, nil
}

func (r *chunkReader) worker(id, created int64) (a Archived) {
	a.ID, a.Name = id+r.int(), string(r.bytes())
	a.Location = session.Location{Country: r.text(), City: r.text()}
	flags := r.byte()
	a.Strict, a.Unique, a.Lost, a.Changeable = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	var exit netip.Addr
	if err := exit.UnmarshalBinary(r.bytes()); err != nil {
		r.damaged = true
	}
	a.Exit.IP, a.TTL, a.MaxBytes = exit, time.Duration(r.int())*time.Microsecond, r.int()
	a.Turn, a.Rotations = int(r.int()), int(r.int())
	a.Usage = worker.Usage{Up: r.int(), Down: r.int(), Connections: r.int()}
	made := created + r.int()
	a.CreatedAt, a.AssignedAt, a.LastUsedAt = fromMicros(made), r.since(made), r.since(made)
	a.LastError = worker.Failure{At: r.since(made), Code: r.text()}
	a.Health = bytes.Clone(r.bytes())
	r.damaged = r.damaged || a.ID <= 0 || a.Name == ""
	return a
}

func (r *chunkReader) bytes() []byte { return r.take(r.uint()) }

func (r *chunkReader) since(from int64) time.Time {
	if r.byte() == 0 {
		return time.Time{}
	}
	return fromMicros(from + r.int())
}
