// Package configfile reads the configuration: variables and the YAML file.
package configfile

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/domain"
)

// Config is everything that an operator decides. Variables win over the file,
// the file over the defaults.
type Config struct {
	HTTPAddr       string   `yaml:"http_addr" env:"AGENTPROXY_HTTP_ADDR"`
	GatewayAddr    string   `yaml:"gateway_addr" env:"AGENTPROXY_GATEWAY_ADDR"`
	AdminAddr      string   `yaml:"admin_addr" env:"AGENTPROXY_ADMIN_ADDR"`
	PublicGateway  string   `yaml:"public_gateway" env:"AGENTPROXY_PUBLIC_GATEWAY"` // host:port in full_url
	PublicURL      string   `yaml:"public_url" env:"AGENTPROXY_PUBLIC_URL"`
	DatabaseURL    string   `yaml:"database_url" env:"AGENTPROXY_DATABASE_URL"`
	DatabaseConns  int      `yaml:"database_max_conns" env:"AGENTPROXY_DATABASE_MAX_CONNS"` // PostgreSQL's
	Secret         string   `yaml:"-" env:"AGENTPROXY_SECRET"`                              // never from the file
	RateLimit      int      `yaml:"rate_limit_per_minute" env:"AGENTPROXY_RATE_LIMIT_PER_MINUTE"`
	RegisterLimit  *int     `yaml:"register_limit_per_minute" env:"AGENTPROXY_REGISTER_LIMIT_PER_MINUTE"`
	Dev            *bool    `yaml:"dev" env:"AGENTPROXY_DEV"`
	TrustedProxies []string `yaml:"trusted_proxies" env:"AGENTPROXY_TRUSTED_PROXIES"`
	AllowNetworks  []string `yaml:"allow_networks" env:"AGENTPROXY_ALLOW_NETWORKS"`
	WebhookAllow   []string `yaml:"webhook_allow_networks" env:"AGENTPROXY_WEBHOOK_ALLOW_NETWORKS"`
	Exits          []string `yaml:"exits" env:"AGENTPROXY_EXITS"`
	SessionLimit   int      `yaml:"session_limit" env:"AGENTPROXY_SESSION_LIMIT"`
	TrialBalance   string   `yaml:"trial_balance" env:"AGENTPROXY_TRIAL_BALANCE"`
	TrialDays      int      `yaml:"trial_days" env:"AGENTPROXY_TRIAL_DAYS"`
	LogLevel       string   `yaml:"log_level" env:"AGENTPROXY_LOG_LEVEL"`
	LogFormat      string   `yaml:"log_format" env:"AGENTPROXY_LOG_FORMAT"`

	PaymentConfig `yaml:",inline"`
}

// Settings is a Config that was checked as a whole.
type Settings struct {
	HTTPAddr, GatewayAddr string
	AdminAddr             string
	PublicHost            string // of the gateway, as written into full_url
	PublicPort            int
	PublicURL             string      // of the API, without /v1
	DatabasePath          string      // of SQLite, or
	DatabaseURL           storage.URL // of PostgreSQL
	DatabaseConns         int
	Secret                system.Root
	RateLimit             int
	RegisterLimit         int
	Dev                   bool
	TrustedProxies        []netip.Prefix
	AllowNetworks         []netip.Prefix // of the gateway's targets
	WebhookAllow          []netip.Prefix // of the receivers of webhooks
	Exits                 []netip.Addr
	SessionLimit          int
	TrialBalance          domain.Money
	TrialDays             int
	LogLevel, LogFormat   string
	Payments              PaymentSettings
	Shelf                 Shelf
}

const registerLimit = 120 // a minute and client address, outside development mode

// Load reads the defaults, the file that AGENTPROXY_CONFIG names, and the
// variables, and checks the whole: every fault is in the error, which FaultsOf
// takes apart.
func Load() (Settings, error) { return LoadWith(upstream.New) }

// LoadWith is Load with another way to make providers.
func LoadWith(make MakeProvider) (Settings, error) { return load(&shelfReader{make: make}) }

// LoadRunning is Load while the service runs, with the providers since its start.
func LoadRunning(start Shelf, running Sellers) (Settings, error) {
	return load(&shelfReader{make: start.make, running: running})
}

