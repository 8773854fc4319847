package iproyal

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// gatewayProfile is the grammar of the residential gateway, which is the same for
// sub-users as for the account.
var gatewayProfile = gateway.Named("iproyal")

// Endpoint appends the parameters of the exit to the password of the sub-user, such
// as _country-us_city-newyork_session-abcd1234_lifetime-10m. See
// https://docs.iproyal.com/proxies/residential/proxy/location and …/rotation .
func (p *Provider) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if err := p.sells(session.Dynamic); err != nil {
		return procurement.Endpoint{}, err
	}
	return gatewayProfile.Endpoint(gateway.Account{Options: map[string]string{"username": a.User}, Password: a.Password,
		Host: p.host, Port: p.port}, t)
}

// NewExit returns the zero Exit: another token gets another exit.
func (p *Provider) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, p.sells(session.Dynamic)
}

// parseGateway reads the setting gateway; empty is defaultGateway.
func parseGateway(text string) (host string, port uint16, err error) {
	if text == "" {
		text = defaultGateway
	}
	host, service, err := net.SplitHostPort(text)
	n, bad := strconv.ParseUint(service, 10, 16)
	if err != nil || bad != nil || host == "" || n == 0 {
		return "", 0, fmt.Errorf("options.gateway is not a host:port: %q", text)
	}
	return host, uint16(n), nil
}

// parseAnswers reads the setting answers; empty means no answers.
func parseAnswers(text string) (map[string]any, error) {
	answers := map[string]any{}
	if text == "" {
		return answers, nil
	}
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		return nil, fmt.Errorf("options.answers is not a JSON object: %w", err)
	}
	return answers, nil
}
