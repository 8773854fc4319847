// Package upstream is the registry of the sellers of proxies: it lists their kinds with
// the settings of each, and creates a provider from the operator's configuration. Each
// seller has a package below it; rest is the HTTP client that they share.
package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/iproyal"
	"agentproxy/adapters/upstream/proxycheap"
	"agentproxy/ports"
)

// Spec is a provider as the operator configured it.
type Spec struct {
	Name string
	Kind string
	// BaseURL replaces the URL of the seller's API; empty: the seller's own.
	BaseURL string
	// Secrets and Options are settings by the names that Kinds lists.
	Secrets map[string]string
	Options map[string]string
	// Locations are the seller's own ids or spellings of places, by country ("US") or
	// country and city ("US/newyork").
	Locations map[string]string
	PerSecond float64       // calls of its API; 0: the adapter's default
	Timeout   time.Duration // of a call; 0: the adapter's default
	// Dir is the folder of the configuration file, which relative paths begin at.
	Dir string
	Env
}

// Env is what the service has for the kinds that need it. The zero Env checks settings and
// lists what is sold, and sells nothing of such a kind.
type Env struct {
	Store   ports.Store // records which lines of a list are sold
	EchoURL string      // of the service's own echo, as the world reaches it
}

// LogValue hides the secrets from logs.
func (s Spec) LogValue() slog.Value { return slog.StringValue(s.Name + " (" + s.Kind + ")") }

// Field is a setting of a kind of provider.
type Field struct {
	Name     string
	Required bool
	Help     string
}

// Kind is a kind of provider that can be configured.
type Kind struct {
	Secrets, Options []Field
	make             func(Spec, *slog.Logger) (ports.Provider, error)
}

