package wire

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/procurement"
)

// OpenTunnel opens a tunnel to a target, as HOST:PORT, through the proxy of a provider and closes it
// unused. Connecting takes at most timeout. Its error is a *procurement.Error, without the credential.
func OpenTunnel(ctx context.Context, s configfile.Settings, proxy procurement.Endpoint, target string,
	timeout time.Duration) error {
	host, port, err := net.SplitHostPort(target)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil || host == "" || number == 0 {
		return procurement.Refuse(procurement.Invalid, "the target "+strconv.Quote(target)+" is not HOST:PORT")
	}
	d := dial.Dialer{AddressPolicy: egressPolicy(s), Resolver: net.DefaultResolver, Resolve: timeout, Connect: timeout,
		Now: time.Now}
	in := http1.NewReader(nil)
	tcp, _, ref := d.Through(ctx, hostport.Target{Host: host, Port: uint16(number)}, &proxy, in)
	if ref != nil {
		return refusedTunnel(ref)
	}
	in.Free()
	_ = tcp.Close()
	return nil
}

// tunnelClasses are the classes of what keeps a tunnel from being opened; others are Temporary.
var tunnelClasses = map[refusal.Code]procurement.Class{
	refusal.CodeUpstreamAuth:    procurement.Auth,
	refusal.CodeUpstreamPayment: procurement.InsufficientFunds,
	refusal.CodeUpstreamBusy:    procurement.RateLimited,
	refusal.CodeUpstreamRefused: procurement.Invalid,
	refusal.CodeUpstreamTimeout: procurement.TimedOut,
}

// refusedTunnel returns what a refusal means to the operator, whom its advice is not for.
func refusedTunnel(ref *refusal.Refusal) error {
	class, known := tunnelClasses[ref.Code]
	if !known {
		class = procurement.Temporary
	}
	reason := ref.Message
	if _, answer, ok := strings.Cut(ref.HowToFix, refusal.AnswerPrefix); ok {
		reason += ": " + answer
	}
	return procurement.Refuse(class, reason)
}
