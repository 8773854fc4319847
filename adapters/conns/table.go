// Package conns bounds the open connections of a listener. Strangers cannot use up the
// file descriptors of the process: connections without a credential are bounded for each
// client address, and when a listener is full the ones that wait longest are closed for
// new ones, first those without a credential, then those between two requests. What is
// being served is never closed.
package conns

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PerAddress is how many connections without a credential one client address usually may
// have to a listener.
const PerAddress = 256

// Config holds the bounds of a Table.
type Config struct {
	Name       string // of the listener in metrics
	Limit      int    // of all connections; 0 is unlimited
	PerAddress int    // without a credential, of one client address; 0 is unlimited
	// Exempt are networks without a bound for each address: reverse proxies, behind which
	// many clients have one address.
	Exempt []netip.Prefix
	// MakeRoom is called when a listener is full and nothing in its table can be closed.
	// It reports whether something else ends soon. It must not call the Table. nil is none.
	MakeRoom func() bool
}

// Owner is a connection in a Table.
type Owner interface {
	// Evict ends the connection soon. It does not block.
	Evict()
	// Unread reports whether the client sent something that the service has not read yet.
	// Such a connection waits for the service and not for its client.
	Unread() bool
}

// Table lists the connections of a listener. All methods are safe for concurrent use.
type Table struct {
	cfg  Config
	open atomic.Int64

	mu       sync.Mutex
	evicting int   // open connections that were evicted
	fresh    queue // no credential yet
	idle     queue // with one, between two requests
	sources  map[netip.Addr]*source

	*metrics
}

// source is a client address with connections without a credential.
type source struct {
	addr     netip.Addr
	count    int
	evicting int
	fresh    queue
}

// Slot is the place of a connection in a Table. It is part of the connection, so that
// adding it allocates nothing.
type Slot struct {
	owner   Owner
	source  *source // nil once the client has shown a credential
	in      *queue  // that lists it for eviction; nil while it is served
	links   [2]link // in that queue, in the one of its source
	evicted bool
	added   bool
}

// New returns an empty Table.
func New(cfg Config) *Table {
	t := &Table{cfg: cfg, fresh: queue{by: 0}, idle: queue{by: 0}, sources: map[netip.Addr]*source{}}
	t.metrics = newMetrics(t)
	return t
}

// The most that is looked at to find a connection that its client keeps waiting, and the
// factor by which an address may exceed its bound while there is none: a burst of
// connections that the service has not had time to read is not closed.
const (
	evictionSample = 8
	burst          = 4
)

// Add adds a connection that was accepted and has shown no credential. If it exceeds a
// bound another one is evicted, or Add returns false and the connection must be closed.
func (t *Table) Add(s *Slot, o Owner, addr netip.Addr) bool {
	addr = network(addr)
	t.mu.Lock()
	t.awaitEvicted()
	src := t.sourceOf(addr)
	victim, admitted := t.place(src)
	if !admitted && t.cfg.MakeRoom != nil && t.overshoot() {
		admitted = t.cfg.MakeRoom()
	}
	if !admitted {
		t.forget(src)
		t.mu.Unlock()
		t.refused.Inc()
		return false
	}
	if victim != nil {
		t.evict(victim)
	}
	*s = Slot{owner: o, source: src, added: true}
	src.count++
	t.open.Add(1)
	t.list(s)
	t.mu.Unlock()
	if victim != nil {
		victim.owner.Evict()
		t.evicted.Inc()
	}
	return true
}

// Move counts a connection without a credential for another address: that of the client behind a balancer. If it
// exceeds the address's bound another one is evicted, or Move returns false and the connection must be closed.
func (t *Table) Move(s *Slot, addr netip.Addr) bool {
	addr = network(addr)
	t.mu.Lock()
	if !s.added || s.evicted || s.source == nil || s.source.addr == addr {
		t.mu.Unlock()
		return true
	}
	dst := t.sourceOf(addr)
	victim, admitted := t.crowd(dst)
	if !admitted {
		t.forget(dst)
		t.mu.Unlock()
		t.refused.Inc()
		return false
	}
	if victim != nil {
		t.evict(victim)
	}
	listed, src := s.in != nil, s.source
	t.unlist(s)
	src.count--
	t.forget(src)
	s.source = dst
	dst.count++
	if listed {
		t.list(s)
	}
	t.mu.Unlock()
	if victim != nil {
		victim.owner.Evict()
		t.evicted.Inc()
	}
	return true
}

// sourceOf returns the source of an address. It is called under mu.
func (t *Table) sourceOf(addr netip.Addr) *source {
	src := t.sources[addr]
	if src == nil {
		src = &source{addr: addr, fresh: queue{by: 1}}
		t.sources[addr] = src
	}
	return src
}

// The pauses in which evicted connections are waited for.
const (
	pause  = time.Millisecond
	pauses = 50
)

// awaitEvicted waits until fewer connections are open than the bound allows with those that
// are about to end. It is called under mu, which it releases meanwhile.
func (t *Table) awaitEvicted() {
	for n := 0; n < pauses && t.evicting > 0 && t.cfg.Limit > 0 && !t.overshoot(); n++ {
		t.mu.Unlock()
		time.Sleep(pause)
		t.mu.Lock()
	}
}

// place decides whether a connection of a source may be added, and which one has to go
// for it, if any. It is called under mu.
func (t *Table) place(src *source) (victim *Slot, ok bool) {
	if victim, ok = t.crowd(src); !ok {
		return nil, false
	}
	if victim != nil || t.cfg.Limit <= 0 || int(t.open.Load())-t.evicting < t.cfg.Limit {
		return victim, true
	}
	if !t.overshoot() {
		return nil, false
	}
	if victim = t.fresh.quiet(); victim == nil {
		victim = t.idle.head
	}
	if victim == nil {
		victim = t.fresh.head
	}
	return victim, victim != nil
}

