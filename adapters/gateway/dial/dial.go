// Package dial connects the gateway to targets, directly from an exit or through an
// upstream proxy.
//
// A target is resolved first, every address of the answer is checked, and only a
// checked address is dialled: a name cannot resolve to another address between the
// two steps. One forbidden address forbids the target. The addresses of this
// service itself are forbidden before any configured rule. Through an upstream
// proxy the same judgement is made here, then the name or a checked address is sent on.
//
// No connection has keep-alive probes: a quiet tunnel is closed by its idle limit.
package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"agentproxy/adapters/gateway/refusal"
)

// AddressPolicy decides whether an address may be dialled; egress.Policy is the
// implementation.
type AddressPolicy interface {
	// AddressPolicy returns a *domain.Error for an address that is forbidden. Its message
	// is shown to clients.
	Check(netip.AddrPort) error
}

// Policy checks the addresses of one target by what was configured about targets.
type Policy interface {
	// Address returns the refusal of an address; nil if it may be dialled.
	Address(netip.Addr) *refusal.Refusal
	// Attempt returns the refusal of a connection to a checked address, which the path to the
	// target is about to make; nil if it may be made now.
	Attempt(netip.Addr) *refusal.Refusal
}

// Resolver resolves names; *net.Resolver is the implementation.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// receiveBuffer bounds what the kernel accepts from an upstream proxy while the client
// does not read, because the provider counts it. Direct connections keep the kernel's
// own size, with which a splice moves more at once.
const receiveBuffer = 256 << 10

// Dialer connects to targets. Its fields are set before its first use.
type Dialer struct {
	AddressPolicy AddressPolicy // nil forbids every target
	Resolver      Resolver
	SingleLabels  bool             // names without a dot may be targets
	Own           []netip.AddrPort // listeners of this service, never dialled
	Public        *Public          // where clients reach the service, never dialled
	Resolve       time.Duration    // timeout of one lookup
	Connect       time.Duration    // timeout of connecting, handshake of an upstream proxy included
	Now           func() time.Time // compared with dates in Retry-After
	Roots         *x509.CertPool   // of the certificates of upstream proxies; nil: those of the system
	EchoTLS       *tls.Config      // of an echo that is asked without an upstream proxy; nil: the default
}

// Dial connects to a checked address from an exit, the zero Addr being the host's
// default address.
func (d *Dialer) Dial(ctx context.Context, target netip.AddrPort, exit netip.Addr) (*net.TCPConn, *refusal.Refusal) {
	from, ok := bindTo(exit, target.Addr())
	if !ok {
		return nil, refusal.Unreachable
	}
	// DialTCP binds even where no local address is given.
	nd := net.Dialer{KeepAlive: -1, ControlContext: lateBind}
	tcp, err := nd.DialTCP(ctx, "tcp", netip.AddrPortFrom(from, 0), target)
	if err != nil {
		return nil, dialFailed(err)
	}
	return tcp, nil
}

// bindTo returns the local address from which an exit reaches a target, the zero
// Addr for the host's default one. ok is false if the exit cannot reach it. Exits on
// loopback exist in development only and are used for targets on loopback only.
func bindTo(exit, target netip.Addr) (from netip.Addr, ok bool) {
	switch {
	case !exit.IsValid():
		return netip.Addr{}, true
	case exit.IsLoopback() && (!target.IsLoopback() || exit.Is4() != target.Is4()):
		return netip.Addr{}, true
	case exit.Is4() != target.Is4():
		return netip.Addr{}, false
	}
	return exit, true
}

// dialFailed returns the refusal that a failure to connect means.
func dialFailed(err error) *refusal.Refusal {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return refusal.ConnectionRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS):
		return refusal.OutOfSockets
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return refusal.ConnectTimeout
	case errors.Is(err, syscall.ECONNRESET):
		return refusal.ConnectionReset
	}
	return refusal.Unreachable
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
