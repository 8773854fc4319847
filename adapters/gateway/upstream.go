package gateway

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
)

// The bounds of kept connections: for one session, exit and target, and in all.
const (
	maxKeptEach = 64
	maxKept     = 2048
)

// upstreamKey says what a kept connection may be used for. It is never shared
// between sessions, and a rotation leaves it behind: the exit is another one, or
// unknown and behind an upstream proxy, whose user name or whose next answer it is.
type upstreamKey struct {
	session string
	exit    netip.Addr
	target  hostport.Target
	hop     string // see hopName; maps keep keys of more than 128 bytes elsewhere
}

// upstreamConn is a connection to a target that answers plain requests.
type upstreamConn struct {
	key   upstreamKey
	tcp   *net.TCPConn
	in    http1.Reader
	since time.Duration // kept since
}

func (u *upstreamConn) close() {
	_ = u.tcp.Close()
	u.in.Free()
}

// upstreams keeps connections to targets between requests.
type upstreams struct {
	keep  time.Duration
	mu    sync.Mutex
	free  map[upstreamKey][]*upstreamConn
	count int
	ended bool
}

func newUpstreams(keep time.Duration) *upstreams {
	return &upstreams{keep: keep, free: map[upstreamKey][]*upstreamConn{}}
}

// get takes the connection that was kept last, nil if there is none.
func (us *upstreams) get(key upstreamKey) *upstreamConn {
	us.mu.Lock()
	defer us.mu.Unlock()
	list := us.free[key]
	if len(list) == 0 {
		return nil
	}
	u := list[len(list)-1]
	list[len(list)-1] = nil
	if us.free[key] = list[:len(list)-1]; len(list) == 1 {
		delete(us.free, key)
	}
	us.count--
	return u
}

// put keeps a connection whose last answer is through, or closes it.
func (us *upstreams) put(u *upstreamConn) {
	u.in.Free()
	u.since = mono()
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.ended || us.count >= maxKept || len(us.free[u.key]) >= maxKeptEach {
		_ = u.tcp.Close()
		return
	}
	us.free[u.key] = append(us.free[u.key], u)
	us.count++
}

// trim closes what was kept too long.
func (us *upstreams) trim(now time.Duration) {
	us.mu.Lock()
	defer us.mu.Unlock()
	for key, list := range us.free {
		old := 0 // the oldest stand first
		for old < len(list) && now-list[old].since > us.keep {
			list[old].close()
			old++
		}
		us.count -= old
		if list = list[old:]; len(list) == 0 {
			delete(us.free, key)
		} else if old > 0 {
			us.free[key] = list
		}
	}
}

// close closes everything, and whatever is put later.
func (us *upstreams) close() {
	us.mu.Lock()
	us.ended, us.keep = true, -1
	us.mu.Unlock()
	us.trim(mono())
}