// kinds are the kinds by their names in the configuration.
var kinds = map[string]Kind{
	"gateway": {
		Secrets: []Field{
			{"password", true, "the password of the account at the gateway"},
		},
		Options: []Field{
			{"profile", true, "the gateway: " + strings.Join(gateway.Profiles(), ", ")},
			{"username", false, "the user name of the account (brightdata: the customer id)"},
			{"host", false, "another host of the gateway than the seller's usual one"},
			{"port", false, "another port; it is taken for both protocols"},
			{"protocol", false, "http or socks5, for sessions without a protocol"},
			{"zone", false, "brightdata: the zone"},
			{"package", false, "soax: the number of the package"},
			{"network", false, "brightdata: residential, mobile, isp, datacenter; anyip: residential, mobile; " +
				"webshare: residential, datacenter; proxies.sx: any, mbl, peer, best"},
			{"numbers", false, "webshare: how many proxies the plan lists"},
			{"state", false, "a country and the seller's spelling of its state, such as US/california: exits there alone"},
			{"asn", false, "the number of a network, such as 7922: exits in it alone"},
			{"tls", false, "true: over TLS, with a certificate that is valid for the host (oxylabs and custom)"},
			{"strict", false, "true: a session fails where its exit is lost, rather than get another one"},
			{"user_template", false, "custom: such as customer-{username}[-cc-{country}]-sessid-{token}; what is in brackets " +
				"is left out without a value. Placeholders: username, country, state, city, asn, token, ttl"},
			{"password_template", false, "custom: such as {password}[_country-{country}]; default {password}"},
			{"http_port", false, "custom: the port for HTTP"},
			{"socks5_port", false, "custom: the port for SOCKS5"},
			{"country_case", false, "custom: lower (default), upper, or name for English names"},
			{"city_gap", false, "custom: what is between the words of a city; default nothing"},
			{"separators", false, "custom: characters that no value may have; default: the punctuation of the templates"},
			{"token_alphabet", false, "custom: letters (lower case, and digits; default) or digits"},
			{"token_length", false, "custom: 6 to 25; default 8"},
			{"ttl_unit", false, "custom: s, m or h, the unit of {ttl}"},
			{"ttl_min", false, "custom: the least {ttl}"},
			{"ttl_max", false, "custom: the most {ttl}, which sessions get"},
		},
		make: makeGateway,
	},
	"proxyssx": {
		Secrets: []Field{{"api_key", true, "the API key of the reseller, psx_…"}},
		Options: []Field{
			{"username", true, "the proxy user name of the reseller, psx_…"},
			{"network", false, "any, mbl, peer or best; any unless set"},
			{"tier", false, "the qualityTier of new keys: safe or standard"},
			{"host", false, "another host of the gateway than gw.proxies.sx"},
			{"port", false, "another port; it is taken for both protocols"},
			{"protocol", false, "http or socks5, for sessions without a protocol"},
		},
		make: makeProxySSX,
	},
	"list": {
		Secrets: []Field{
			{"url", false, "the address of the list, in place of options.file; https"},
		},
		Options: append([]Field{
			{"file", false, "the file with the list, one proxy a line; a relative path is beside the configuration file"},
			{"reload_minutes", false, "how often the list of secrets.url is loaded again, 1 to 1440; default 10"},
		}, poolFields...),
		make: makeList,
	},
	"webshare": {
		Secrets: []Field{{"key", true, "the API key of the account"}},
		Options: append([]Field{
			{"plan", false, "the number of the plan, of an account with several; default: its default"},
			{"replace", false, "true: as often as the plan allows, the seller replaces sold proxies that fail, and those that " +
				"agents want replaced while no other is free"},
			{"reload_minutes", false, "how often the list is read, 1 to 1440; default 10"},
		}, poolFields...),
		make: makeWebshare,
	},
	"iproyal": {
		Secrets: []Field{
			{"key", false, "access token of the reseller API; without it no static product can be sold"},
			{"residential_key", false, "token of the residential API; without it no dynamic product can be sold"},
		},
		Options: []Field{
			{"gateway", false, "host:port of the residential proxy; empty: " + iproyal.DefaultGateway},
			{"answers", false, `answers to the questions of products, a JSON object such as {"12":"scraping"}`},
		},
		make: makeIPRoyal,
	},
	"proxyseller": {
		Secrets: []Field{{"key", true, "the API key of the dashboard"}},
		Options: []Field{
			{"section", false, "isp (default), ipv4, or resident for residential traffic"},
			{"purpose", false, "what the proxies are for, in words; the seller requires it with every order of addresses"},
			{"host", false, "resident: res.proxy-seller.com (default), or us., asia. or asia2. before it"},
			{"port", false, "resident: 10000 (default)"},
		},
		make: makeProxySeller,
	},
	"proxycheap": {
		Secrets: []Field{
			{"key", true, "X-Api-Key of the account"},
			{"secret", true, "X-Api-Secret of the account"},
			{"callback_secret", false, "secret of the webhook; without it every callback is refused"},
		},
		Options: []Field{
			{"service", false, "what addresses are ordered as; empty: " + proxycheap.DefaultService},
			{"plan", false, "basic, standard or premium, where the SKU of a product names none"},
			{"isp", false, "id of the internet provider of the addresses; empty: any"},
			{"balance_unit", false, "the unit of the balance that the seller returns, dollars (default) or cents"},
		},
		make: makeProxyCheap,
	},
}

// poolFields are the options of every kind that sells the proxies of a list.
var poolFields = []Field{
	{"sold_as", true, "static (each proxy to one agent, for a time) or dynamic (their traffic, rotating)"},
	{"protocol", false, "http (default) or socks5, of proxies listed without a scheme"},
	{"country", false, "the country of proxies listed without one"},
	{"echo", false, "URL that answers with the caller's address, and perhaps country; default: the service's own /v1/ip"},
	{"probe_minutes", false, "how often each proxy is tried, 1 to 1440; default 10"},
}

// Kinds returns the kinds by name.
func Kinds() map[string]Kind { return maps.Clone(kinds) }

// New creates a provider. Its error names every invalid setting and no secret.
func New(s Spec, log *slog.Logger) (ports.Provider, error) {
	k, ok := kinds[s.Kind]
	if !ok {
		return nil, fmt.Errorf("kind must be one of %v, not %q", slices.Sorted(maps.Keys(kinds)), s.Kind)
	}
	faults := append(check("secrets", k.Secrets, s.Secrets), check("options", k.Options, s.Options)...)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return k.make(s, log)
}

// check returns the faults of settings that are required and missing, or unknown.
func check(what string, fields []Field, given map[string]string) (faults []error) {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
		if f.Required && given[f.Name] == "" {
			faults = append(faults, fmt.Errorf("%s.%s is missing: %s", what, f.Name, f.Help))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] {
			faults = append(faults, fmt.Errorf("%s.%s does not exist", what, name))
		}
	}
	return faults
}
