package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/domain/session"
)

// CustomProfile is the name of the profile that the operator describes.
const CustomProfile = "custom"

// Custom describes the grammar of a gateway that has no profile. A template is text with
// placeholders; what is in square brackets is left out where a placeholder in it has no
// value.
type Custom struct {
	User          string `option:"user_template" help:"custom: such as customer-{username}[-cc-{country}]-sessid-{token}; what is in brackets is left out without a value. Placeholders: username, country, state, city, asn, token, ttl"`
	Password      string `option:"password_template" help:"custom: such as {password}[_country-{country}]; default {password}"`
	HTTPPort      string `option:"http_port" help:"custom: the port for HTTP"`
	SOCKS5Port    string `option:"socks5_port" help:"custom: the port for SOCKS5"`
	CountryCase   string `option:"country_case" help:"custom: lower (default), upper, or name for English names"`
	CityGap       string `option:"city_gap" help:"custom: what is between the words of a city; default nothing"`
	Separators    string `option:"separators" help:"custom: characters that no value may have; default: the punctuation of the templates"`
	TokenAlphabet string `option:"token_alphabet" help:"custom: letters (lower case, and digits; default) or digits"`
	TokenLength   string `option:"token_length" help:"custom: 6 to 25; default 8"`
	TTLUnit       string `option:"ttl_unit" help:"custom: s, m or h, the unit of {ttl}"`
	TTLMin        string `option:"ttl_min" help:"custom: the least {ttl}"`
	TTLMax        string `option:"ttl_max" help:"custom: the most {ttl}, which sessions get"`
}

// customWords are the placeholders that a template may have.
var customWords = []string{"username", "password", "country", "state", "city", "asn", "token", "ttl"}

// part is a piece of a template; an optional one is left out if a value is missing.
type part struct {
	text     string
	optional bool
}

var (
	anyPlaceholder = regexp.MustCompile(`\{[^{}]*\}`)
	templateForm   = regexp.MustCompile(`^[!-~]+$`)
)

// parseTemplate returns the parts of a template and the placeholders in it.
func parseTemplate(text string) (parts []part, words map[string]int, err error) {
	words = map[string]int{}
	if !templateForm.MatchString(text) {
		return nil, nil, errors.New("must be of visible ASCII characters")
	}
	for rest := text; rest != ""; {
		i := strings.IndexAny(rest, "[]")
		if i < 0 {
			parts = append(parts, part{text: rest})
			break
		}
		if i > 0 {
			parts = append(parts, part{text: rest[:i]})
		}
		end := strings.IndexAny(rest[i+1:], "[]")
		if rest[i] == ']' || end < 0 || rest[i+1+end] == '[' {
			return nil, nil, errors.New("has a square bracket without its partner, or one in another")
		}
		group := part{text: rest[i+1 : i+1+end], optional: true}
		if !placeholder.MatchString(group.text) {
			return nil, nil, errors.New("has square brackets without a placeholder in them")
		}
		parts, rest = append(parts, group), rest[i+end+2:]
	}
	for _, m := range anyPlaceholder.FindAllString(text, -1) {
		word := m[1 : len(m)-1]
		if !slices.Contains(customWords, word) {
			return nil, nil, fmt.Errorf("has the unknown placeholder %s: there are {%s}", m, strings.Join(customWords, "}, {"))
		}
		words[word]++
	}
	if strings.ContainsAny(anyPlaceholder.ReplaceAllString(text, ""), "{}") {
		return nil, nil, errors.New("has a brace without its partner")
	}
	return parts, words, nil
}

// fill replaces the placeholders and adds those that it replaced to used. It returns the
// name of one that has no value and is not optional.
func fill(parts []part, values map[string]string, used map[string]bool) (text, missing string) {
	var b strings.Builder
	for _, p := range parts {
		lacks := ""
		for _, m := range placeholder.FindAllString(p.text, -1) {
			if word := m[1 : len(m)-1]; values[word] == "" {
				lacks = word
			}
		}
		if lacks == "" {
			for _, m := range placeholder.FindAllString(p.text, -1) {
				used[m[1:len(m)-1]] = true
			}
		}
		switch {
		case lacks == "":
			b.WriteString(expand(p.text, values))
		case !p.optional:
			return "", lacks
		}
	}
	return b.String(), ""
}

