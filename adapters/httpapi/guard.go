package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gin-gonic/gin"

	"agentproxy/adapters/conns"
	"agentproxy/domain"
)

var (
	errMisdirected = &domain.Error{Kind: domain.Misdirected, Code: "MISDIRECTED_REQUEST",
		Message: "this port serves the API and is not a proxy; connect to the gateway, the address in proxy.full_url"}
	errHost = errMisdirected.Msgf("the Host header is not a name of this service; use 127.0.0.1 or localhost, " +
		"or set AGENTPROXY_PUBLIC_URL to the name that agents reach it by")
	errCrossSite = &domain.Error{Kind: domain.Forbidden, Code: "CROSS_SITE_REQUEST",
		Message: "a web page of another site must not call this service; call it from a program"}
)

// guard refuses what is not meant for this server: requests for a proxy and, where every
// program of this host is trusted, what web pages make a browser send.
func (s *Server) guard(c *gin.Context) {
	if err := s.misplaced(c.Request); err != nil {
		c.Writer.Header()["Connection"] = []string{"close"}
		s.refuse(callOf(c), err)
		c.Abort()
	}
}

// misplaced returns why a request is not served, or nil.
func (s *Server) misplaced(r *http.Request) error {
	if r.Method == http.MethodConnect || r.URL.Host != "" {
		return errMisdirected.With("gateway", net.JoinHostPort(s.cfg.GatewayHost, strconv.Itoa(s.cfg.GatewayPort)))
	}
	if s.hosts == nil {
		return nil
	}
	if !s.hosts.Allow(r.Host) {
		return errHost
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return errCrossSite
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Host != r.Host {
			return errCrossSite
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
