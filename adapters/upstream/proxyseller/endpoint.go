package upstream

import (
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Endpoint writes the exit behind the login, in the grammar that the gateway has a
// profile for: login[_c_US][_city_New-York][_s_token][_ttl_30s]. HTTP and SOCKS5
// are spoken on one port.
func (p *proxySellerResident) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if a.User == "" || a.Password == "" {
		return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "no credential")
	}
	return profiles["proxyseller"].endpoint(gatewayAccount{options: map[string]string{"username": a.User}, password: a.Password,
		places: p.places, host: p.host, port: p.port}, t)
}

// place refuses a location that the gateway cannot be asked for.
func (p *proxySellerResident) place(l session.Location) error {
	_, err := p.Endpoint(procurement.Access{User: "x", Password: "x"}, procurement.Target{Location: l})
	return err
}

// NewExit is the zero exit: another token is another exit.
func (p *proxySellerResident) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}
