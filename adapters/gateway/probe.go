package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

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

// Probe asks the service's own echo (Config.EchoURL) for the caller's address,
// through an exit of a route. It is free, and the address rule does not apply:
// the target is configured by us. Errors say what failed on the way.
func (g *Gateway) Probe(ctx context.Context, route traffic.Route) (Result, error) {
	target, err := url.Parse(g.cfg.EchoURL)
	if err != nil || target.Host == "" {
		return Result{}, fmt.Errorf("probe: EchoURL %q is no URL", g.cfg.EchoURL)
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
			return g.dialEcho(ctx, addr, exit.IP)
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

func (g *Gateway) dialEcho(ctx context.Context, addr string, exit netip.Addr) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	answers, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	ref := targetUnreachable
	for _, a := range answers {
		var tcp *net.TCPConn
		if tcp, ref = g.dial(ctx, netip.AddrPortFrom(a.Unmap(), uint16(number)), exit); ref == nil {
			return tcp, nil
		}
	}
	return nil, ref
}
