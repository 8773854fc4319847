package sessionview

import (
	"net"
	"net/url"
	"strconv"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/fulfilment"
	"agentproxy/app/sessions"
	"agentproxy/domain/connect"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Gateway is where the proxies of sessions are, as agents reach it.
type Gateway struct {
	Host string
	Port int
	TLS  bool // it takes TLS too

	OnlyTLS bool // it refuses what is not TLS
}

// Proxies returns the proxies of an active session: one, or one for each IP.
func (g Gateway) Proxies(v sessions.View) []connect.Proxy {
	r := g.ToSession(v)
	if v.Type == session.Static {
		return value.Each(r.IPList, func(i ipListReply) connect.Proxy { return ToConnect(i.Proxy) })
	}
	if r.Proxy == nil {
		return nil
	}
	return []connect.Proxy{ToConnect(*r.Proxy)}
}

// ToConnect returns a proxy as the configurations of clients take it.
func ToConnect(p Proxy) connect.Proxy {
	return connect.Proxy{Protocol: string(p.Protocol), Host: p.Host, Port: p.Port,
		Username: p.Username, Password: p.Password}
}

// showProxy fills in the credentials of an active session. A direct one whose
// provider does not return them has none, because the gateway would refuse its own.
func (g Gateway) showProxy(r *Session, v sessions.View) {
	if v.Direct != nil && len(v.Direct) < len(v.Exits) {
		return
	}
	if v.Type == session.Dynamic {
		p := g.toProxy(v, 0, traffic.User{SessionID: v.ID, Number: v.Rotation.Count})
		r.Proxy = &p
		return
	}
	r.IPList = make([]ipListReply, 0, len(v.Exits))
	for i, exit := range v.Exits {
		if exit.Ended {
			continue
		}
		ip := ipListReply{
			IP:      exit.IP.String(),
			Country: value.MaybeText(v.Location.Country),
			City:    value.MaybeText(v.Location.City),
			Proxy:   g.toProxy(v, i, traffic.User{SessionID: v.ID, Static: true, Number: i}),
		}
		if i < len(v.Measured) {
			ip.Exit = MaybeExit(v.Measured[i])
		}
		r.IPList = append(r.IPList, ip)
	}
	if len(r.IPList) > 0 {
		r.Proxy = &r.IPList[0].Proxy
	}
}

// toProxy returns the proxy of the i-th exit: the gateway, or an upstream itself.
func (g Gateway) toProxy(v sessions.View, i int, user traffic.User) Proxy {
	if i < len(v.Direct) {
		return toDirect(v.Direct[i], v.Protocol)
	}
	return g.ToGateway(v, user.String())
}

// ToGateway returns the gateway as a proxy under a user name.
func (g Gateway) ToGateway(v sessions.View, name string) Proxy {
	at := "://" + name + ":" + v.Password + "@" + net.JoinHostPort(g.Host, strconv.Itoa(g.Port))
	p := Proxy{Protocol: v.Protocol, Host: g.Host, Port: g.Port,
		Username: name, Password: v.Password, HTTPURL: "http" + at, SOCKS5URL: "socks5" + at}
	if g.TLS {
		p.HTTPSURL = value.MaybeText("https" + at)
	}
	p.FullURL = p.HTTPURL
	if v.Protocol == session.SOCKS5 {
		p.FullURL = p.SOCKS5URL
	}
	return p
}

// toDirect returns an upstream's own proxy. A protocol that it does not offer has no
// URL.
func toDirect(d fulfilment.DirectProxy, wanted session.Protocol) Proxy {
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
	p := Proxy{HTTPURL: urlOf("http", d.HTTP), SOCKS5URL: urlOf("socks5", d.SOCKS5)}
	e := d.HTTP
	p.Protocol, p.FullURL = session.HTTP, p.HTTPURL
	if wanted == session.SOCKS5 && d.SOCKS5.Host != "" || d.HTTP.Host == "" {
		e, p.Protocol, p.FullURL = d.SOCKS5, session.SOCKS5, p.SOCKS5URL
	}
	p.Host, p.Port, p.Username, p.Password = e.Host, int(e.Port), e.User, e.Password
	return p
}
