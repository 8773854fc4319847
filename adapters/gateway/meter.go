package gateway

import (
	"net"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/lease"
)

// meter accounts for one direction of plain requests: http1 takes bytes from it
// before they move. Upload is used when it is taken. Download is used when it was
// written, so that bytes that failed to move can be returned and no counter ever
// decreases. Nothing stays reserved while the other direction or the source is
// waited for: at the limit the reserved rest would be unavailable to other
// connections.
type meter struct {
	c     *client.Conn
	pool  lease.Account
	down  bool
	held  int64
	epoch uint32
	total int64
}

var _ http1.Meter = (*meter)(nil)

// Take reserves up to n bytes, waiting for the lease if necessary. The error is a
// *refusal.Refusal.
func (m *meter) Take(n int) (int, error) {
	m.done()
	for {
		got, epoch, v := m.pool.Reserve(int64(n))
		if v == lease.Granted {
			m.held, m.epoch = got, epoch
			if !m.down {
				m.done()
			}
			return int(got), nil
		}
		if v == lease.Blocked {
			v = m.pool.Await(m.c.Interrupted)
		}
		switch v {
		case lease.Granted:
		case lease.Blocked:
			return 0, interruption(m.c)
		default:
			return 0, admitted(m.c, v)
		}
	}
}

// Return counts what was taken last, but for n bytes that were not moved. Upload
// stays used.
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
		m.pool.Settle(m.epoch, m.held, 0, n)
	} else {
		m.pool.Settle(m.epoch, m.held, n, 0)
	}
	m.total += n
	m.held = 0
}

// charge counts n bytes that have moved already, as far as the pool grants them. It
// waits for the lease if necessary.
func (m *meter) charge(n int64) {
	m.done()
	for n > 0 {
		got, err := m.Take(int(n))
		if err != nil {
			return
		}
		m.done()
		n -= int64(got)
	}
}

// source reads a target and counts what was read.
type source struct {
	toucher
	read *int64
}

// Read reads from the connection.
func (s source) Read(p []byte) (int, error) {
	n, err := s.toucher.Read(p)
	*s.read += int64(n)
	return n, err
}

// toucher records each read and write, so that the connection does not count as
// quiet.
type toucher struct {
	net.Conn
	c *client.Conn
}

// Read reads from the connection.
func (t toucher) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.c.Touch()
	return n, err
}

// Write writes to the connection.
func (t toucher) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.c.Touch()
	return n, err
}
