package upstream

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// gatewayAccount is whose words are written, and where to.
type gatewayAccount struct {
	options  map[string]string // of the templates
	password string
	places   map[string]string // the seller's spelling, by "US" or "US/newyork"
	host     string            // empty: the profile's
	port     uint16            // 0: the profile's
	protocol session.Protocol  // when the target tells none; empty: http
	numbers  uint64            // tokens that are numbers end here; 0: the profile's
}

var (
	placeholder  = regexp.MustCompile(`\{[a-z]+\}`)
	tokenForm    = regexp.MustCompile(`^[a-z][a-z0-9]{7}$`)
	wordForm     = regexp.MustCompile(`^[A-Za-z0-9]+$`)
	spellingForm = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

// maxCredential is what SOCKS5 can carry (RFC 1929).
const maxCredential = 255

func unaskable(format string, args ...any) error {
	return procurement.Refuse(procurement.Invalid, fmt.Sprintf(format, args...))
}

// endpoint is the proxy of an exit, for a protocol or for the other one if the
// gateway does not speak that.
func (p profile) endpoint(a gatewayAccount, t procurement.Target) (procurement.Endpoint, error) {
	words, err := p.words(a, t)
	if err != nil {
		return procurement.Endpoint{}, err
	}
	e := procurement.Endpoint{Host: a.host, Port: a.port, User: fillIn(p.user, a.options), Password: a.password, Trusted: true}
	if e.Host == "" {
		e.Host = p.host
	}
	e.Protocol = p.speaks(a, t.Protocol)
	if e.Port == 0 {
		e.Port = p.ports[e.Protocol]
	}
	if len(words) > 0 {
		text := p.first + strings.Join(words, p.next)
		if p.inPassword {
			e.Password += text
		} else {
			e.User += text
		}
	}
	if len(e.User) > maxCredential || len(e.Password) > maxCredential {
		return procurement.Endpoint{}, unaskable("the credential is longer than %d bytes", maxCredential)
	}
	return e, nil
}

// speaks is the protocol that is asked for, else the only one of the gateway. A
// port of the operator's is taken to speak both.
func (p profile) speaks(a gatewayAccount, want session.Protocol) session.Protocol {
	if want == "" {
		want = a.protocol
	}
	if want == "" {
		want = session.HTTP
	}
	if _, ok := p.ports[want]; !ok && a.port == 0 {
		for other := range p.ports {
			return other
		}
	}
	return want
}

// words are what is written behind the account, in the seller's order.
func (p profile) words(a gatewayAccount, t procurement.Target) ([]string, error) {
	values := map[string]string{}
	templates, err := p.place(a, t.Location, values)
	if err != nil {
		return nil, err
	}
	templates = slices.Clone(templates)
	if t.Token == "" {
		templates = append(templates, p.rotate...)
	} else {
		if values["token"], err = p.token(a, t.Token); err != nil {
			return nil, err
		}
		if values["ttl"], err = p.ttl.write(t.TTL); err != nil {
			return nil, err
		}
		templates = append(templates, p.session...)
		if p.ttl.word != "" {
			templates = append(templates, p.ttl.word)
		}
	}
	for _, name := range []string{"network", "zone", "package"} {
		values[name] = a.options[name]
	}
	for i, tmpl := range templates {
		templates[i] = fillIn(tmpl, values)
	}
	return templates, nil
}

// fillIn puts values for the placeholders of a template. A value is not read
// again.
func fillIn(template string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(template, func(m string) string { return values[m[1:len(m)-1]] })
}

// place chooses the words of a place and spells it.
func (p profile) place(a gatewayAccount, l session.Location, values map[string]string) ([]string, error) {
	if l.Country == "" {
		if l.City != "" {
			return nil, unaskable("a city needs its country")
		}
		return p.anywhere, nil
	}
	if p.country == nil {
		return nil, unaskable("countries cannot be asked for")
	}
	code := strings.ToUpper(l.Country)
	if _, ok := slices.BinarySearch(Countries, code); !ok {
		return nil, unaskable("no country has the code %q", l.Country)
	}
	var err error
	if values["country"], err = p.spellCountry(a, code); err != nil || l.City == "" {
		return p.country, err
	}
	if p.city == nil || !p.sellsCities(a.options["network"]) {
		return nil, unaskable("cities cannot be asked for")
	}
	if values["city"] = a.places[code+"/"+l.City]; values["city"] == "" {
		values["city"], err = p.spellCity(l.City)
	}
	return p.city, err
}

func (p profile) sellsCities(name string) bool {
	i := slices.IndexFunc(p.networks, func(n exitNetwork) bool { return n.name == name })
	return len(p.networks) == 0 || i >= 0 && p.networks[i].city
}

func (p profile) spellCountry(a gatewayAccount, code string) (string, error) {
	if s := a.places[code]; s != "" {
		return s, nil
	}
	if s := p.countryCodes[code]; s != "" {
		return s, nil
	}
	switch {
	case p.countryNames:
		name := strings.ReplaceAll(CountryName(code), " ", "")
		if !wordForm.MatchString(name) {
			return "", unaskable("the seller's name of %s is not known; locations of the provider can tell it", code)
		}
		return name, nil
	case p.upperCountry:
		return code, nil
	}
	return strings.ToLower(code), nil
}

// spellCity writes a city as the seller does. It is words of letters and digits
// with a space, an underscore or the seller's own sign between them; the
// separators of the grammar are refused first.
func (p profile) spellCity(city string) (string, error) {
	if strings.ContainsAny(city, p.separators) {
		return "", unaskable("the city %q holds a separator of the seller's grammar", city)
	}
	between := func(c rune) bool {
		return c == ' ' || c == '_' || p.cityGap != cityGapUnknown && string(c) == p.cityGap
	}
	var words []string
	for w := range strings.FieldsFuncSeq(city, between) {
		if !wordForm.MatchString(w) {
			return "", unaskable("the city %q is not words of letters and digits", city)
		}
		if w = strings.ToLower(w); p.cityTitle {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		words = append(words, w)
	}
	switch {
	case len(words) == 0:
		return "", unaskable("the city %q has no name", city)
	case len(words) > 1 && p.cityGap == cityGapUnknown:
		return "", unaskable("how the seller writes %q is not known; locations of the provider can tell it", city)
	case p.cityLetters && strings.ContainsAny(city, "0123456789"):
		return "", unaskable("the city %q is not of letters alone", city)
	}
	return strings.Join(words, p.cityGap), nil
}

// token writes a session token. Where the seller takes numbers it is one that is
// computed of the token: two tokens may get the same, by chance.
func (p profile) token(a gatewayAccount, token string) (string, error) {
	if !tokenForm.MatchString(token) {
		return "", unaskable("a token is 8 lower case letters and digits and begins with a letter")
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

// write is a time in the longest unit that it is a multiple of. Zero is the
// longest time. Nothing is rounded.
func (l lifetime) write(d time.Duration) (string, error) {
	switch {
	case l.word == "" && d != 0:
		return "", unaskable("a time cannot be asked for")
	case l.word == "":
		return "", nil
	case d == 0:
		d = l.max
	case d < l.min || d > l.max:
		return "", unaskable("a time is %s to %s, not %s", l.min, l.max, d)
	}
	for _, u := range l.units {
		if d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.suffix, nil
		}
	}
	return "", unaskable("a time is a multiple of %s, not %s", l.units[len(l.units)-1].length, d)
}
