package list

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"agentproxy/domain/country"
	"agentproxy/domain/egress"
	"agentproxy/domain/session"
)

// Probe is the result of a request to the echo service through a line.
type Probe struct {
	Exit    netip.Addr
	Country string // if the echo names it
}

// prober asks an echo through a proxy which address the request came from.
type prober struct {
	echo     string
	protocol session.Protocol // of lines without one
	trusted  bool             // the operator named the hosts
}

// probeTimeout is the timeout of one probe.
const probeTimeout = 15 * time.Second

// maxEcho bounds the answer of an echo, in bytes.
const maxEcho = 64 << 10

var errEcho = errors.New("the echo's answer has no address")

// probe opens a connection of its own through the proxy of a line.
func (p prober) probe(ctx context.Context, l Line) (Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dialer := &net.Dialer{Control: p.checkAddress}
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: dialer.DialContext, Proxy: nil}
	if cmp.Or(l.Protocol, p.protocol) == session.SOCKS5 {
		t.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(l.URL(session.SOCKS5)) }
	} else {
		// CONNECT for http too: it is what tunnels use.
		t.DialContext = func(ctx context.Context, network, target string) (net.Conn, error) {
			return connect(ctx, dialer, l, target)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.echo, nil)
	if err != nil {
		return Probe{}, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := t.RoundTrip(req)
	if err != nil {
		return Probe{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxEcho))
	if err != nil || res.StatusCode != http.StatusOK {
		return Probe{}, errEcho
	}
	return parseEcho(body)
}

// checkAddress refuses an address inside the operator's network that a list from elsewhere names.
func (p prober) checkAddress(_, address string, _ syscall.RawConn) error {
	if p.trusted {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return egress.Policy{}.Check(ap)
}

// connect opens a tunnel by CONNECT.
func connect(ctx context.Context, d *net.Dialer, l Line, target string) (net.Conn, error) {
	c, err := d.DialContext(ctx, "tcp", l.String())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if l.User != "" {
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(l.User+":"+l.Password)))
	}
	if err := req.Write(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	r := bufio.NewReaderSize(c, 4096)
	res, err := http.ReadResponse(r, req) //nolint:bodyclose // the answer to CONNECT has no body; the tunnel follows
	if err == nil && (res.StatusCode/100 != 2 || r.Buffered() > 0) {
		err = errors.New("the proxy refused the tunnel: " + res.Status)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// parseEcho reads the answer of an echo: an address alone, or JSON with ip and perhaps
// country or country_code, at the top or in data.
func parseEcho(body []byte) (Probe, error) {
	type answer struct {
		IP          string `json:"ip"`
		Country     string `json:"country"`
		CountryCode string `json:"country_code"`
	}
	var a struct {
		answer
		Data answer `json:"data"`
	}
	text := strings.TrimSpace(string(body))
	if err := json.Unmarshal(body, &a); err == nil {
		if a.answer.IP == "" {
			a.answer = a.Data
		}
		text = a.answer.IP
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return Probe{}, errEcho
	}
	out := Probe{Exit: ip.Unmap()}
	for _, code := range []string{a.answer.CountryCode, a.answer.Country} {
		if code = strings.ToUpper(code); country.Known(code) {
			out.Country = code
			break
		}
	}
	return out, nil
}
