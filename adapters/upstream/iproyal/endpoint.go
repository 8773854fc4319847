package upstream

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// iproyalProfile is the grammar of the residential gateway, the same as for an
// account without sub-users.
var iproyalProfile = profiles["iproyal"]

// Endpoint writes the exit behind the password of the sub-user, as
// https://docs.iproyal.com/proxies/residential/proxy/location and …/rotation
// say: _country-us_city-newyork_session-abcd1234_lifetime-10m.
func (p *iproyal) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if err := p.sells(session.Dynamic); err != nil {
		return procurement.Endpoint{}, err
	}
	return iproyalProfile.endpoint(gatewayAccount{options: map[string]string{"username": a.User}, password: a.Password,
		host: p.host, port: p.port}, t)
}

// NewExit needs nothing: another token is another exit.
func (p *iproyal) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, p.sells(session.Dynamic)
}

// iproyalAddress reads the option gateway.
func iproyalAddress(text string) (host string, port uint16, err error) {
	if text == "" {
		text = iproyalGateway
	}
	host, service, err := net.SplitHostPort(text)
	n, bad := strconv.ParseUint(service, 10, 16)
	if err != nil || bad != nil || host == "" || n == 0 {
		return "", 0, fmt.Errorf("options.gateway is no host:port: %q", text)
	}
	return host, uint16(n), nil
}

// iproyalAnswers reads the option answers.
func iproyalAnswers(text string) (map[string]any, error) {
	answers := map[string]any{}
	if text == "" {
		return answers, nil
	}
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		return nil, fmt.Errorf("options.answers is no JSON object: %w", err)
	}
	return answers, nil
}
