package gateway_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

func TestADescriptionOfAGatewayIsCheckedStrictly(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		more map[string]string
		want string
	}{
		"an unknown placeholder":           {map[string]string{"user_template": "{username}-{token}-{zip}"}, "options.user_template has the unknown placeholder {zip}"},
		"a placeholder in capitals":        {map[string]string{"user_template": "{username}-{token}-{City}"}, "options.user_template has the unknown placeholder {City}"},
		"no session token":                 {map[string]string{"user_template": "{username}", "ttl_unit": "", "ttl_min": "", "ttl_max": ""}, "options.user_template has no {token}"},
		"an open bracket":                  {map[string]string{"user_template": "{username}[-{token}"}, "options.user_template has a square bracket without its partner"},
		"a closing bracket":                {map[string]string{"user_template": "{username}-{token}]"}, "options.user_template has a square bracket without its partner"},
		"brackets in brackets":             {map[string]string{"user_template": "{username}[-{token}[-x]]"}, "options.user_template has a square bracket without its partner"},
		"brackets around nothing":          {map[string]string{"user_template": "{username}-{token}[-x]"}, "options.user_template has square brackets without a placeholder"},
		"a single brace":                   {map[string]string{"user_template": "{username}-{token}-{"}, "options.user_template has a brace without its partner"},
		"a space":                          {map[string]string{"user_template": "{username} {token}"}, "options.user_template must be of visible ASCII"},
		"no password":                      {map[string]string{"password_template": "x"}, "options.password_template must have {password} once"},
		"the password in the user name":    {map[string]string{"user_template": "{password}-{username}-{token}"}, "options.password_template must have {password} once"},
		"a city without its country":       {map[string]string{"user_template": "{username}[-{city}]-{token}[-{ttl}]"}, "options.user_template has {city} without {country}"},
		"a time without bounds":            {map[string]string{"ttl_unit": "", "ttl_min": "", "ttl_max": ""}, "options.ttl_unit, ttl_min and ttl_max belong to {ttl}"},
		"bounds without a time":            {map[string]string{"user_template": "{username}-{token}"}, "options.ttl_unit, ttl_min and ttl_max belong to {ttl}"},
		"an unknown unit":                  {map[string]string{"ttl_unit": "d"}, "options.ttl_unit must be s, m or h"},
		"bounds upside down":               {map[string]string{"ttl_min": "31"}, "options.ttl_max must be a count"},
		"a user name that is left out":     {map[string]string{"user_template": "x-{token}-{ttl}"}, "options.username and {username} belong together"},
		"a short token":                    {map[string]string{"token_length": "5"}, "options.token_length must be 6 to 25"},
		"an unknown alphabet":              {map[string]string{"token_alphabet": "hex"}, "options.token_alphabet must be letters"},
		"an unknown case":                  {map[string]string{"country_case": "title"}, "options.country_case must be lower, upper or name"},
		"no host":                          {map[string]string{"host": ""}, "options.host is missing"},
		"no port":                          {map[string]string{"http_port": "", "socks5_port": ""}, "options.http_port is missing"},
		"a port beyond":                    {map[string]string{"http_port": "70000"}, "options.http_port must be 1 to 65535"},
		"a state of nowhere":               {map[string]string{"state": "california"}, "options.state must be a country and"},
		"a state with a separator":         {map[string]string{"state": "US/new-york"}, "options.state holds a separator"},
		"a network that is no number":      {map[string]string{"asn": "AS7922"}, "options.asn must be the number alone"},
		"strict, which the template lacks": {map[string]string{"strict": "true"}, "options.strict means nothing"},
	} {
		s := gatewaySpec("custom", c.more)
		if _, err := upstream.New(s, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", claim, err)
		}
	}
	s := gatewaySpec("oxylabs", map[string]string{"user_template": "{username}", "ttl_unit": "m"})
	if _, err := upstream.New(s, nil); err == nil || !strings.Contains(err.Error(), "options.user_template means something to the profile custom alone") ||
		!strings.Contains(err.Error(), "options.ttl_unit means") {
		t.Errorf("a description beside a profile: %v", err)
	}
}