func load(r *shelfReader) (Settings, error) {
	c := Config{HTTPAddr: "127.0.0.1:8080", GatewayAddr: "127.0.0.1:8081", AdminAddr: "127.0.0.1:8082", DatabaseURL: "sqlite://agentproxy.db", DatabaseConns: 20,
		RateLimit: 600, SessionLimit: 200, TrialBalance: "10.00", TrialDays: 14, LogLevel: "info", LogFormat: "auto"}
	var ch check
	shelf := Shelf{make: r.make}
	var secrets []string // variables that the file names
	if file := os.Getenv("AGENTPROXY_CONFIG"); file != "" {
		root, err := parse(file)
		if err != nil {
			ch.faults = append(ch.faults, err)
		} else {
			own := root.fields(append(c.keys(), "embedded", "providers", "products")...)
			ch.places = c.take(own)
			shelf = r.read(own)
			secrets = root.doc.variables
			for _, f := range root.doc.faults {
				ch.faults = append(ch.faults, f)
			}
		}
	}
	if err := env.Parse(&c); err != nil {
		ch.faults = append(ch.faults, named(err)...)
	}
	shelf.Warnings = append(shelf.Warnings, unknownVariables(os.Environ(), secrets)...)
	s, err := c.check(ch)
	s.Shelf = shelf
	return s, ordered(err)
}

// named says which variables could not be read; the library names the fields.
func named(err error) []error {
	list, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return []error{err}
	}
	var ch check
	for _, e := range list.Errors {
		parse, ok := errors.AsType[env.ParseError](e)
		field, found := reflect.TypeFor[Config]().FieldByName(parse.Name)
		if !ok || !found {
			return []error{err}
		}
		ch.fault(field.Tag.Get("env"), "must be %s", inWords(parse.Type))
	}
	return ch.faults
}

// inWords says what a value of a type looks like.
func inWords(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "of type " + t.String()
}

// check collects faults by the name of the variable, or by the place in the file
// where it stands.
type check struct {
	faults []error
	places map[string]value // of what the file says, by the name of the variable
}

func (c *check) fault(name, format string, args ...any) {
	f := Fault{Path: name, Text: fmt.Sprintf(format, args...)}
	if v, ok := c.places[name]; ok && os.Getenv(name) == "" {
		if v.faulty() {
			return
		}
		f.File, f.Line, f.Path = v.doc.file, v.line, v.path
	}
	c.faults = append(c.faults, f)
}

// Check validates a configuration as a whole.
func (c Config) Check() (Settings, error) { return c.check(check{}) }

func (c Config) check(ch check) (Settings, error) {
	s := Settings{HTTPAddr: c.HTTPAddr, GatewayAddr: c.GatewayAddr, AdminAddr: c.AdminAddr, PublicURL: strings.TrimSuffix(c.PublicURL, "/"),
		SessionLimit: ch.atLeast("AGENTPROXY_SESSION_LIMIT", c.SessionLimit, 0),
		RateLimit:    ch.atLeast("AGENTPROXY_RATE_LIMIT_PER_MINUTE", c.RateLimit, 0),
		TrialDays:    ch.atLeast("AGENTPROXY_TRIAL_DAYS", c.TrialDays, 1),
		LogLevel:     ch.oneOf("AGENTPROXY_LOG_LEVEL", c.LogLevel, "debug", "info", "warn", "error"),
		LogFormat:    ch.oneOf("AGENTPROXY_LOG_FORMAT", c.LogFormat, "auto", "text", "json"),
	}
	api := ch.listener("AGENTPROXY_HTTP_ADDR", c.HTTPAddr)
	gateway := ch.listener("AGENTPROXY_GATEWAY_ADDR", c.GatewayAddr)
	ch.listener("AGENTPROXY_ADMIN_ADDR", c.AdminAddr)
	s.Dev = api.Addr().IsLoopback() && gateway.Addr().IsLoopback() && c.PublicGateway == "" && len(c.TrustedProxies) == 0
	if c.Dev != nil {
		s.Dev = *c.Dev
	}
	s.RegisterLimit = registerLimit
	if s.Dev {
		s.RegisterLimit = 0
	}
	if c.RegisterLimit != nil {
		s.RegisterLimit = ch.atLeast("AGENTPROXY_REGISTER_LIMIT_PER_MINUTE", *c.RegisterLimit, 0)
	}
	s.DatabasePath, s.DatabaseURL = ch.database(c.DatabaseURL)
	s.DatabaseConns = ch.atLeast("AGENTPROXY_DATABASE_MAX_CONNS", c.DatabaseConns, 4)
	if s.DatabaseURL != "" && c.Secret == "" {
		ch.fault("AGENTPROXY_SECRET", "is required with PostgreSQL, the same for every replica; make one with: openssl rand -base64 32")
	}
	s.PublicHost, s.PublicPort = ch.public(c.PublicGateway, gateway)
	s.PublicURL = ch.publicURL(c.PublicURL, api)
	s.TrustedProxies = ch.networks("AGENTPROXY_TRUSTED_PROXIES", c.TrustedProxies)
	s.AllowNetworks = ch.networks("AGENTPROXY_ALLOW_NETWORKS", c.AllowNetworks)
	s.WebhookAllow = ch.networks("AGENTPROXY_WEBHOOK_ALLOW_NETWORKS", c.WebhookAllow)
	s.Payments = ch.payments(c.PaymentConfig)
	for _, text := range c.Exits {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			ch.fault("AGENTPROXY_EXITS", "%q is no IP address", text)
		}
		s.Exits = append(s.Exits, ip)
	}
	var err error
	if s.TrialBalance, err = domain.ParseMoney(c.TrialBalance); err != nil || s.TrialBalance < 0 {
		ch.fault("AGENTPROXY_TRIAL_BALANCE", "must be an amount of 0 or more with at most 6 decimals")
	}
	if c.Secret != "" {
		if s.Secret, err = system.ParseRoot(c.Secret); err != nil {
			ch.fault("AGENTPROXY_SECRET", "%v", err)
		}
	}
	return s, errors.Join(ch.faults...)
}

