package upstream

import (
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/supply"
)

// proxySellerGateways are the hosts of residential traffic, the Dutch one first.
// Each speaks HTTP and SOCKS5 on port 10000
// (https://docs.proxy-seller.com/docs/proxy-seller/residential-proxy/api-tool).
var proxySellerGateways = []string{"res.proxy-seller.com", "us.res.proxy-seller.com", "asia.res.proxy-seller.com", "asia2.res.proxy-seller.com"}

const proxySellerPort = 10000

// Endpoint appends what is asked for to the login:
// login[_c_US][_city_New-York][_s_token][_ttl_30s]. Without a token every request
// has its own exit. The longest time to live is not documented.
func (p *proxySellerResident) Endpoint(a supply.Access, t supply.Target) (supply.Endpoint, error) {
	place, err := p.place(t.Location)
	if err != nil {
		return supply.Endpoint{}, err
	}
	if a.User == "" || a.Password == "" {
		return supply.Endpoint{}, supply.Refuse(supply.Invalid, "no credential")
	}
	login := a.User + place
	if t.Token != "" {
		if !proxySellerWord(t.Token) {
			return supply.Endpoint{}, supply.Refuse(supply.Invalid, "a token is letters and digits")
		}
		login += "_s_" + t.Token
		switch {
		case t.TTL < 0 || t.TTL%time.Second != 0:
			return supply.Endpoint{}, supply.Refuse(supply.Invalid, "an exit is kept for whole seconds")
		case t.TTL > 0:
			login += "_ttl_" + strconv.FormatInt(int64(t.TTL/time.Second), 10) + "s"
		}
	}
	protocol := t.Protocol
	switch protocol {
	case "":
		protocol = session.HTTP
	case session.HTTP, session.SOCKS5:
	default:
		return supply.Endpoint{}, supply.Refuse(supply.Invalid, "no such protocol")
	}
	return supply.Endpoint{Protocol: protocol, Host: p.gateway, Port: proxySellerPort, User: login, Password: a.Password, Trusted: true}, nil
}

// place is the suffix of a location. A city is the operator's name for it in the
// locations, else its code; spaces are written "-". Nothing else may stand in it:
// an underscore would begin another parameter.
func (p *proxySellerResident) place(l session.Location) (string, error) {
	if l.Country == "" && l.City == "" {
		return "", nil
	}
	if proxySellerAlpha3(l.Country) == "" {
		return "", supply.Refuse(supply.Invalid, "no such country")
	}
	suffix := "_c_" + l.Country
	if l.City == "" {
		return suffix, nil
	}
	city := l.City
	if name := p.places[l.Country+"/"+l.City]; name != "" {
		city = name
	}
	city = strings.ReplaceAll(city, " ", "-")
	if !proxySellerWord(strings.ReplaceAll(city, "-", "")) {
		return "", supply.Refuse(supply.Invalid, "a city is letters, digits and dashes")
	}
	return suffix + "_city_" + city, nil
}

// proxySellerWord reports whether a text is one or more ASCII letters and digits.
func proxySellerWord(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// NewExit is the zero exit: another token is another exit.
func (p *proxySellerResident) NewExit(supply.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}
