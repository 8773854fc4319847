// Package exitlogs records who used which exit, and answers the operator who asks for it.
package exitlogs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain/exitlog"
	"agentproxy/ports"
)

// Config holds what the operator decides.
type Config struct {
	Days int // for which records are kept; 0: none is made
}

// FlushEvery is how often Flush is to be called: a process that is killed loses what it
// recorded since.
const FlushEvery = 500 * time.Millisecond

// maxWaiting bounds the records that wait to be stored. Beyond it new ones are dropped, and
// counted.
const maxWaiting = 100_000

// Log collects the connections of the gateway of this process and stores them in batches.
type Log struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	replica string
	cfg     Config
	dropped atomic.Int64

	mu      sync.Mutex
	last    uint64 // number
	open    map[uint64]*exitlog.Connection
	fresh   []uint64 // opened since the last flush
	waiting []exitlog.Connection
	noted   time.Time // when those that stay open were recorded last

	flushing sync.Mutex
}

// NewLog returns an empty log of this process.
func NewLog(cfg Config, store ports.Store, clock ports.Clock, ids ports.IDs) *Log {
	return &Log{store: narrow(store), clock: clock, replica: ids.New("gw_"), cfg: cfg,
		open: map[uint64]*exitlog.Connection{}, noted: clock.Now()}
}

// Opened records a connection that was made, and returns its number for Closed; 0 if it is not
// recorded. It does not block on the store.
func (l *Log) Opened(c *exitlog.Connection) uint64 {
	if l.cfg.Days == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.fresh)+len(l.waiting) >= maxWaiting {
		l.dropped.Add(1)
		return 0
	}
	l.last++
	c.Number = l.last
	l.open[c.Number] = c
	l.fresh = append(l.fresh, c.Number)
	return c.Number
}

// Closed records the end of a connection. The number 0 is none.
func (l *Log) Closed(number uint64, bytes int64, end exitlog.End, at time.Time) {
	if number == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[number]
	if c == nil {
		return
	}
	delete(l.open, number)
	if len(l.waiting) >= maxWaiting {
		l.dropped.Add(1)
		return
	}
	c.Closed, c.Bytes, c.End, c.Seen = at, bytes, end, at
	l.waiting = append(l.waiting, *c)
}

// Dropped returns how many records were lost because too many waited.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Flush stores what was recorded since the last one, and every exitlog.CheckpointEvery what stays
// open.
func (l *Log) Flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	now := l.clock.Now()
	batch := l.takeDue(now)
	if len(batch) == 0 {
		return nil
	}
	err := l.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.ExitLog().Append(ctx, l.replica, now, batch)
	})
	if err != nil {
		l.restore(batch)
	}
	return err
}

// takeDue removes and returns what is to be stored.
func (l *Log) takeDue(now time.Time) []exitlog.Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.waiting
	note := func(c *exitlog.Connection) {
		c.Seen = now
		batch = append(batch, *c)
	}
	if now.Sub(l.noted) >= exitlog.CheckpointEvery {
		l.noted = now
		for _, c := range l.open {
			note(c)
		}
	} else {
		for _, number := range l.fresh {
			if c := l.open[number]; c != nil { // else it has ended, and its record waits
				note(c)
			}
		}
	}
	l.waiting, l.fresh = nil, l.fresh[:0]
	return batch
}

// restore puts back what could not be stored, as far as there is room.
func (l *Log) restore(batch []exitlog.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := max(maxWaiting-len(l.waiting), 0)
	if len(batch) > room {
		l.dropped.Add(int64(len(batch) - room))
		batch = batch[:room]
	}
	l.waiting = append(batch, l.waiting...)
}
