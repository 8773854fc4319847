package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/httpapi/endpoint"
)

var errHost = endpoint.ErrMisdirected.Msgf(
	"the Host header is not a name of this service; use 127.0.0.1 or localhost, " +
		"or set AGENTPROXY_PUBLIC_URL to the name that agents reach it by")

// misplaced returns why a request is not meant for this server, or nil: it is one for a proxy or, where
// every program of this host is trusted, one that a web page makes a browser send.
func (s *Server) misplaced(r *http.Request) error {
	if r.Method == http.MethodConnect || r.URL.Host != "" {
		return endpoint.ErrMisdirected.With("gateway", net.JoinHostPort(s.cfg.GatewayHost, strconv.Itoa(s.cfg.GatewayPort)))
	}
	if s.cfg.TLS != nil && r.TLS == nil {
		return endpoint.ErrTLSRequired
	}
	if s.hosts == nil {
		return nil
	}
	if !s.hosts.Allow(r.Host) {
		return errHost
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return endpoint.ErrCrossSite
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Host != r.Host {
			return endpoint.ErrCrossSite
		}
	}
	return nil
}

// guarded returns the hosts that a listener serves: nil, which is all, unless it is on
// loopback or the service is in development mode.
func (s *Server) guarded(l net.Listener) *conns.Hosts {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || !s.cfg.Dev && !a.IP.IsLoopback() {
		return nil
	}
	h := &conns.Hosts{Addr: a.AddrPort().Addr().Unmap()}
	if public, err := url.Parse(s.cfg.PublicURL); err == nil && public.Host != "" {
		h.Names = append(h.Names, public.Host)
	}
	return h
}

// crossSite reports whether a browser sent a request for a page of another site. Where no credential is asked for,
// such a page could use up what its visitors' addresses may have.
func (s *Server) crossSite(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" || origin != "" && !s.ownOrigin(r, origin)
}