// profile returns the described profile, or every fault of the description.
func (c Custom) profile(in Login) (p Profile, err error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	p = Profile{ports: map[session.Protocol]uint16{}, upperCountry: c.CountryCase == "upper",
		countryNames: c.CountryCase == "name", cityGap: c.CityGap, separators: c.Separators, tls: true, custom: &templates{}}
	if in.Host == "" {
		fault("options.host is missing: the profile custom needs it")
	}
	for name, text := range map[session.Protocol]string{session.HTTP: c.HTTPPort, session.SOCKS5: c.SOCKS5Port} {
		port, err := ParsePort(text)
		if err != nil {
			fault("options.%s_port must be 1 to 65535", name)
		} else if port != 0 {
			p.ports[name] = port
		}
	}
	if len(p.ports) == 0 && in.Port == "" {
		fault("options.http_port is missing: name it, socks5_port, or port for both")
	}
	if in.Port != "" && c.HTTPPort+c.SOCKS5Port != "" {
		fault("options.port is for both protocols, so http_port and socks5_port mean nothing beside it")
	}
	if !slices.Contains([]string{"", "lower", "upper", "name"}, c.CountryCase) {
		fault("options.country_case must be lower, upper or name")
	}
	if in.TLS && p.ports[session.HTTP] == 0 && in.Port == "" {
		fault("options.http_port is missing: options.tls needs it")
	}
	faults = append(faults, c.templates(&p, in)...)
	faults = append(faults, c.token(&p)...)
	return p, errors.Join(faults...)
}

// templates sets the templates of a profile and what follows from them.
func (c Custom) templates(p *Profile, in Login) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	user, password := orElse(c.User, "{username}"), orElse(c.Password, "{password}")
	var inUser, inPassword map[string]int
	var err1, err2 error
	if p.custom.user, inUser, err1 = parseTemplate(user); err1 != nil {
		fault("options.user_template %w", err1)
	}
	if p.custom.password, inPassword, err2 = parseTemplate(password); err2 != nil {
		fault("options.password_template %w", err2)
	}
	if err1 != nil || err2 != nil {
		return faults
	}
	has := func(word string) bool { return inUser[word]+inPassword[word] > 0 }
	if p.separators == "" {
		p.separators = punctuation(user + password)
	}
	switch {
	case inUser["password"] > 0 || inPassword["password"] != 1:
		fault("options.password_template must have {password} once, and user_template never")
	case !has("token"):
		fault("options.user_template has no {token}, and neither has password_template: no session could keep its exit")
	case has("city") && !has("country"):
		fault("options.user_template has {city} without {country}: a city belongs to a country")
	case has("ttl") != (c.TTLUnit != ""):
		fault("options.ttl_unit, ttl_min and ttl_max belong to {ttl}: both are needed, or neither")
	}
	if has("username") != (in.Username != "") {
		fault("options.username and {username} belong together")
	}
	if has("country") {
		p.country = []string{"{country}"}
	}
	if has("city") {
		p.city = []string{"{city}"}
	}
	if has("state") {
		p.state = "{state}"
	}
	if has("asn") {
		p.asn = "{asn}"
	}
	if has("ttl") && c.TTLUnit != "" {
		faults = append(faults, c.lifetime(p)...)
	}
	return faults
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// punctuation returns the characters of templates that are neither letters and digits nor
// part of their syntax.
func punctuation(text string) string {
	var out []rune
	for _, c := range anyPlaceholder.ReplaceAllString(text, "") {
		if !wordForm.MatchString(string(c)) && !strings.ContainsRune("[]", c) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return string(out)
}

// lifetime sets the bounds of {ttl}.
func (c Custom) lifetime(p *Profile) (faults []error) {
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
	unit, ok := units[c.TTLUnit]
	if !ok {
		return []error{errors.New("options.ttl_unit must be s, m or h")}
	}
	least, err1 := strconv.Atoi(c.TTLMin)
	most, err2 := strconv.Atoi(c.TTLMax)
	if err1 != nil || err2 != nil || least < 1 || most < least || most > int(30*24*time.Hour/unit) {
		return []error{errors.New("options.ttl_max must be a count of ttl_unit from ttl_min to 30 days, and " +
			"ttl_min 1 or more")}
	}
	p.ttl = lifetime{"{ttl}", []timeUnit{{unit, ""}}, time.Duration(least) * unit, time.Duration(most) * unit}
	return nil
}

// The bounds of token_length. Shorter tokens of two sessions could be the same.
const minToken, maxToken = 6, 25

// token sets the form of {token}.
func (c Custom) token(p *Profile) []error {
	p.custom.tokenLength = 8
	if c.TokenLength != "" {
		n, err := strconv.Atoi(c.TokenLength)
		if err != nil || n < minToken || n > maxToken {
			return []error{fmt.Errorf("options.token_length must be %d to %d", minToken, maxToken)}
		}
		p.custom.tokenLength = n
	}
	switch c.TokenAlphabet {
	case "", "letters":
		p.custom.alphabet = lettersAndDigits
	case "digits":
		p.custom.alphabet = digits
	default:
		return []error{errors.New("options.token_alphabet must be letters (lower case, and digits) or digits")}
	}
	return nil
}
