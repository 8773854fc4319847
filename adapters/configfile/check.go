package configfile

import (
	"errors"
	"math"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// exits reads addresses with the places that are declared for them: ADDRESS[@COUNTRY[/CITY]].
func (c *check) exits(texts []string) []Exit {
	list := make([]Exit, len(texts))
	for i, text := range texts {
		address, place, declared := strings.Cut(strings.TrimSpace(text), "@")
		ip, err := netip.ParseAddr(address)
		if err != nil {
			c.fault("AGENTPROXY_EXITS", "%q is not an IP address", address)
		}
		code, city, hasCity := strings.Cut(place, "/")
		if declared && !catalog.IsCountryCode(code) {
			c.fault("AGENTPROXY_EXITS", "%q is not a place: write @ and an upper case ISO 3166-1 alpha-2 code, / and a city "+
				"where there is one", place)
		} else if hasCity && !session.IsLabel(city) {
			c.fault("AGENTPROXY_EXITS", "the city %q must be 1 to 64 of A-Z, a-z, 0-9, _ and -", city)
		}
		list[i] = Exit{Addr: ip, Place: session.Location{Country: code, City: city}}
	}
	return list
}

// settings checks a Config as a whole.
func (c *check) settings(config Config, providers int) (Settings, error) {
	s := Settings{HTTPAddr: config.HTTPAddr, GatewayAddr: config.GatewayAddr, AdminAddr: config.AdminAddr,
		AdminHosts:     config.AdminHosts,
		RootSecret:     Secret(config.Secret),
		SessionTunnels: c.atLeast("AGENTPROXY_SESSION_TUNNELS", config.SessionTunnels, 1),
		SessionLimit:   c.atLeast("AGENTPROXY_SESSION_LIMIT", config.SessionLimit, 0),
		RateLimit:      c.atLeast("AGENTPROXY_RATE_LIMIT_PER_MINUTE", config.RateLimit, 0),
		TrialDays:      c.atLeast("AGENTPROXY_TRIAL_DAYS", config.TrialDays, 1),
		Registration: account.Registration(c.oneOf("AGENTPROXY_REGISTRATION", config.Registration, "open", "referral",
			"closed")),
		ExitLogDays:       c.atLeast("AGENTPROXY_EXIT_LOG_DAYS", config.ExitLogDays, 0),
		ArchiveDays:       c.atLeast("AGENTPROXY_ARCHIVE_DAYS", config.ArchiveDays, 0),
		ClientAddressDays: c.atLeast("AGENTPROXY_CLIENT_ADDRESS_DAYS", config.ClientAddressDays, 0),
		LogLevel:          c.oneOf("AGENTPROXY_LOG_LEVEL", config.LogLevel, "debug", "info", "warn", "error"),
		LogFormat:         c.oneOf("AGENTPROXY_LOG_FORMAT", config.LogFormat, "auto", "text", "json"),
	}
	api := c.listener("AGENTPROXY_HTTP_ADDR", config.HTTPAddr)
	gateway := c.listener("AGENTPROXY_GATEWAY_ADDR", config.GatewayAddr)
	c.admin(&s, config)
	s.DatabasePath, s.DatabaseURL = c.database(config.DatabaseURL)
	if s.RateLimitURL = Secret(config.RateLimitURL); s.RateLimitURL != "" {
		if err := c.rules.RateLimitURL(config.RateLimitURL); err != nil {
			c.fault("AGENTPROXY_RATELIMIT_URL", "%v", err)
		}
	}
	if s.TelemetryURL = Secret(config.TelemetryURL); s.TelemetryURL != "" {
		if err := c.rules.TelemetryURL(config.TelemetryURL); err != nil {
			c.fault("AGENTPROXY_TELEMETRY_URL", "%v", err)
		}
	}
	c.mode(&s, config, api, gateway, providers)
	s.DatabaseSeen = config.DatabaseSeen
	c.pool(&s, config)
	if s.DatabaseURL != "" && config.Secret == "" {
		c.fault("AGENTPROXY_SECRET", "is required with PostgreSQL, the same for every replica; make one with: openssl "+
			"rand -base64 32")
	}
	s.PublicHost, s.PublicPort = c.publicGateway(config.PublicGateway, gateway)
	s.TLS = c.tls(config.TLSConfig)
	s.PublicURL, s.MCPReveal = c.publicURL(config.PublicURL, api, s.TLS.API), config.MCPReveal
	s.Downloads = config.Downloads
	s.ShopName = c.shopName(config.ShopName)
	s.AbuseContact = c.contact("AGENTPROXY_ABUSE_CONTACT", config.AbuseContact)
	s.TrustedProxies = c.networks("AGENTPROXY_TRUSTED_PROXIES", config.TrustedProxies)
	if s.ProxyProtocol = config.ProxyProtocol; s.ProxyProtocol && len(config.TrustedProxies) == 0 {
		c.fault("AGENTPROXY_PROXY_PROTOCOL", "needs AGENTPROXY_TRUSTED_PROXIES: the addresses of the balancers that send it")
	}
	s.AllowNetworks = c.networks("AGENTPROXY_ALLOW_NETWORKS", config.AllowNetworks)
	s.WebhookAllow = c.networks("AGENTPROXY_WEBHOOK_ALLOW_NETWORKS", config.WebhookAllow)
	s.Payments = c.payments(config.PaymentConfig, s.Dev)
	s.Exits = c.exits(config.Exits)
	var err error
	if s.TrialBalance, err = domain.ParseMoney(config.TrialBalance); err != nil || s.TrialBalance < 0 {
		c.fault("AGENTPROXY_TRIAL_BALANCE", "must be an amount of 0 or more with at most 6 decimals")
	}
	from, err := domain.ParseMoney(config.FundedFrom)
	if s.FundedFrom = account.Funding(from); err != nil || from < 0 {
		c.fault("AGENTPROXY_FUNDED_FROM", "must be an amount of 0 or more with at most 6 decimals")
	}
	c.trial, s.TrialPorts = c.trialPolicy(config.TrialPorts, s.Dev)
	s.TrialDailyTotal = c.trialTotal(config.TrialDailyTotal, s.TrialBalance)
	if config.Secret != "" {
		if err := c.rules.RootSecret(config.Secret); err != nil {
			c.fault("AGENTPROXY_SECRET", "%v", err)
		}
	}
	s.PreviousSecrets = c.previousSecrets(config.PreviousSecrets)
	return s, errors.Join(c.faults...)
}

// admin checks who may use the admin listener.
func (c *check) admin(s *Settings, config Config) {
	c.listener("AGENTPROXY_ADMIN_ADDR", config.AdminAddr)
	s.AdminPassword, s.AdminUsers, s.MetricsOpen = Secret(config.AdminPassword), config.AdminUsers, config.MetricsOpen
	if config.AdminPassword != "" {
		if err := c.rules.AdminPassword(config.AdminPassword); err != nil {
			c.fault("AGENTPROXY_ADMIN_PASSWORD", "%v", err)
		}
	}
	if config.AdminUsers != "" {
		if err := c.rules.AdminUsers(config.AdminUsers); err != nil {
			c.fault("AGENTPROXY_ADMIN_USERS", "%v", err)
		}
	}
}

// maxPrevious is how many previous root secrets are accepted: each is tried for a
// credential that is wrong.
const maxPrevious = 8

func (c *check) previousSecrets(list []string) (secrets []Secret) {
	const name = "AGENTPROXY_SECRET_PREVIOUS"
	if len(list) > maxPrevious {
		c.fault(name, "must have at most %d secrets", maxPrevious)
	}
	for _, text := range list {
		if err := c.rules.RootSecret(text); err != nil {
			c.fault(name, "%v", err)
		}
		secrets = append(secrets, Secret(text))
	}
	return secrets
}

// mostDrainDelay keeps a stop shorter than what any supervisor waits for.
const mostDrainDelay = 5 * time.Minute

// mode sets development mode and what depends on it. The mode is never implied
// where a setting shows that the service is meant for others: behind a reverse
// proxy both listeners are on loopback too.
func (c *check) mode(s *Settings, config Config, api, gateway netip.AddrPort, providers int) {
	s.Dev = api.Addr().IsLoopback() && gateway.Addr().IsLoopback() && config.PublicGateway == "" &&
		config.PublicURL == "" && !config.certificate() && len(config.TrustedProxies) == 0 &&
		s.DatabaseURL == "" && config.TronXPub == "" && providers == 0
	if config.Dev != nil {
		s.Dev = *config.Dev
	}
	limit := func(name string, configured *int, usual int) int {
		switch {
		case configured != nil:
			return c.atLeast(name, *configured, 0)
		case s.Dev:
			return 0
		}
		return usual
	}
	s.RegisterLimit = limit("AGENTPROXY_REGISTER_LIMIT_PER_MINUTE", config.RegisterLimit, registerLimit)
	s.TrialPerNetwork = limit("AGENTPROXY_TRIAL_PER_NETWORK", config.TrialPerNetwork, trialNetwork)
	s.StoredPerDay = limit("AGENTPROXY_STORED_PER_DAY", config.StoredPerDay, storedPerDay)
	s.TrialStoredPerDay = limit("AGENTPROXY_STORED_PER_DAY_TRIAL", config.TrialStoredPerDay, trialStoredPerDay)
	s.AgentConnections = limit("AGENTPROXY_AGENT_CONNECTIONS", config.AgentConnections, agentConnections)
	s.TrialConnections = limit("AGENTPROXY_AGENT_CONNECTIONS_TRIAL", config.TrialConnections, trialConnections)
	s.ConnectionRate = limit("AGENTPROXY_CONNECTIONS_PER_SECOND", config.ConnectionRate, connectionRate)
	s.TrialConnectionRate = limit("AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL", config.TrialConnectionRate, trialConnRate)
	s.Targets = limit("AGENTPROXY_TARGETS_PER_MINUTE", config.Targets, targets)
	s.TrialTargets = limit("AGENTPROXY_TARGETS_PER_MINUTE_TRIAL", config.TrialTargets, trialTargets)
	s.TargetRate = limit("AGENTPROXY_TARGET_RATE_PER_MINUTE", config.TargetRate, targetRate)
	s.TrialTargetRate = limit("AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL", config.TrialTargetRate, trialTargetRate)
	const drain = "AGENTPROXY_DRAIN_DELAY_SECONDS"
	s.DrainDelay = time.Duration(limit(drain, config.DrainDelay, drainDelay)) * time.Second
	if s.DrainDelay > mostDrainDelay {
		c.fault(drain, "must be at most %d", int(mostDrainDelay.Seconds()))
	}
	s.Outage = time.Duration(config.OutageSeconds) * time.Second
	if s.Outage < traffic.StopAfter || s.Outage > traffic.MaxLasts {
		c.fault("AGENTPROXY_OUTAGE_SECONDS", "must be from %d to %d", int(traffic.StopAfter.Seconds()),
			int(traffic.MaxLasts.Seconds()))
	}
}

// trialTotal returns the most trial credit of a day; balance is that of one account.
func (c *check) trialTotal(text string, balance domain.Money) domain.Money {
	if text == "" {
		if balance > trialTotal && balance <= math.MaxInt64/trialsTotal {
			return trialsTotal * balance
		}
		return trialTotal
	}
	total, err := domain.ParseMoney(text)
	switch {
	case err != nil || total < 0:
		c.fault("AGENTPROXY_TRIAL_DAILY_TOTAL", "must be an amount of 0 or more with at most 6 decimals")
	case total > 0 && total < balance:
		c.fault("AGENTPROXY_TRIAL_DAILY_TOTAL", "must be at least the trial balance of %s, or 0 for unlimited: no account "+
			"would get any", balance)
	}
	return total
}

func (c *check) atLeast(name string, n, least int) int {
	if n < least {
		c.fault(name, "must be %d or more", least)
	}
	return n
}

func (c *check) oneOf(name, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		c.fault(name, "must be one of %s", strings.Join(allowed, ", "))
	}
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

// database returns the path of a SQLite file, or the URL of a PostgreSQL
// database. No fault repeats the text: it may hold a password.
func (c *check) database(text string) (path string, url Secret) {
	scheme, rest, _ := strings.Cut(text, "://")
	switch {
	case scheme == "sqlite" && rest != "":
		return rest, ""
	case scheme == "postgres" || scheme == "postgresql":
		if err := c.rules.DatabaseURL(text); err != nil {
			c.fault("AGENTPROXY_DATABASE_URL", "%v", err)
		}
		return "", Secret(text)
	}
	c.fault("AGENTPROXY_DATABASE_URL", "must be sqlite:// and a file, such as sqlite://agentproxy.db, or a "+
		"postgres:// URL")
	return "", ""
}

// pool checks how many connections and how much space a PostgreSQL database has.
func (c *check) pool(s *Settings, config Config) {
	s.DatabaseConns = c.atLeast("AGENTPROXY_DATABASE_MAX_CONNS", config.DatabaseConns, 4)
	s.DatabaseCapacity = int64(c.atLeast("AGENTPROXY_DATABASE_CAPACITY_MB", config.DatabaseCapacity, 0)) * 1_000_000
	if s.DatabaseURL == "" && config.DatabaseCapacity > 0 {
		c.fault("AGENTPROXY_DATABASE_CAPACITY_MB", "is of PostgreSQL; the space of a SQLite file is that of its disk")
	}
}

// publicGateway returns the host and the port that agents reach the gateway by.
func (c *check) publicGateway(text string, gateway netip.AddrPort) (string, int) {
	if text == "" {
		if gateway.Addr().IsUnspecified() {
			c.fault("AGENTPROXY_PUBLIC_GATEWAY", "is required if the gateway listens on all addresses: the host:port that "+
				"agents reach")
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

func (c *check) publicURL(text string, api netip.AddrPort, tls bool) string {
	if text == "" {
		if api.Addr().IsUnspecified() {
			c.fault("AGENTPROXY_PUBLIC_URL", "is required if the API listens on all addresses: the URL that agents "+
				"reach, which pages and answers name")
		}
		return LocalURL(api, tls)
	}
	return c.baseURL("AGENTPROXY_PUBLIC_URL", text)
}

// LocalURL returns the URL of a listener as this host reaches it, with TLS or without.
func LocalURL(listener netip.AddrPort, tls bool) string {
	if listener.Addr().IsUnspecified() {
		listener = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), listener.Port())
	}
	if tls {
		return "https://" + listener.String()
	}
	return "http://" + listener.String()
}

// baseURL checks a URL that paths are appended to.
func (c *check) baseURL(name, text string) string {
	if u, err := url.Parse(text); err != nil || !isBaseURL(u) {
		c.fault(name, "must be an http or https URL without user info")
	}
	return strings.TrimSuffix(text, "/")
}

// shopName returns the name of the shop as pages show it.
func (c *check) shopName(text string) string {
	text = strings.TrimSpace(text)
	shown := func(r rune) bool { return !unicode.IsGraphic(r) }
	if n := utf8.RuneCountInString(text); n < 1 || n > 60 || strings.ContainsFunc(text, shown) {
		c.fault("AGENTPROXY_SHOP_NAME", "must have 1 to 60 characters, all of them visible")
	}
	return text
}

// contact checks the URI of a contact (RFC 9116 section 2.5.3). A bare address becomes a mailto URI.
func (c *check) contact(name, text string) string {
	if text == "" {
		return ""
	}
	if a, err := mail.ParseAddress(text); err == nil && a.Address == text {
		return "mailto:" + text
	}
	u, err := url.Parse(text)
	valid := err == nil && (u.Scheme == "https" && u.Host != "" && u.User == nil || u.Scheme == "tel" && u.Opaque != "")
	if err == nil && u.Scheme == "mailto" {
		a, err := mail.ParseAddress(u.Opaque)
		valid = err == nil && a.Address == u.Opaque
	}
	if !valid || strings.ContainsAny(text, " \r\n\t") {
		c.fault(name, "must be an https, mailto or tel URI, or an e-mail address")
	}
	return text
}

func isBaseURL(u *url.URL) bool {
	return u.Host != "" && u.User == nil && u.RawQuery == "" && (u.Scheme == "http" || u.Scheme == "https")
}

// placeholder begins what a manifest has where no value is right for all.
const placeholder = "replace-with-"

func (c *check) networks(name string, list []string) []netip.Prefix {
	var nets []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if ip, errIP := netip.ParseAddr(text); errIP == nil {
			p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		switch {
		case strings.HasPrefix(text, placeholder):
			c.fault(name, "has the placeholder of the manifest still: replace %q, with addresses such as 10.0.3.7", text)
		case err != nil:
			c.fault(name, "%q is not a network in CIDR form, such as 10.0.0.0/8", text)
		}
		nets = append(nets, p.Masked())
	}
	return nets
}
