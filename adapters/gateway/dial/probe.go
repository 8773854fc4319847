package dial

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
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/procurement"
)

// Result is the outcome of a probe.
type Result struct {
	ExitIP  string // the address that the echo service reported
	Latency time.Duration
}

// maxEcho bounds what is read of the echo's answer.
const maxEcho = 64 << 10

// Probe requests the caller's address from an echo, from an exit or through an
// upstream proxy. It is not metered, and the echo is not checked because the operator
// configures it.
func (d *Dialer) Probe(ctx context.Context, echo string, exit netip.Addr, proxy *procurement.Endpoint) (Result, error) {
	target, err := url.Parse(echo)
	if err != nil || target.Host == "" {
		return Result{}, fmt.Errorf("probe: the echo %q is not a URL", echo)
	}
	ctx, cancel := context.WithTimeout(ctx, d.Connect)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return d.dialEcho(ctx, addr, exit, proxy)
		},
	}
	if proxy == nil { // the echo is this service, by an address that no certificate names
		transport.TLSClientConfig = d.EchoTLS
	}
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return Result{}, fmt.Errorf("probe: %w", err)
	}
	began := monotime.Now()
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
	return Result{ExitIP: body.Data.IP, Latency: monotime.Now() - began}, nil
}

func (d *Dialer) dialEcho(ctx context.Context, addr string, exit netip.Addr, proxy *procurement.Endpoint) (
	net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		return d.dialThrough(ctx, hostport.Target{Host: host, Port: uint16(number)}, proxy)
	}
	answers, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	ref := refusal.Unreachable
	for _, a := range answers {
		var tcp *net.TCPConn
		if tcp, ref = d.Dial(ctx, netip.AddrPortFrom(a.Unmap(), uint16(number)), exit); ref == nil {
			return tcp, nil
		}
	}
	return nil, ref
}

func (d *Dialer) dialThrough(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint) (net.Conn, error) {
	in := http1.NewReader(nil)
	tcp, _, ref := d.Through(ctx, t, proxy, in)
	if ref != nil {
		return nil, ref
	}
	early := bytes.Clone(in.Buffered())
	in.Free()
	return prefixed{tcp, io.MultiReader(bytes.NewReader(early), tcp)}, nil
}

// prefixed is a connection that returns bytes read earlier first.
type prefixed struct {
	*net.TCPConn
	r io.Reader
}

// Read reads the earlier bytes, then the connection.
func (c prefixed) Read(p []byte) (int, error) { return c.r.Read(p) }
