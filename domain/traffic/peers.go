package traffic

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"agentproxy/domain/health"
)

// Client is what an address used of a session. The empty address is all beyond MaxClients.
type Client struct {
	Address         string
	FirstAt, LastAt time.Time
	Connections     int64
	Bytes           int64
}

// Host is what a session did at a host. The empty host is all beyond MaxHosts.
type Host struct {
	Name        string
	Connections int64
	Failures    int64 // of the connections
	Bytes       int64
}

// The bounds of what is kept of a session. The operator decides for how long clients are kept.
const (
	MaxClients = 256
	MaxHosts   = 512 // a UTC day
	KeepHosts  = 7 * 24 * time.Hour
)

// The bounds of what Peers keeps apart between two times that it is stored. Hosts at which nothing was
// reached cost their agent nothing, so few of them are kept.
const (
	maxPeers  = 64
	maxFailed = 4
)

// Peers are the clients and the hosts of one session since they were stored last.
type Peers struct {
	clients map[string]*Client
	hosts   map[string]*Host
	failed  int // hosts that were added by a failure
}

// Add counts an observation. What is only reported was no connection.
func (p *Peers) Add(o Observation) {
	if o.Type == Reported {
		return
	}
	if p.clients == nil {
		p.clients, p.hosts = map[string]*Client{}, map[string]*Host{}
	}
	if o.Client.IsValid() {
		c := entryOf(p.clients, o.Client.String(), func(name string) *Client { return &Client{Address: name, FirstAt: o.At} })
		c.Connections++
		c.Bytes += o.Bytes
		c.LastAt = o.At
	}
	if o.Host == "" {
		return
	}
	failure, name := o.Type != Tunnelled && o.Type != Requested, health.CanonicalHost(o.Host)
	if failure && p.hosts[name] == nil {
		if p.failed++; p.failed > maxFailed {
			name = ""
		}
	}
	h := entryOf(p.hosts, name, func(name string) *Host { return &Host{Name: name} })
	h.Connections++
	h.Bytes += o.Bytes
	if failure {
		h.Failures++
	}
}

// entryOf returns the entry of a name; that of the empty name if there is no room for another.
func entryOf[T any](all map[string]*T, name string, add func(string) *T) *T {
	if all[name] == nil && len(all) >= maxPeers {
		name = ""
	}
	if all[name] == nil {
		all[name] = add(name)
	}
	return all[name]
}

// Merge adds what another one counted later.
func (p *Peers) Merge(later Peers) {
	if p.clients == nil {
		p.clients, p.hosts = map[string]*Client{}, map[string]*Host{}
	}
	for _, c := range later.Clients() {
		first := func(name string) *Client { return &Client{Address: name, FirstAt: c.FirstAt} }
		mine := entryOf(p.clients, c.Address, first)
		mine.Connections += c.Connections
		mine.Bytes += c.Bytes
		mine.LastAt = c.LastAt
	}
	for _, h := range later.Hosts() {
		mine := entryOf(p.hosts, h.Name, func(name string) *Host { return &Host{Name: name} })
		mine.Connections += h.Connections
		mine.Failures += h.Failures
		mine.Bytes += h.Bytes
	}
}

// Empty reports whether nothing was counted.
func (p *Peers) Empty() bool { return len(p.clients)+len(p.hosts) == 0 }

// Clients lists the clients by address.
func (p *Peers) Clients() []Client {
	return sorted(p.clients, func(a, b *Client) int { return cmp.Compare(a.Address, b.Address) })
}

// Hosts lists the hosts by name.
func (p *Peers) Hosts() []Host {
	return sorted(p.hosts, func(a, b *Host) int { return cmp.Compare(a.Name, b.Name) })
}

func sorted[T any](all map[string]*T, by func(a, b *T) int) []T {
	list := make([]T, 0, len(all))
	for _, v := range slices.SortedFunc(maps.Values(all), by) {
		list = append(list, *v)
	}
	return list
}
