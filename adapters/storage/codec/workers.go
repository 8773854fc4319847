package codec

import (
	"encoding/binary"
	"errors"

	"agentproxy/domain/traffic"
)

// What workers used of a lease is one value: for each, sorted by id, varints of the distance from the
// id before, and of the bytes up, the bytes down, the connections and those that are open.

var errWorkers = errors.New("the counters of workers are damaged")

// AppendWorkers appends the counters of workers, sorted by id, to b.
func AppendWorkers(b []byte, list []traffic.WorkerUse) []byte {
	last := int64(0)
	for _, w := range list {
		for _, n := range [...]int64{w.ID - last, w.Up, w.Down, w.Connections, w.Open} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		last = w.ID
	}
	return b
}

// DecodeWorkers returns what AppendWorkers wrote, nil for no bytes.
func DecodeWorkers(b []byte) (list []traffic.WorkerUse, err error) {
	last := int64(0)
	for len(b) > 0 {
		var n [5]int64
		for i := range n {
			v, size := binary.Uvarint(b)
			if size <= 0 || int64(v) < 0 {
				return nil, errWorkers
			}
			n[i], b = int64(v), b[size:]
		}
		last += n[0]
		list = append(list, traffic.WorkerUse{ID: last, Up: n[1], Down: n[2], Connections: n[3], Open: n[4]})
	}
	return list, nil
}
