package gateway

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/procurement"
)

// ExitLog records who used which exit; *app/exitlogs.Log is the implementation. It never blocks.
type ExitLog interface {
	// Opened records a connection, which it keeps, and returns its number; 0 for none.
	Opened(*exitlog.Connection) uint64
	// Closed records the end of a connection by its number.
	Closed(number uint64, bytes int64, end exitlog.End, at time.Time)
}

// noExits records nothing.
type noExits struct{}

func (noExits) Opened(*exitlog.Connection) uint64            { return 0 }
func (noExits) Closed(uint64, int64, exitlog.End, time.Time) {}

// use is the use of a connection to a target by a client, as the exit log has it.
type use struct {
	number uint64
	client netip.AddrPort
	bytes  int64
}

// opened records that a client uses a connection to a target.
func (g *Gateway) opened(c *client.Conn, p path, pass *targetCheck, tcp *net.TCPConn) use {
	e := &exitlog.Connection{Agent: p.route.AgentID, Session: p.route.SessionID, Worker: p.worker.Name(),
		Client: addrPort(c.RemoteAddr()), Host: pass.Host, Opened: g.now()}
	if p.proxy == nil {
		e.Target, e.Exit = addrPort(tcp.RemoteAddr()), addrPort(tcp.LocalAddr())
	} else {
		var target netip.Addr // an upstream proxy may resolve a name in its own way
		if pass.Host == "" && len(pass.Addrs) > 0 {
			target = pass.Addrs[0].Unmap()
		}
		e.Target, e.Exit, e.Seller = netip.AddrPortFrom(target, pass.Port), netip.AddrPortFrom(p.exit.IP, 0), p.route.Provider
		e.Token = tokenOf(p)
	}
	return use{number: g.deps.Exits.Opened(e), client: e.Client}
}

// tokenOf returns what names an exit to its seller and is not a credential: the token in the user
// name if there is one, else the address of the proxy.
func tokenOf(p path) string {
	token := p.token
	if p.worker == nil {
		token = procurement.Token(p.route.SessionID, p.route.Rotation)
	}
	if token != "" && strings.Contains(strings.ToLower(p.proxy.User), token) {
		return token
	}
	return net.JoinHostPort(p.proxy.Host, strconv.Itoa(int(p.proxy.Port)))
}

// closed records the end of a use.
func (g *Gateway) closed(u use, end exitlog.End) {
	g.deps.Exits.Closed(u.number, u.bytes, end, g.now())
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := t.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// endOf returns how the exit log names the end of a connection.
func endOf(why client.Cause) exitlog.End {
	switch why {
	case client.TimedOut:
		return exitlog.Idle
	case client.TargetGone:
		return exitlog.Reset
	case client.Ended, client.Removed:
		return exitlog.Over
	case client.Exhausted:
		return exitlog.Exhausted
	case client.Denied:
		return exitlog.Denied
	case client.Stopped:
		return exitlog.Stopped
	case client.Looped:
		return exitlog.Looped
	}
	return exitlog.Finished
}
