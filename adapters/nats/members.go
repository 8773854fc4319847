package nats

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// members are the replicas whose heartbeats arrived lately. It divides the queues among them by
// rendezvous hashing: each replica computes its own, and one that comes or goes moves its share alone.
// Replicas with different lists fold some queues twice, which the cursor detects.
type members struct {
	mu   sync.Mutex
	self string
	seen map[string]time.Time
}

// maxMembers bounds the replicas in the list.
const maxMembers = 1000

func (m *members) init(self string) { m.self, m.seen = self, map[string]time.Time{} }

// gone begins a message of a replica that stops.
const gone = "-"

// receive handles a heartbeat.
func (m *members) receive(msg *nats.Msg) {
	name, leaves := strings.CutPrefix(string(msg.Data), gone)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case name == m.self:
	case leaves:
		delete(m.seen, name)
	case len(name) <= 64 && len(m.seen) < maxMembers:
		m.seen[name] = time.Now()
	}
}

// owns reports whether a queue falls to this replica, among those that sent a heartbeat within a time.
func (m *members) owns(queue int, within time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := weight(m.self, queue)
	for name, at := range m.seen {
		if time.Since(at) > within {
			delete(m.seen, name)
		} else if w := weight(name, queue); w > own || w == own && name > m.self {
			return false
		}
	}
	return true
}

func weight(name string, queue int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "/" + strconv.Itoa(queue)))
	x := h.Sum64() // FNV leaves the high bits of names that differ in their last letter alike
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// beat sends heartbeats until the context ends, and then that this replica stops.
func (q *Queue) beat(ctx context.Context) {
	tick := time.NewTicker(q.config.Heartbeat)
	defer tick.Stop()
	for {
		_ = q.conn.Publish(workersSubject, []byte(q.name)) // while no server answers nothing is folded
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = q.conn.Publish(workersSubject, []byte(gone+q.name))
			_ = q.conn.FlushTimeout(time.Second)
			return
		}
	}
}

// mine reports whether a queue falls to this replica.
func (q *Queue) mine(queue int) bool { return q.members.owns(queue, deadAfter*q.config.Heartbeat) }
