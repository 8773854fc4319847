package console

import (
	"agentproxy/app/sessions"
	"agentproxy/domain/connect"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// connectData is how programs connect through a session.
type connectData struct {
	Revealed bool
	Proxies  []connect.Proxy // one for each exit of a static session
	Secure   []connect.Proxy // the same, reached by TLS; empty if the gateway takes none
	Snippets []snippet
}

// snippet is the configuration of a client.
type snippet struct {
	Name, Text string
	HTTP       string // why the snippet uses HTTP where SOCKS5 was chosen; empty: it does not
	NoTLS      string // why the snippet uses no TLS where the gateway takes it; empty: it does
}

// connect returns the proxies of an active session and snippets for the first one, the password hidden
// unless it is to be revealed. It returns nil while the provider does not name the proxy.
func (c *Console) connect(s sessions.View, reveal bool) *connectData {
	d := &connectData{Revealed: reveal, Proxies: c.proxies(s)}
	if len(d.Proxies) == 0 {
		return nil
	}
	if !reveal {
		for i, p := range d.Proxies {
			d.Proxies[i] = p.Masked()
		}
	}
	secure := c.cfg.GatewayTLS && s.Direct == nil
	if secure {
		for _, p := range d.Proxies {
			p.Protocol = "https"
			d.Secure = append(d.Secure, p)
		}
	}
	for _, name := range connect.Names() {
		client, _ := connect.Find(name)
		p, sn := d.Proxies[0], snippet{Name: name}
		if client.NoSOCKS != "" && p.Protocol == string(session.SOCKS5) {
			if s.Direct != nil {
				continue
			}
			p.Protocol, sn.HTTP = string(session.HTTP), client.NoSOCKS
		}
		switch {
		case secure && c.cfg.OnlyTLS:
			client, p = client.OnlyTLS(p)
			sn.HTTP, sn.NoTLS = "", client.NoTLS
		case secure:
			p, sn.NoTLS = client.ByTLS(p, p.URL()), client.NoTLS
		}
		sn.Text = client.Snippet(connect.Use{Session: s.ID, Proxy: p})
		d.Snippets = append(d.Snippets, sn)
	}
	return d
}

// proxies returns where programs connect to: the gateway, or the provider's own proxies.
func (c *Console) proxies(s sessions.View) []connect.Proxy {
	if s.Direct != nil && len(s.Direct) < len(s.Exits) {
		return nil
	}
	at := func(user traffic.User) connect.Proxy {
		return connect.Proxy{Protocol: string(s.Protocol), Host: c.cfg.GatewayHost, Port: c.cfg.GatewayPort,
			Username: user.String(), Password: s.Password}
	}
	if s.Type == session.Dynamic && len(s.Direct) == 0 {
		return []connect.Proxy{at(traffic.User{SessionID: s.ID, Number: s.Rotation.Count})}
	}
	var list []connect.Proxy
	for i := range s.Exits {
		if i >= len(s.Direct) {
			list = append(list, at(traffic.User{SessionID: s.ID, Static: true, Number: i}))
			continue
		}
		e, protocol := s.Direct[i].HTTP, session.HTTP
		if s.Protocol == session.SOCKS5 && s.Direct[i].SOCKS5 != (procurement.Endpoint{}) || e == (procurement.Endpoint{}) {
			e, protocol = s.Direct[i].SOCKS5, session.SOCKS5
		}
		list = append(list, connect.Proxy{Protocol: string(protocol), Host: e.Host, Port: int(e.Port), Username: e.User,
			Password: e.Password})
	}
	if s.Type == session.Dynamic {
		list = list[:min(len(list), 1)]
	}
	return list
}