// What an order asks for is in the credential, or the order is refused: what is left out
// would be delivered from anywhere.
func TestATemplateNeverWidensAnOrder(t *testing.T) {
	t.Parallel()
	place := func(country, city string) session.Location { return session.Location{Country: country, City: city} }
	for _, c := range []struct {
		template string
		more     map[string]string
		place    session.Location
		ttl      time.Duration
		want     string // empty: refused
	}{
		{"{username}-{token}", nil, place("US", ""), 0, ""},
		{"{username}[-{country}-{city}]-{token}", nil, place("US", ""), 0, ""},
		{"{username}[-{country}-{city}]-{token}", nil, place("US", "miami"), 0, "USERNAME-us-miami-abcd1234"},
		{"{username}-{country}-{token}", nil, place("", ""), 0, ""},
		{"{username}[-{country}]-{token}", nil, place("US", "miami"), 0, ""},
		{"{username}[-{country}][-{state}]-{token}", map[string]string{"state": "US/iowa"}, place("DE", ""), 0, ""},
		{"{username}[-{country}][-{state}]-{token}", map[string]string{"state": "US/iowa"}, place("", ""), 0, ""},
		{"{username}[-{country}][-{city}]-{token}", nil, place("US", "x-sid-y"), 0, ""},
		{"{username}[-{country}]-{token}", nil, place("US", ""), time.Minute, ""},
	} {
		more := map[string]string{"user_template": c.template, "ttl_unit": "", "ttl_min": "", "ttl_max": "", "country_case": ""}
		maps.Copy(more, c.more)
		e, err := openGateway(t, gatewaySpec("custom", more)).Endpoint(procurement.Access{}, procurement.Target{Location: c.place, Token: "abcd1234", TTL: c.ttl})
		if c.want == "" && procurement.ClassOf(err) != procurement.Invalid || c.want != "" && (err != nil || e.User != c.want) {
			t.Errorf("%s in %v: %s, %v", c.template, c.place, e.User, err)
		}
	}
}

func TestTokensHaveTheLengthOfTheGateway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ alphabet, length string }{{"digits", "6"}, {"digits", "25"}, {"letters", "6"}, {"letters", "12"}, {"letters", "8"}} {
		p := openGateway(t, gatewaySpec("custom", map[string]string{"user_template": "{username}-{token}", "ttl_unit": "", "ttl_min": "", "ttl_max": "",
			"token_alphabet": c.alphabet, "token_length": c.length}))
		seen := map[string]bool{}
		for _, token := range []string{"abcd1234", "abcd1235", "zzzzzzzz", "a0000000"} {
			e, err := p.Endpoint(procurement.Access{}, procurement.Target{Token: token})
			_, got, _ := strings.Cut(e.User, "-")
			foreign := strings.Trim(got, "0123456789")
			if c.alphabet == "letters" {
				foreign = strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789")
			}
			if err != nil || len(got) != map[string]int{"6": 6, "8": 8, "12": 12, "25": 25}[c.length] || foreign != "" || seen[got] || got[0] == '0' {
				t.Errorf("%s of %s %s: %q, %v", token, c.length, c.alphabet, got, err)
			}
			seen[got] = true
		}
	}
}

func TestANetworkAndACountryTheGatewayTakesTogether(t *testing.T) {
	t.Parallel()
	for profile, country := range map[string]string{"oxylabs": "US", "brightdata": ""} {
		p := openGateway(t, gatewaySpec(profile, map[string]string{"asn": "7922"}))
		if _, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: country}}); procurement.ClassOf(err) != procurement.Invalid {
			t.Errorf("%s in %q: %v", profile, country, err)
		}
	}
	if _, err := upstream.New(gatewaySpec("geonode", map[string]string{"state": "US/iowa", "asn": "1", "strict": "true"}), nil); err == nil ||
		strings.Count(err.Error(), "means nothing to the profile") != 3 {
		t.Errorf("words that a gateway has not: %v", err)
	}
}
