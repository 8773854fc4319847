package upstream

import (
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/supply"
)

// iproyalMaxTTL is the longest time that an exit is kept.
const iproyalMaxTTL = 7 * 24 * time.Hour

var (
	iproyalToken = regexp.MustCompile(`^[a-z][a-z0-9]{7}$`)
	iproyalCity  = regexp.MustCompile(`^[a-z0-9]{1,64}$`)
)

// Endpoint writes the exit behind the password, as
// https://docs.iproyal.com/proxies/residential/proxy/location and …/rotation
// say: _country-us_city-newyork_session-abcd1234_lifetime-10m.
func (p *iproyal) Endpoint(a supply.Access, t supply.Target) (supply.Endpoint, error) {
	if err := p.sells(session.Dynamic); err != nil {
		return supply.Endpoint{}, err
	}
	words, err := iproyalWords(t)
	if err != nil {
		return supply.Endpoint{}, err
	}
	protocol := t.Protocol
	if protocol == "" {
		protocol = session.HTTP
	}
	return supply.Endpoint{Protocol: protocol, Host: p.host, Port: p.port, User: a.User, Password: a.Password + words,
		Trusted: true}, nil
}

// NewExit needs nothing: another token is another exit.
func (p *iproyal) NewExit(supply.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, p.sells(session.Dynamic)
}

// iproyalWords are what follows the password. Each value is judged first: one
// that holds a separator would be another word.
func iproyalWords(t supply.Target) (string, error) {
	var words string
	country, city := strings.ToUpper(t.Location.Country), strings.ToLower(t.Location.City)
	if country != "" {
		if _, ok := slices.BinarySearch(Countries, country); !ok {
			return "", supply.Refuse(supply.Invalid, "no such country")
		}
		words += "_country-" + strings.ToLower(country)
	}
	if city != "" {
		if country == "" {
			return "", supply.Refuse(supply.Invalid, "a city needs its country")
		}
		if !iproyalCity.MatchString(city) {
			return "", supply.Refuse(supply.Invalid, "a city is letters and digits")
		}
		words += "_city-" + city
	}
	if t.Token == "" {
		return words, nil // every connection has an exit of its own
	}
	if !iproyalToken.MatchString(t.Token) {
		return "", supply.Refuse(supply.Invalid, "a token is 8 lower case letters and digits and begins with a letter")
	}
	lifetime, err := iproyalLifetime(t.TTL)
	return words + "_session-" + t.Token + lifetime, err
}

// iproyalLifetime is a time in the longest unit that it is a multiple of. Nothing
// is rounded; 0 is the longest time.
func iproyalLifetime(d time.Duration) (string, error) {
	if d == 0 {
		d = iproyalMaxTTL
	}
	if d < time.Second || d > iproyalMaxTTL || d%time.Second != 0 {
		return "", supply.Refuse(supply.Invalid, "an exit is kept for whole seconds, 1 second to 7 days")
	}
	for _, u := range []struct {
		name string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if d%u.is == 0 {
			return "_lifetime-" + strconv.FormatInt(int64(d/u.is), 10) + u.name, nil
		}
	}
	return "_lifetime-" + strconv.FormatInt(int64(d/time.Second), 10) + "s", nil
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
