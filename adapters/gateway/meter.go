package gateway

import (
	"net"

	"agentproxy/adapters/gateway/http1"
)

// meter accounts for one direction of plain requests: wire takes bytes from it
// before they move. What comes up is used when it is taken. What goes down is used
// when it was written, so that what failed to move can be returned and no counter
// ever goes back. Nothing stays reserved while the other direction, or the source,
// is waited for: at the limit the rest would be kept from those that can use it.
type meter struct {
	c     *conn
	pool  *pool
	down  bool
	held  int64
	epoch uint32
	total int64
}

var _ http1.Meter = (*meter)(nil)

// Take reserves up to n bytes, waiting for the lease if need be.
func (m *meter) Take(n int) (int, error) {
	m.done()
	for {
		got, epoch, v := m.pool.reserve(int64(n))
		if v == flows {
			m.held, m.epoch = got, epoch
			if !m.down {
				m.done()
			}
			return int(got), nil
		}
		if v == waits {
			v = m.pool.await(m.c.interrupted)
		}
		switch v {
		case flows:
		case waits:
			return 0, interruption(cause(m.c.cause.Load()))
		default:
			return 0, admitted(v)
		}
	}
}

// Return says that what was taken last has moved, but for n bytes, which are
// given back. What came up stays used.
func (m *meter) Return(n int) {
	m.use(m.held - int64(n))
}

// done counts what was taken last.
func (m *meter) done() { m.use(m.held) }

func (m *meter) use(n int64) {
	if m.held == 0 {
		return
	}
	if m.down {
		m.pool.settle(m.epoch, m.held, 0, n)
	} else {
		m.pool.settle(m.epoch, m.held, n, 0)
	}
	m.total += n
	m.held = 0
}

// mover notes that something moves, so that the sweeper leaves the connection
// alone.
type mover struct {
	*net.TCPConn
	c *conn
}

func (m mover) Read(p []byte) (int, error) {
	n, err := m.TCPConn.Read(p)
	m.c.moved.Store(int64(mono()))
	return n, err
}

func (m mover) Write(p []byte) (int, error) {
	n, err := m.TCPConn.Write(p)
	m.c.moved.Store(int64(mono()))
	return n, err
}
