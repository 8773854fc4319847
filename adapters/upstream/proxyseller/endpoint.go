package proxyseller

import (
	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Endpoint appends the parameters of the exit to the login, as in
// login_c_US_city_New-York_s_token_ttl_30s. One port serves HTTP and SOCKS5.
func (p *trafficProvider) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if a.User == "" || a.Password == "" {
		return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "no credential")
	}
	return gatewayProfile.Endpoint(gateway.Account{Options: map[string]string{"username": a.User}, Password: a.Password,
		Places: p.places, Host: p.host, Port: p.port}, t)
}

// checkPlace fails with Invalid for a location that the gateway's grammar cannot express.
func (p *trafficProvider) checkPlace(l session.Location) error {
	_, err := p.Endpoint(procurement.Access{User: "x", Password: "x"}, procurement.Target{Location: l})
	return err
}

// NewExit returns the zero Exit: another token gets another exit.
func (p *trafficProvider) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}