// crowd is place for the bound of the source alone. It is called under mu.
func (t *Table) crowd(src *source) (victim *Slot, ok bool) {
	if each := t.cfg.PerAddress; each > 0 && src.count-src.evicting >= each && !Within(t.cfg.Exempt, src.addr) {
		victim = src.fresh.quiet()
		return victim, victim != nil || src.count < burst*each
	}
	return nil, true
}

// most is by how many connections the bound may be exceeded while evicted ones end, which
// takes a moment.
const most = 32

// overshoot reports whether one more connection may be open beyond the bound.
func (t *Table) overshoot() bool { return int(t.open.Load()) < t.cfg.Limit+min(t.cfg.Limit/16, most)+1 }

// evict takes a connection out of the queues. It is called under mu.
func (t *Table) evict(s *Slot) {
	t.unlist(s)
	s.evicted = true
	t.evicting++
	if s.source != nil {
		s.source.evicting++
	}
}

// Trust records that the client has shown a right credential.
func (t *Table) Trust(s *Slot) { t.update(s, true, s.in != nil) }

// Serve records that a request of a client with a right credential is being served.
func (t *Table) Serve(s *Slot) { t.update(s, true, false) }

// Work records that a request is being served whose client has shown no credential.
func (t *Table) Work(s *Slot) { t.update(s, false, false) }

// Wait records that the connection waits for its client again.
func (t *Table) Wait(s *Slot) { t.update(s, false, true) }

// update changes the place of a connection. An evicted one keeps none.
func (t *Table) update(s *Slot, trust, listed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.added || s.evicted {
		return
	}
	t.unlist(s)
	if trust && s.source != nil {
		s.source.count--
		t.forget(s.source)
		s.source = nil
	}
	if listed {
		t.list(s)
	}
}

// Remove removes a connection that was closed. It does nothing for one that is not in the
// Table.
func (t *Table) Remove(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.added {
		return
	}
	t.unlist(s)
	if s.evicted {
		t.evicting--
	}
	if src := s.source; src != nil {
		src.count--
		if s.evicted {
			src.evicting--
		}
		t.forget(src)
	}
	s.added, s.source = false, nil
	t.open.Add(-1)
}

// list puts a connection at the end of the queues that it belongs to.
func (t *Table) list(s *Slot) {
	if s.in = &t.idle; s.source != nil {
		s.in = &t.fresh
		s.source.fresh.push(s)
	}
	s.in.push(s)
}

func (t *Table) unlist(s *Slot) {
	if s.in == nil {
		return
	}
	s.in.remove(s)
	if s.source != nil {
		s.source.fresh.remove(s)
	}
	s.in = nil
}

// forget drops a source without connections.
func (t *Table) forget(src *source) {
	if src.count == 0 && t.sources[src.addr] == src {
		delete(t.sources, src.addr)
	}
}

// NearlyFull reports whether more than three quarters of the connections are in use.
func (t *Table) NearlyFull() bool {
	return t.cfg.Limit > 0 && int(t.open.Load()) > t.cfg.Limit/4*3
}

// Open returns the number of open connections.
func (t *Table) Open() int { return int(t.open.Load()) }

// network returns what counts as one client: an IPv4 address or an IPv6 /64, because a
// customer has all of it.
func network(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); addr.Is6() {
		p, _ := addr.WithZone("").Prefix(64)
		return p.Addr()
	}
	return addr
}

// metrics holds the series of a listener.
type metrics struct {
	Collectors
	refused, evicted, failed, headers prometheus.Counter

	warned atomic.Int64 // unix nanoseconds of the last warning
}

func newMetrics(t *Table) *metrics {
	labels := prometheus.Labels{"listener": t.cfg.Name}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read)
	}
	m := &metrics{
		refused: counter("agentproxy_connections_refused_total", "Connections that were closed at once because a bound "+
			"was reached."),
		evicted: counter("agentproxy_connections_evicted_total", "Waiting connections that were closed for new ones."),
		failed: counter("agentproxy_accept_failures_total",
			"Times that no connection could be accepted, because file descriptors or memory ran out."),
	}
	m.headers = counter("agentproxy_proxy_headers_refused_total",
		"Connections of trusted proxies that were closed because they began with no valid header of the PROXY protocol.")
	m.Collectors = Collectors{m.refused, m.evicted, m.failed, m.headers,
		gauge("agentproxy_connections_open", "Open connections of clients.", func() float64 { return float64(t.Open()) }),
		gauge("agentproxy_connections_limit", "How many may be open; 0 is unlimited.",
			func() float64 { return float64(t.cfg.Limit) }),
	}
	return m
}

var _ prometheus.Collector = (*Table)(nil)

// AcceptFailed counts a connection that could not be accepted. It returns true if it is to
// be logged: once a second at most.
func (t *Table) AcceptFailed(now time.Time) bool {
	t.failed.Inc()
	return t.warn(now)
}

// HeaderRefused counts and logs a connection that a trusted proxy began with no header of the PROXY protocol.
func (t *Table) HeaderRefused(peer netip.Addr, err error, log *slog.Logger) {
	t.headers.Inc()
	if t.warn(time.Now()) {
		log.Warn("a trusted proxy began a connection without a header of the PROXY protocol", "listener", t.cfg.Name,
			"peer", peer.String(), "err", err)
	}
}

func (t *Table) warn(now time.Time) bool {
	last := t.warned.Load()
	return now.UnixNano()-last >= int64(time.Second) && t.warned.CompareAndSwap(last, now.UnixNano())
}