func (c *check) atLeast(name string, n, least int) int {
	if n < least {
		c.fault(name, "must be %d or more", least)
	}
	return n
}

func (c *check) oneOf(name, value string, allowed ...string) string {
	for _, a := range allowed {
		if value == a {
			return value
		}
	}
	c.fault(name, "must be one of %s", strings.Join(allowed, ", "))
	return value
}

func (c *check) listener(name, text string) netip.AddrPort {
	addr, err := ParseListener(text)
	if err != nil {
		c.fault(name, "must be an IP address and a port, such as 127.0.0.1:8080")
	}
	return addr
}

// ParseListener parses the address of a listener: an IP address, localhost or
// nothing, and a port.
func ParseListener(text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err == nil && host == "localhost" {
		text = net.JoinHostPort("127.0.0.1", port)
	}
	if err == nil && host == "" {
		text = net.JoinHostPort("0.0.0.0", port)
	}
	return netip.ParseAddrPort(text)
}

// database tells a file from the URL of a server. The text itself is never
// printed: it may hold a password.
func (c *check) database(text string) (path string, url storage.URL) {
	scheme, rest, _ := strings.Cut(text, "://")
	switch {
	case scheme == "sqlite" && rest != "":
		return rest, ""
	case scheme == "postgres" || scheme == "postgresql":
		url = storage.URL(text)
		if err := url.Check(); err != nil {
			c.fault("AGENTPROXY_DATABASE_URL", "%v", err)
		}
		return "", url
	}
	c.fault("AGENTPROXY_DATABASE_URL", "must be sqlite:// and a file, such as sqlite://agentproxy.db, or a postgres:// URL")
	return "", ""
}

// public is what agents are told of the gateway's address.
func (c *check) public(text string, gateway netip.AddrPort) (string, int) {
	if text == "" {
		if gateway.Addr().IsUnspecified() {
			c.fault("AGENTPROXY_PUBLIC_GATEWAY", "is required when the gateway listens on all addresses: the host:port that agents reach")
		}
		return gateway.Addr().String(), int(gateway.Port())
	}
	host, port, err := net.SplitHostPort(text)
	n, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || errPort != nil || host == "" || n == 0 {
		c.fault("AGENTPROXY_PUBLIC_GATEWAY", "must be host:port")
	}
	return host, int(n)
}

func (c *check) publicURL(text string, api netip.AddrPort) string {
	if text == "" {
		return LocalURL(api)
	}
	return c.baseURL("AGENTPROXY_PUBLIC_URL", text)
}

// LocalURL returns the URL of a listener as this host reaches it.
func LocalURL(listener netip.AddrPort) string {
	if listener.Addr().IsUnspecified() {
		listener = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), listener.Port())
	}
	return "http://" + listener.String()
}

// baseURL is a URL that paths are appended to.
func (c *check) baseURL(name, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "http" && u.Scheme != "https" {
		c.fault(name, "must be an http or https URL without user info")
	}
	return strings.TrimSuffix(text, "/")
}

func (c *check) networks(name string, list []string) []netip.Prefix {
	var nets []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if ip, errIP := netip.ParseAddr(text); errIP == nil {
			p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil {
			c.fault(name, "%q is no network in CIDR form", text)
		}
		nets = append(nets, p.Masked())
	}
	return nets
}

// SecretFile is where the root secret is kept when no variable gives it.
func (s Settings) SecretFile() string {
	dir, name := filepath.Split(s.DatabasePath)
	return filepath.Join(dir, name+".secret")
}
