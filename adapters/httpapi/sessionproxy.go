package httpapi

import (
	"net"
	"net/url"
	"strconv"

	"agentproxy/app/fulfilment"
	"agentproxy/app/sessions"
	"agentproxy/domain/connect"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// gateway is where the proxies of sessions are, as agents reach it.
type gateway struct {
	Host string
	Port int
}

// proxies returns the proxies of an active session: one, or one for each IP.
func (g gateway) proxies(v sessions.View) []connect.Proxy {
	r := g.toSession(v)
	if v.Type == session.Static {
		return each(r.IPList, func(i ipListReply) connect.Proxy { return toConnect(i.ProxyFields) })
	}
	if r.Proxy == nil {
		return nil
	}
	return []connect.Proxy{toConnect(*r.Proxy)}
}

func toConnect(p proxyReply) connect.Proxy {
	return connect.Proxy{Protocol: string(p.Protocol), Host: p.Host, Port: p.Port,
		Username: p.Username, Password: p.Password}
}

// showProxy fills in the credentials of an active session. A direct one whose
// provider does not return them has none, because the gateway would refuse its own.
func (g gateway) showProxy(r *sessionReply, v sessions.View) {
	if v.Direct != nil && len(v.Direct) < len(v.Exits) {
		return
	}
	if v.Type == session.Dynamic {
		p := g.toProxy(v, 0, traffic.User{SessionID: v.ID, Number: v.Rotation.Count})
		r.Proxy = &p
		return
	}
	r.IPList = make([]ipListReply, len(v.Exits))
	for i, exit := range v.Exits {
		r.IPList[i] = ipListReply{
			IP:          exit.IP.String(),
			Country:     maybeText(v.Location.Country),
			City:        maybeText(v.Location.City),
			ProxyFields: g.toProxy(v, i, traffic.User{SessionID: v.ID, Static: true, Number: i}),
		}
	}
	if len(r.IPList) > 0 {
		r.Proxy = &r.IPList[0].ProxyFields
	}
}

// toProxy returns the proxy of the i-th exit: the gateway, or an upstream itself.
func (g gateway) toProxy(v sessions.View, i int, user traffic.User) proxyReply {
	if i < len(v.Direct) {
		return toDirect(v.Direct[i], v.Protocol)
	}
	return g.toGateway(v, user.String())
}

// toGateway returns the gateway as a proxy under a user name.
func (g gateway) toGateway(v sessions.View, name string) proxyReply {
	at := "://" + name + ":" + v.Password + "@" + net.JoinHostPort(g.Host, strconv.Itoa(g.Port))
	p := proxyReply{Protocol: v.Protocol, Host: g.Host, Port: g.Port,
		Username: name, Password: v.Password, HTTPURL: "http" + at, SOCKS5URL: "socks5" + at}
	p.FullURL = p.HTTPURL
	if v.Protocol == session.SOCKS5 {
		p.FullURL = p.SOCKS5URL
	}
	return p
}

// toDirect returns an upstream's own proxy. A protocol that it does not offer has no
// URL.
func toDirect(d fulfilment.DirectProxy, wanted session.Protocol) proxyReply {
	urlOf := func(scheme string, e procurement.Endpoint) string {
		if e.Host == "" {
			return ""
		}
		u := url.URL{
			Scheme: scheme,
			User:   url.UserPassword(e.User, e.Password),
			Host:   net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))),
		}
		return u.String()
	}
	p := proxyReply{HTTPURL: urlOf("http", d.HTTP), SOCKS5URL: urlOf("socks5", d.SOCKS5)}
	e := d.HTTP
	p.Protocol, p.FullURL = session.HTTP, p.HTTPURL
	if wanted == session.SOCKS5 && d.SOCKS5.Host != "" || d.HTTP.Host == "" {
		e, p.Protocol, p.FullURL = d.SOCKS5, session.SOCKS5, p.SOCKS5URL
	}
	p.Host, p.Port, p.Username, p.Password = e.Host, int(e.Port), e.User, e.Password
	return p
}
