package gateway

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

var (
	placeholder  = regexp.MustCompile(`\{[a-z]+\}`)
	tokenForm    = regexp.MustCompile(`^[a-z][a-z0-9]{7}$`)
	wordForm     = regexp.MustCompile(`^[A-Za-z0-9]+$`)
	spellingForm = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

// maxCredential is the longest user name or password that SOCKS5 can carry, in bytes
// (RFC 1929).
const maxCredential = 255

// errNotStrict is returned where the grammar has no word for it.
var errNotStrict = invalid("the seller replaces a lost exit, whatever is asked")

func invalid(format string, args ...any) error {
	return procurement.Refuse(procurement.Invalid, fmt.Sprintf(format, args...))
}

// Endpoint returns the proxy and the credential for an exit. Its protocol is the
// other one if the gateway does not offer the protocol of the target. It fails with
// Invalid if the grammar cannot express the target.
func (p Profile) Endpoint(a Account, t procurement.Target) (procurement.Endpoint, error) {
	user, password, err := p.credential(a, t)
	if err != nil {
		return procurement.Endpoint{}, err
	}
	e := procurement.Endpoint{Host: a.Host, Port: a.Port, User: user, Password: password, Trusted: true}
	if e.Host == "" {
		e.Host = p.host
	}
	if e.Protocol, e.TLS = p.protocol(a, t.Protocol), a.tls; e.TLS {
		e.Protocol = session.HTTP // CONNECT carries what SOCKS5 does
	}
	if e.Port == 0 {
		e.Port = p.ports[e.Protocol]
	}
	if t.Token != "" && (a.strict || t.Strict) {
		e.LostStatus = p.lostStatus
	}
	if len(e.User) > maxCredential || len(e.Password) > maxCredential {
		return procurement.Endpoint{}, invalid("the credential is longer than %d bytes", maxCredential)
	}
	return e, nil
}

// credential returns user name and password for a target.
func (p Profile) credential(a Account, t procurement.Target) (user, password string, err error) {
	if p.custom != nil {
		return p.custom.credential(p, a, t)
	}
	parameters, err := p.parameters(a, t)
	if err != nil {
		return "", "", err
	}
	user, password = expand(p.user, a.Options), a.Password
	if len(parameters) > 0 {
		text := p.first + strings.Join(parameters, p.next)
		if p.inPassword {
			password += text
		} else {
			user += text
		}
	}
	return user, password, nil
}

// protocol returns the requested protocol, or the only one of the gateway. A port that
// the operator configured is assumed to serve both.
func (p Profile) protocol(a Account, want session.Protocol) session.Protocol {
	if want == "" {
		want = a.Protocol
	}
	if want == "" {
		want = session.HTTP
	}
	if _, ok := p.ports[want]; !ok && a.Port == 0 {
		for other := range p.ports {
			return other
		}
	}
	return want
}

// parameters returns what follows the account in the credential, in the seller's
// order.
func (p Profile) parameters(a Account, t procurement.Target) ([]string, error) {
	values := map[string]string{}
	templates, err := p.place(a, t.Location, values)
	if err != nil {
		return nil, err
	}
	if err := p.narrow(a, t.Location, values); err != nil {
		return nil, err
	}
	templates = p.narrowed(a, templates)
	if t.Token == "" {
		templates = append(templates, p.rotate...)
	} else {
		if values["token"], err = p.token(a, t.Token); err != nil {
			return nil, err
		}
		words, ttl := p.session, p.ttl
		if t.Strict && p.strict == nil {
			return nil, errNotStrict
		}
		if a.strict || t.Strict {
			words = p.strict
			if p.strictForever {
				ttl = lifetime{}
			}
		}
		if values["ttl"], err = ttl.format(t.TTL); err != nil {
			return nil, err
		}
		templates = append(templates, words...)
		if ttl.template != "" {
			templates = append(templates, ttl.template)
		}
	}
	for _, name := range []string{"network", "zone", "package"} {
		values[name] = a.Options[name]
	}
	for i, template := range templates {
		templates[i] = expand(template, values)
	}
	return templates, nil
}

// expand replaces the placeholders of a template. Values are not expanded again.
func expand(template string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(template, func(m string) string { return values[m[1:len(m)-1]] })
}

// place returns the templates for a place and stores its spelling in values.
func (p Profile) place(a Account, l session.Location, values map[string]string) ([]string, error) {
	if l.Country == "" {
		if l.City != "" {
			return nil, invalid("a city needs its country")
		}
		return p.anywhere, nil
	}
	if p.country == nil {
		return nil, invalid("countries cannot be asked for")
	}
	code := strings.ToUpper(l.Country)
	if !country.Known(code) {
		return nil, invalid("no country has the code %q", l.Country)
	}
	var err error
	if values["country"], err = p.spellCountry(a, code); err != nil || l.City == "" {
		return p.country, err
	}
	if p.city == nil || !p.sellsCities(a.Options["network"]) {
		return nil, invalid("cities cannot be asked for")
	}
	if values["city"] = a.Places[code+"/"+l.City]; values["city"] == "" {
		values["city"], err = p.spellCity(l.City)
	}
	return p.city, err
}

func (p Profile) sellsCities(name string) bool {
	i := slices.IndexFunc(p.networks, func(n exitNetwork) bool { return n.name == name })
	return len(p.networks) == 0 || i >= 0 && p.networks[i].city
}

func (p Profile) spellCountry(a Account, code string) (string, error) {
	if s := a.Places[code]; s != "" {
		return s, nil
	}
	switch {
	case p.countryNames:
		name := strings.ReplaceAll(country.Name(code), " ", "")
		if !wordForm.MatchString(name) {
			return "", invalid("the seller's name of %s is not known; set it in locations of the provider", code)
		}
		return name, nil
	case p.upperCountry:
		return code, nil
	}
	return strings.ToLower(code), nil
}

// spellCity returns a city in the seller's spelling. A city consists of words of
// letters and digits, with a space, an underscore or the seller's own separator of
// words between them. It fails with Invalid for any other separator of the grammar.
func (p Profile) spellCity(city string) (string, error) {
	if strings.ContainsAny(city, p.separators) {
		return "", invalid("the city %q holds a separator of the seller's grammar", city)
	}
	between := func(c rune) bool {
		return c == ' ' || c == '_' || p.cityGap != cityGapUnknown && string(c) == p.cityGap
	}
	var words []string
	for w := range strings.FieldsFuncSeq(city, between) {
		if !wordForm.MatchString(w) {
			return "", invalid("the city %q is not words of letters and digits", city)
		}
		if w = strings.ToLower(w); p.cityTitle {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		words = append(words, w)
	}
	switch {
	case len(words) == 0:
		return "", invalid("the city %q has no name", city)
	case len(words) > 1 && p.cityGap == cityGapUnknown:
		return "", invalid("the seller's spelling of %q is not known; set it in locations of the provider", city)
	case p.cityLetters && strings.ContainsAny(city, "0123456789"):
		return "", invalid("the city %q is not of letters alone", city)
	}
	return strings.Join(words, p.cityGap), nil
}

// token returns a session token as the seller takes it. If that is a number, it is
// a hash of the token, so that two tokens may by chance get the same exit.
func (p Profile) token(a Account, token string) (string, error) {
	if !tokenForm.MatchString(token) {
		return "", invalid("a token is 8 lower case letters and digits and begins with a letter")
	}
	n := p.number
	if n.max == 0 {
		return token, nil
	}
	if a.numbers > 0 {
		n.max = n.min + a.numbers - 1
	}
	h := fnv.New64a()
	h.Write([]byte(token))
	return strconv.FormatUint(n.min+h.Sum64()%(n.max-n.min+1), 10), nil
}

// format returns a time in the longest unit of which it is a multiple. It returns the
// longest time for 0. It fails with Invalid instead of rounding.
func (l lifetime) format(d time.Duration) (string, error) {
	switch {
	case l.template == "" && d != 0:
		return "", invalid("a time cannot be asked for")
	case l.template == "":
		return "", nil
	case d == 0:
		d = l.max
	case d < l.min || d > l.max:
		return "", invalid("a time is %s to %s, not %s", l.min, l.max, d)
	}
	for _, u := range l.units {
		if d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.suffix, nil
		}
	}
	return "", invalid("a time is a multiple of %s, not %s", l.units[len(l.units)-1].length, d)
}
