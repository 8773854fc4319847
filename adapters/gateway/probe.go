package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Result is what a probe found.
type Result struct {
	ExitIP  string // the address that the echo saw
	Latency time.Duration
}

// maxEcho bounds what is read of the echo's answer.
const maxEcho = 64 << 10

// Probe asks the service's own echo (Config.EchoURL, PublicEchoURL through an
// upstream proxy) for the caller's address, through the first exit of a route. It
// is free, and the address rule does not apply: the target is configured by us.
// Errors say what failed on the way.
func (g *Gateway) Probe(ctx context.Context, route traffic.Route) (Result, error) {
	echo, hop := g.cfg.EchoURL, hopOf(&route, 0)
	if hop != nil {
		echo = g.cfg.PublicEchoURL
	}
	target, err := url.Parse(echo)
	if err != nil || target.Host == "" {
		return Result{}, fmt.Errorf("probe: the echo %q is no URL", echo)
	}
	var exit session.Exit
	if len(route.Exits) > 0 {
		exit = route.Exits[0]
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timing.Connect)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return g.dialEcho(ctx, addr, exit.IP, hop)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return Result{}, fmt.Errorf("probe: %w", err)
	}
	began := mono()
	res, err := client.Do(req)
	if err != nil {
		return Result{}, fmt.Errorf("probe: %w", err)
	}
	defer res.Body.Close()
	var body struct {
		Data struct {
			IP string `json:"ip"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxEcho)).Decode(&body); err != nil {
		return Result{}, fmt.Errorf("probe: reading the echo: %w", err)
	}
	if _, err := netip.ParseAddr(body.Data.IP); err != nil || res.StatusCode != http.StatusOK {
		return Result{}, fmt.Errorf("probe: the echo answered status %d", res.StatusCode)
	}
	return Result{ExitIP: body.Data.IP, Latency: mono() - began}, nil
}

func (g *Gateway) dialEcho(ctx context.Context, addr string, exit netip.Addr, hop *procurement.Endpoint) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	if hop != nil {
		return g.dialThrough(ctx, hostport.Target{Host: host, Port: uint16(number)}, hop)
	}
	answers, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	ref := refusal.Unreachable
	for _, a := range answers {
		var tcp *net.TCPConn
		if tcp, ref = g.dial(ctx, netip.AddrPortFrom(a.Unmap(), uint16(number)), exit); ref == nil {
			return tcp, nil
		}
	}
	return nil, ref
}

// dialThrough connects a probe through an upstream proxy.
func (g *Gateway) dialThrough(ctx context.Context, t hostport.Target, hop *procurement.Endpoint) (net.Conn, error) {
	in := http1.NewReader(nil)
	tcp, _, ref := g.through(ctx, t, hop, in)
	if ref != nil {
		return nil, ref
	}
	early := bytes.Clone(in.Buffered())
	in.Free()
	return begun{tcp, io.MultiReader(bytes.NewReader(early), tcp)}, nil
}

// begun is a connection of which something was read already.
type begun struct {
	*net.TCPConn
	r io.Reader
}

func (b begun) Read(p []byte) (int, error) { return b.r.Read(p) }
