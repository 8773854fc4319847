package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/socket"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
)

// The bounds of idle connections: for one session, exit and target, and in total.
const (
	maxIdleEach = 64
	maxIdle     = 2048
)

// targetKey identifies what an idle connection may be used for. It is never shared
// between sessions, and a rotation makes it unusable: the exit changes, or, behind an
// upstream proxy, proxy does.
type targetKey struct {
	session string
	exit    netip.Addr
	target  hostport.Target
	shared  *policy.Shared // the rules that let the target pass
	own     *policy.Rules
	proxy   string // see proxyKey; maps store keys of more than 128 bytes indirectly
}

// proxyKey identifies the path through an upstream proxy. The same user name may
// mean another exit after a rotation.
func proxyKey(proxy *procurement.Endpoint, rotation int) string {
	return fmt.Sprintf("%d %s %s %d %s", rotation, proxy.Protocol, proxy.Host, proxy.Port, proxy.User)
}

// targetConn is a connection to a target that answers plain requests.
type targetConn struct {
	key   targetKey
	tcp   *net.TCPConn
	addrs []netip.Addr // that the target was checked by
	use   use          // by the client that used it last
	ended func(use, exitlog.End)
	in    http1.Reader
	since time.Duration // idle since, by monotime
}

// close closes the connection and frees its buffer.
func (t *targetConn) close() {
	_ = t.tcp.Close()
	t.in.Free()
	t.ended(t.use, exitlog.Finished)
}

// idleTargets is a pool of connections to targets between requests.
type idleTargets struct {
	keep  time.Duration
	mu    sync.Mutex
	free  map[targetKey][]*targetConn
	count int
	ended bool
}

func newIdleTargets(keep time.Duration) *idleTargets {
	return &idleTargets{keep: keep, free: map[targetKey][]*targetConn{}}
}

// get removes and returns the connection that became idle last and can still be used,
// nil if there is none. It closes those that cannot. If client is valid, only those that
// it used last are taken.
func (ts *idleTargets) get(key targetKey, client netip.AddrPort) *targetConn {
	for {
		t := ts.takeIdle(key, client)
		if t == nil || socket.Quiet(t.tcp) {
			return t
		}
		t.close()
	}
}

// takeIdle removes and returns a connection, nil if there is none. See get.
func (ts *idleTargets) takeIdle(key targetKey, client netip.AddrPort) *targetConn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	list := ts.free[key]
	i := len(list) - 1
	for client.IsValid() && i >= 0 && list[i].use.client != client {
		i--
	}
	if i < 0 {
		return nil
	}
	t := list[i]
	if ts.free[key] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(ts.free, key)
	}
	ts.count--
	return t
}

// put adds a connection whose last response was read in full, or closes it if a bound
// is reached.
// Nothing is added while descriptors are scarce.
func (ts *idleTargets) put(t *targetConn, scarce bool) {
	t.in.Free()
	t.since = monotime.Now()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ended || scarce || ts.count >= maxIdle || len(ts.free[t.key]) >= maxIdleEach {
		t.close()
		return
	}
	ts.free[t.key] = append(ts.free[t.key], t)
	ts.count++
}

// trim closes the connections that were idle for too long, and all of them while
// descriptors are scarce.
func (ts *idleTargets) trim(now time.Duration, scarce bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	keep := ts.keep
	if scarce {
		keep = -1
	}
	for key, list := range ts.free {
		old := 0 // the oldest come first
		for old < len(list) && now-list[old].since > keep {
			list[old].close()
			old++
		}
		ts.count -= old
		if list = list[old:]; len(list) == 0 {
			delete(ts.free, key)
		} else if old > 0 {
			ts.free[key] = list
		}
	}
}

// close closes all idle connections, and the others when they are put.
func (ts *idleTargets) close() {
	ts.mu.Lock()
	ts.ended = true
	ts.mu.Unlock()
	ts.trim(monotime.Now(), true)
}
