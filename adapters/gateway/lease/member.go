package lease

// Conn is a connection that relays the traffic of a session.
type Conn interface {
	// SessionEnded interrupts the connection; v is Exhausted, Closed or Removed. It must not
	// block.
	SessionEnded(v Verdict)
}

// Member is a connection's place in a pool. It is part of the connection, so that
// admitting it allocates nothing.
type Member struct {
	conn  Conn
	state place
	share *Share // of the worker that it is counted for; nil for the session itself
	index int    // in members
}

// place is what a connection takes up in its pool.
type place uint8

const (
	outside place = iota
	open          // relays, or may relay
	parked        // is kept between two requests
)

// MemberOf returns the member for a connection.
func MemberOf(c Conn) Member { return Member{conn: c} }

// members lists the open connections of a session. Each has its index, so that
// removal takes constant time.
type members []*Member

func (ms *members) add(m *Member) {
	m.index = len(*ms)
	*ms = append(*ms, m)
}

func (ms *members) remove(m *Member) {
	last := len(*ms) - 1
	moved := (*ms)[last]
	(*ms)[m.index], moved.index = moved, m.index
	(*ms)[last] = nil
	*ms = (*ms)[:last]
}
