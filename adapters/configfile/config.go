// Package configfile reads the configuration: AGENTPROXY_ variables, which win
// over a YAML file, which wins over the defaults. It yields plain settings, and
// lists every fault at once with its variable, or with its line in the file.
package configfile

import (
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Config holds the settings as the operator wrote them. The comments of its
// fields become docs/configuration.md; the tag default describes a default that
// depends on other settings.
type Config struct {
	// Address that the API listens on.
	HTTPAddr string `yaml:"http_addr" env:"AGENTPROXY_HTTP_ADDR"`
	// Address of the proxy port.
	GatewayAddr string `yaml:"gateway_addr" env:"AGENTPROXY_GATEWAY_ADDR"`
	// Address of the admin pages, for the operator alone: the console, `/healthz`, `/readyz`, Prometheus'
	// `/metrics`, and `/debug/pprof/` in development mode. They are served without TLS.
	AdminAddr string `yaml:"admin_addr" env:"AGENTPROXY_ADMIN_ADDR"`
	// Further names that the Host header of the admin pages may have, such as `agentproxy-1`; with
	// a port if the pages are published on another one. The listener's own addresses, and
	// `localhost` on loopback, always may.
	AdminHosts []string `yaml:"admin_hosts" env:"AGENTPROXY_ADMIN_HOSTS"`
	// Password of the admin pages, 12 to 1,024 characters.
	AdminPassword string `yaml:"-" env:"AGENTPROXY_ADMIN_PASSWORD" default:"a token in agentproxy.db.admin beside the SQLite file, made at the first start; with PostgreSQL derived from AGENTPROXY_SECRET. agentproxy admin token prints it"`
	// File of users of the admin pages, one in a line as `agentproxy admin hash` prints it, with mode 600 or 640.
	// `kill -HUP` reloads it.
	AdminUsers string `yaml:"admin_users" env:"AGENTPROXY_ADMIN_USERS"`
	// Whether `/metrics` needs no credential off loopback too, as Prometheus on another host asks for it.
	MetricsOpen bool `yaml:"metrics_open" env:"AGENTPROXY_METRICS_OPEN"`
	// `host:port` of the gateway as agents reach it, written into `full_url`. Required if the
	// gateway listens on all addresses.
	PublicGateway string `yaml:"public_gateway" env:"AGENTPROXY_PUBLIC_GATEWAY" default:"the gateway's address"`
	// Base URL of the API as agents reach it, without `/v1`.
	PublicURL string `yaml:"public_url" env:"AGENTPROXY_PUBLIC_URL" default:"http://, or https:// where the API uses TLS, and the API's address"`
	// Who handles abuse and vulnerabilities, published at `/.well-known/security.txt`: an https or
	// mailto URI, or an e-mail address.
	AbuseContact string `yaml:"abuse_contact" env:"AGENTPROXY_ABUSE_CONTACT"`
	// Name of the shop on pages for people and on statements, at most 60 characters.
	ShopName string `yaml:"shop_name" env:"AGENTPROXY_SHOP_NAME"`
	// Folder with builds of apx, named `apx-linux-amd64` and so on (linux, darwin, windows; amd64, arm64). Those that are
	// there are served below `/download/`, each with its checksum, and named in the pages for agents. The image has all.
	Downloads string `yaml:"downloads" env:"AGENTPROXY_DOWNLOADS"`
	// `sqlite://` and a file, or `postgres://user:password@host/database` for PostgreSQL 13 or newer.
	DatabaseURL string `yaml:"database_url" env:"AGENTPROXY_DATABASE_URL"`
	// Connections of a replica to PostgreSQL, at least 4. Two more listen for notifications.
	DatabaseConns int `yaml:"database_max_conns" env:"AGENTPROXY_DATABASE_MAX_CONNS"`
	// A file in which the newest timeline of PostgreSQL's servers is kept, so that a server that was replaced while the
	// service was stopped is refused. Each replica has its own, in a folder that it may write to; empty: none.
	DatabaseSeen string `yaml:"database_seen_file" env:"AGENTPROXY_DATABASE_SEEN_FILE"`
	// Megabytes that the PostgreSQL database may take: the size of its volume less that of the log of writes
	// (`max_wal_size`) and of other databases. While less than a twentieth of it is left, accounts on trial store
	// nothing more, as on a nearly full disk of SQLite, whose space is read; 0: not known, and only an answer of
	// PostgreSQL that its disk is full has that effect.
	DatabaseCapacity int `yaml:"database_capacity_mb" env:"AGENTPROXY_DATABASE_CAPACITY_MB"`
	// Server of Redis or Valkey on which replicas share their rate limits:
	// `redis://:password@host:6379/0`, `rediss://` with TLS or `unix:///path`. While it is away
	// each replica limits alone.
	RateLimitURL string `yaml:"-" env:"AGENTPROXY_RATELIMIT_URL" default:"PostgreSQL; with SQLite each process limits alone"`
	// Servers of NATS with JetStream that keep reported telemetry until it is folded into the
	// database: `nats://user:password@host:4222`, `tls://` for TLS, more of a cluster after commas
	// (from three on each message has three copies). While they are away reports are answered 503.
	// See docs/scaling.md.
	TelemetryURL string `yaml:"-" env:"AGENTPROXY_TELEMETRY_URL" default:"none: reports are stored in the database at once"`
	// Root secret that every other secret is derived from: at least 32 random characters, such as
	// the output of `openssl rand -base64 32`. Required with PostgreSQL, and the same for every
	// replica.
	Secret string `yaml:"-" env:"AGENTPROXY_SECRET" default:"created and kept beside the SQLite file"`
	// Root secrets that `AGENTPROXY_SECRET` replaced, at most 8: what they made still works. Beside
	// a SQLite file they may also be in `agentproxy.db.secret.previous`, one in a line.
	PreviousSecrets []string `yaml:"-" env:"AGENTPROXY_SECRET_PREVIOUS"`
	// Requests per minute and agent; 0 is unlimited.
	RateLimit int `yaml:"rate_limit_per_minute" env:"AGENTPROXY_RATE_LIMIT_PER_MINUTE"`
	// Registrations per minute and client address; 0 is unlimited. Outside development mode 60 may come from one
	// IPv4 /24 or IPv6 /48 then, and 600 in all.
	RegisterLimit *int `yaml:"register_limit_per_minute" env:"AGENTPROXY_REGISTER_LIMIT_PER_MINUTE" default:"120; 0 in development mode"`
	// Bytes that the service may store for one agent on a UTC day: sessions, rules, workers, reports, events for
	// webhooks and records of the exit log; 0 is unlimited. Beyond it what adds more is refused.
	StoredPerDay *int `yaml:"stored_per_day" env:"AGENTPROXY_STORED_PER_DAY" default:"1000000000; 0 in development mode"`
	// The same for an agent whose account is a trial.
	TrialStoredPerDay *int `yaml:"stored_per_day_trial" env:"AGENTPROXY_STORED_PER_DAY_TRIAL" default:"50000000; 0 in development mode"`
	// Connections that one agent may have to the gateway of a replica; 0 is unlimited.
	AgentConnections *int `yaml:"agent_connections" env:"AGENTPROXY_AGENT_CONNECTIONS" default:"1000; 0 in development mode"`
	// The same for an agent whose account is a trial.
	TrialConnections *int `yaml:"agent_connections_trial" env:"AGENTPROXY_AGENT_CONNECTIONS_TRIAL" default:"100; 0 in development mode"`
	// Connections that one session may have to the gateway of a replica, 1 or more: 256, and 64 for
	// each worker in use where that is more, but never more than this.
	SessionTunnels int `yaml:"session_tunnels" env:"AGENTPROXY_SESSION_TUNNELS"`
	// Ports that accounts on trial reach: numbers, ranges such as `8000-8010`, or `all`.
	TrialPorts []string `yaml:"trial_ports" env:"AGENTPROXY_TRIAL_PORTS" default:"80, 443, 8080, 8443; all in development mode"`
	// New connections per second of one agent to all targets, per replica, ten seconds' worth at once (of a trial
	// three); those that are refused or fail count. 0 is unlimited.
	ConnectionRate *int `yaml:"connections_per_second" env:"AGENTPROXY_CONNECTIONS_PER_SECOND" default:"100; 0 in development mode"`
	// The same for an agent whose account is a trial.
	TrialConnectionRate *int `yaml:"connections_per_second_trial" env:"AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL" default:"10; 0 in development mode"`
	// Different targets of one agent in a minute, registrable domains or addresses, per replica; those that are
	// refused or fail count. 0 is unlimited.
	Targets *int `yaml:"targets_per_minute" env:"AGENTPROXY_TARGETS_PER_MINUTE" default:"2000; 0 in development mode"`
	// The same for an agent whose account is a trial.
	TrialTargets *int `yaml:"targets_per_minute_trial" env:"AGENTPROXY_TARGETS_PER_MINUTE_TRIAL" default:"120; 0 in development mode"`
	// New connections per minute of one agent to one registrable domain, such as example.com with
	// everything below it, per replica; 0 is unlimited. Names of one address share 4 times as many, addresses
	// of one IPv4 /24 or IPv6 /64 8 times; on trial once and 4 times.
	TargetRate *int `yaml:"target_rate_per_minute" env:"AGENTPROXY_TARGET_RATE_PER_MINUTE" default:"600; 0 in development mode"`
	// The same for an agent whose account is a trial.
	TrialTargetRate *int `yaml:"target_rate_per_minute_trial" env:"AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL" default:"60; 0 in development mode"`
	// Development mode: the gateway and webhooks may reach loopback addresses, and registration is
	// unlimited.
	Dev *bool `yaml:"dev" env:"AGENTPROXY_DEV" default:"true if API and gateway listen on loopback and no public address, certificate, trusted proxy, PostgreSQL, account key or provider is set"`
	// Networks of reverse proxies whose `X-Forwarded-For` header is trusted, and with `AGENTPROXY_PROXY_PROTOCOL`
	// the PROXY protocol.
	TrustedProxies []string `yaml:"trusted_proxies" env:"AGENTPROXY_TRUSTED_PROXIES"`
	// Take the PROXY protocol, version 1 or 2, from the trusted proxies, on the port of the gateway, where each of their
	// connections must begin with its header, and on that of the API, where it may.
	ProxyProtocol bool `yaml:"proxy_protocol" env:"AGENTPROXY_PROXY_PROTOCOL"`
	// Networks that the gateway may reach besides public addresses.
	AllowNetworks []string `yaml:"allow_networks" env:"AGENTPROXY_ALLOW_NETWORKS"`
	// Networks that webhooks may reach besides public addresses.
	WebhookAllow []string `yaml:"webhook_allow_networks" env:"AGENTPROXY_WEBHOOK_ALLOW_NETWORKS"`
	// Addresses of this host that the embedded provider sells, each with the place it is sold as
	// (203.0.113.7@DE/berlin). Half of them serve dynamic sessions, half static ones. Development mode
	// sells loopback addresses if none are set, and every country; other modes sell the declared
	// addresses and places alone, and without any none of the embedded products.
	Exits []string `yaml:"exits" env:"AGENTPROXY_EXITS" default:"none; 127.0.0.2 to 127.0.3.254 in development mode"`
	// Live sessions per agent; 0 is unlimited.
	SessionLimit int `yaml:"session_limit" env:"AGENTPROXY_SESSION_LIMIT"`
	// Trial balance of a new agent in US dollars, with at most 6 decimals.
	TrialBalance string `yaml:"trial_balance" env:"AGENTPROXY_TRIAL_BALANCE"`
	// Days after which what is left of a trial balance expires, at least 1.
	TrialDays int `yaml:"trial_days" env:"AGENTPROXY_TRIAL_DAYS"`
	// Most trial credit that is granted to all accounts together on a UTC day, in US dollars; 0 is
	// unlimited. Beyond it accounts start with a balance of 0.
	TrialDailyTotal string `yaml:"trial_daily_total" env:"AGENTPROXY_TRIAL_DAILY_TOTAL" default:"1000.00; 100 trial balances if one is above that"`
	// Accounts a UTC day with trial credit from one network: an IPv4 /24 or an IPv6 /48, and all
	// exits of this service together; 0 is unlimited. Beyond it accounts start with a balance of 0.
	TrialPerNetwork *int `yaml:"trial_per_network" env:"AGENTPROXY_TRIAL_PER_NETWORK" default:"5; 0 in development mode"`
	// Own money in US dollars, credited in sum by transfers and positive corrections, from which an account is
	// `funded`; 0: any amount.
	FundedFrom string `yaml:"funded_from" env:"AGENTPROXY_FUNDED_FROM"`
	// Who may open an account: `open` is any agent, `referral` one with a valid code, `closed` the
	// operator with `agentproxy agent add` alone.
	Registration string `yaml:"registration" env:"AGENTPROXY_REGISTRATION"`
	// Days for which the client address and the User-Agent header of a registration are kept with
	// the account, and the addresses from which a session was used; 0 keeps those of registrations
	// not at all, and others for minutes.
	ClientAddressDays int `yaml:"client_address_days" env:"AGENTPROXY_CLIENT_ADDRESS_DAYS"`
	// Whether the tool `connect` of `POST /mcp` may put proxy passwords into its answer when it is
	// asked to: the model and its provider see them then. Otherwise it gives a link that a program
	// fetches once.
	MCPReveal bool `yaml:"mcp_reveal" env:"AGENTPROXY_MCP_REVEAL"`
	// Days for which it is kept who used which exit, a record of each connection; 0: none is made.
	ExitLogDays int `yaml:"exit_log_days" env:"AGENTPROXY_EXIT_LOG_DAYS"`
	// Days after the end of a session for which its workers are kept in tables; then they are archived,
	// which takes less space and changes no answer; 0: never.
	ArchiveDays int `yaml:"archive_days" env:"AGENTPROXY_ARCHIVE_DAYS"`
	// Seconds between SIGTERM, when `/readyz` turns to 503, and the close of the listeners, so that
	// load balancers stop sending first; at most 300.
	DrainDelay *int `yaml:"drain_delay_seconds" env:"AGENTPROXY_DRAIN_DELAY_SECONDS" default:"5; 0 in development mode"`
	// Seconds for which tunnels go on with the bytes that they were granted while the database does not answer, 10 to
	// 600: longer than a failover takes. A replica that ends without returning what it was granted leaves that out of
	// reach for 5 more.
	OutageSeconds int `yaml:"outage_seconds" env:"AGENTPROXY_OUTAGE_SECONDS"`
	// `debug`, `info`, `warn` or `error`.
	LogLevel string `yaml:"log_level" env:"AGENTPROXY_LOG_LEVEL"`
	// `text`, `json`, or `auto`: text on a terminal and JSON otherwise.
	LogFormat string `yaml:"log_format" env:"AGENTPROXY_LOG_FORMAT"`

	TLSConfig     `yaml:",inline"`
	PaymentConfig `yaml:",inline"`
}

// defaults returns a Config of what neither the file nor a variable sets.
func defaults() Config {
	return Config{HTTPAddr: "127.0.0.1:8080", GatewayAddr: "127.0.0.1:8081", AdminAddr: "127.0.0.1:8082",
		ShopName:    "agentproxy",
		DatabaseURL: "sqlite://agentproxy.db", DatabaseConns: 20, RateLimit: 600, SessionLimit: 200, SessionTunnels: 4096,
		TrialBalance: "10.00", TrialDays: 14, FundedFrom: "1.00", Registration: "open",
		ClientAddressDays: 90, ExitLogDays: 90, ArchiveDays: 90,
		OutageSeconds: int(traffic.UsualLasts / time.Second),
		LogLevel:      "info", LogFormat: "auto"}
}

// The defaults outside development mode of limits that are off in it.
const (
	registerLimit     = 120 // per minute and client address
	storedPerDay      = 1_000_000_000
	trialStoredPerDay = 50_000_000

	agentConnections = 1000
	trialConnections = 100
	connectionRate   = 100 // per second and agent
	trialConnRate    = 10
	targets          = 2000 // per minute and agent
	trialTargets     = 120
	targetRate       = 600 // per minute, agent and domain
	trialTargetRate  = 60
	trialNetwork     = 5 // per day and network
	drainDelay       = 5 // seconds
)

// trialTotal is the default of TrialDailyTotal, unless one trial balance is above it: then it is
// trialsTotal trial balances.
const (
	trialTotal  = 1000 * domain.Dollar
	trialsTotal = 100
)

// Exit is an address of the embedded provider and the place that is declared for it.
type Exit struct {
	Addr  netip.Addr
	Place session.Location
}

// Settings is a Config that was checked as a whole.
type Settings struct {
	HTTPAddr, GatewayAddr string
	AdminAddr             string
	AdminHosts            []string
	AdminPassword         Secret // empty: a token
	AdminUsers            string // a file; empty: none
	MetricsOpen           bool
	PublicHost            string // of the gateway, as written into full_url
	PublicPort            int
	PublicURL             string // of the API, without /v1
	ShopName              string // on pages for people
	AbuseContact          string // a URI; empty if none is published
	Downloads             string // a folder; empty if nothing is offered
	MCPReveal             bool   // whether answers of tools may hold proxy passwords
	DatabasePath          string // of SQLite; empty with PostgreSQL
	DatabaseURL           Secret // of PostgreSQL; empty with SQLite
	DatabaseConns         int
	DatabaseSeen          string // a file; empty: none
	DatabaseCapacity      int64  // bytes that PostgreSQL may take; 0: not known
	RateLimitURL          Secret // of Redis; empty: limits are shared through PostgreSQL, or not at all
	TelemetryURL          Secret // of NATS; empty: reports are stored at once
	RootSecret            Secret // empty if no variable sets it
	PreviousSecrets       []Secret
	RateLimit             int
	RegisterLimit         int
	StoredPerDay          int
	TrialStoredPerDay     int
	AgentConnections      int
	TrialConnections      int
	TrialPorts            []string // of targets; nil: every port
	SessionTunnels        int
	ConnectionRate        int
	TrialConnectionRate   int
	Targets               int
	TrialTargets          int
	TargetRate            int
	TrialTargetRate       int
	Dev                   bool
	TrustedProxies        []netip.Prefix
	ProxyProtocol         bool
	AllowNetworks         []netip.Prefix // of the gateway's targets
	WebhookAllow          []netip.Prefix // of the receivers of webhooks
	Exits                 []Exit
	SessionLimit          int
	TrialBalance          domain.Money
	TrialDays             int
	TrialDailyTotal       domain.Money
	TrialPerNetwork       int
	FundedFrom            account.Funding
	Registration          account.Registration
	ClientAddressDays     int
	ExitLogDays           int
	ArchiveDays           int
	DrainDelay            time.Duration
	Outage                time.Duration // for which tunnels go on without the database
	LogLevel, LogFormat   string
	TLS                   TLSSettings
	Payments              PaymentSettings
	Catalog               CatalogConfig
	Warnings              []Fault // which do not keep the service from starting
}

// Rules are what the adapters that the settings are for accept. No error of
// theirs repeats a secret.
type Rules struct {
	// NewProvider creates a provider. Its error lists every fault of the settings,
	// each with its path ("options.zone is missing").
	NewProvider func(Provider) (ports.Provider, error)
	// Running are the providers since the start of the service, if the file is read
	// again: products cannot be sold from any other. It is nil at the start.
	Running []ports.Provider
	// WithoutProducts leaves the products of the file unread, for commands about providers alone: a
	// product's fault does not keep an operator from asking a provider.
	WithoutProducts bool
	// ExitDatabase reads a database of facts about addresses: it returns the look-up, what facts it can have and when
	// it was built.
	ExitDatabase func(file string) (func(netip.Addr) exit.Known, exit.Fields, time.Time, error)
	// Now is the time that dates in the file are compared with.
	Now              func() time.Time
	EmbeddedProvider string   // its name
	EmbeddedCodes    []string // of its products
	Countries        []string // sorted
	DatabaseURL      func(text string) error
	RateLimitURL     func(text string) error
	TelemetryURL     func(text string) error
	RootSecret       func(text string) error
	AdminPassword    func(text string) error
	AdminUsers       func(file string) error
	// Certificate checks the files of a certificate and its key. Nil: they are not read.
	Certificate func(certFile, keyFile string) error
	AccountKey  func(text string) error
	TronAddress func(text string) bool
}
