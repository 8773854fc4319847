package doctor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/doctor"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

const random = "q1nTz0Rk7vJx4mWc9sYb2hLd8fGp5aEu3iOX6NQB"

// public are settings of a service that may be opened.
func public() configfile.Settings {
	return configfile.Settings{HTTPAddr: "127.0.0.1:8080", GatewayAddr: "0.0.0.0:8081", AdminAddr: "127.0.0.1:8082",
		PublicHost: "gate.shop.example", PublicPort: 8081, PublicURL: "https://api.shop.example", AbuseContact: "mailto:abuse@shop.example",
		DatabaseURL: "postgres://service:Wq8zTn4kRv2m@db.internal/service?sslmode=verify-full", RootSecret: random,
		RateLimit: 600, RegisterLimit: 120, AgentConnections: 1000, TrialConnections: 100, TargetRate: 600, TrialTargetRate: 60,
		ConnectionRate: 100, TrialConnectionRate: 10, Targets: 2000, TrialTargets: 120,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, SessionLimit: 200,
		TrialBalance: 10 * domain.Dollar, TrialDays: 14, TrialDailyTotal: 1000 * domain.Dollar, TrialPerNetwork: 5,
		Registration: account.OpenRegistration, ClientAddressDays: 90, LogLevel: "info",
		TLS:      configfile.TLSSettings{Hosts: []string{"gate.shop.example"}, DirectoryURL: "https://ca.example/"},
		Exits:    []configfile.Exit{{Addr: netip.MustParseAddr("203.0.113.7")}},
		Payments: configfile.PaymentSettings{AccountKey: "xpub", Network: "tron-mainnet", APIKey: "key"}}
}

// bad returns the findings that are not OK, as "level check".
func bad(f doctor.Findings) (list []string) {
	for _, x := range f.Sorted() {
		if x.Level != doctor.OK {
			list = append(list, fmt.Sprint(x.Level, " ", x.Check))
		}
	}
	return list
}

func TestEachDoubtfulSettingIsAFinding(t *testing.T) {
	seller := func(p catalog.Product) []catalog.Product {
		p.No, p.Type = "one", session.Dynamic
		return []catalog.Product{p}
	}
	for claim, c := range map[string]struct {
		change func(s *configfile.Settings)
		want   string
	}{
		"nothing":                             {func(*configfile.Settings) {}, ""},
		"development mode":                    {func(s *configfile.Settings) { s.Dev = true }, "error development_mode"},
		"no certificate":                      {func(s *configfile.Settings) { s.TLS = configfile.TLSSettings{} }, "error gateway_tls"},
		"none, and the gateway is not public": {func(s *configfile.Settings) { s.TLS, s.GatewayAddr = configfile.TLSSettings{}, "10.0.0.7:8081" }, ""},
		"TLS in the program": {func(s *configfile.Settings) {
			s.TLS.API, s.HTTPAddr, s.TrustedProxies = true, "0.0.0.0:443", nil
			s.TLS.Hosts = append(s.TLS.Hosts, "api.shop.example")
		}, ""},
		"a certificate without the API's name": {func(s *configfile.Settings) {
			s.TLS.API, s.HTTPAddr, s.TrustedProxies = true, "0.0.0.0:443", nil
		}, "error certificate_names"},
		"a certificate without the gateway's name": {func(s *configfile.Settings) { s.PublicHost = "other.shop.example" }, "error certificate_names"},
		"a certificate and an address":             {func(s *configfile.Settings) { s.PublicHost = "203.0.113.9" }, "error certificate_names"},
		"names have no case":                       {func(s *configfile.Settings) { s.PublicHost = "Gate.Shop.Example" }, ""},
		"files that cannot be read":                {func(s *configfile.Settings) { s.TLS = configfile.TLSSettings{CertFile: "/none", KeyFile: "/none"} }, "error certificate_names"},
		"no exits":                                 {func(s *configfile.Settings) { s.Exits = nil }, "error exits"},
		"no exits, and other sellers' alone": {func(s *configfile.Settings) {
			s.Exits, s.Catalog.WithoutEmbedded = nil, true
		}, ""},
		"debug log":                           {func(s *configfile.Settings) { s.LogLevel = "debug" }, "warning log_level"},
		"local API":                           {func(s *configfile.Settings) { s.PublicURL = "http://127.0.0.1:8080" }, "error public_url"},
		"API without TLS":                     {func(s *configfile.Settings) { s.PublicURL = "http://api.shop.example" }, "error public_url"},
		"local gateway":                       {func(s *configfile.Settings) { s.PublicHost = "127.0.0.1" }, "error public_gateway"},
		"no contact for complaints":           {func(s *configfile.Settings) { s.AbuseContact = "" }, "warning abuse_contact"},
		"listener on all addresses":           {func(s *configfile.Settings) { s.HTTPAddr = ":8080" }, "warning api_listener"},
		"listener on a private address":       {func(s *configfile.Settings) { s.HTTPAddr = "10.0.0.4:8080" }, ""},
		"public admin pages":                  {func(s *configfile.Settings) { s.AdminAddr = "203.0.113.9:8082" }, "warning admin_listener"},
		"admin pages on all addresses":        {func(s *configfile.Settings) { s.AdminAddr = "0.0.0.0:8082" }, "warning admin_listener"},
		"metrics for all networks":            {func(s *configfile.Settings) { s.AdminAddr, s.MetricsOpen = "0.0.0.0:8082", true }, "warning admin_listener, warning open_metrics"},
		"metrics on loopback":                 {func(s *configfile.Settings) { s.MetricsOpen = true }, ""},
		"everybody is a trusted proxy":        {func(s *configfile.Settings) { s.TrustedProxies = prefixes("0.0.0.0/0") }, "error trusted_proxies"},
		"a network that is trusted":           {func(s *configfile.Settings) { s.TrustedProxies = prefixes("10.0.0.0/23") }, "error trusted_proxies"},
		"a network of IPv6 that is trusted":   {func(s *configfile.Settings) { s.TrustedProxies = prefixes("2001:db8::/63") }, "error trusted_proxies"},
		"the smallest networks":               {func(s *configfile.Settings) { s.TrustedProxies = prefixes("10.0.0.0/24", "2001:db8::/64") }, ""},
		"a reverse proxy that is not trusted": {func(s *configfile.Settings) { s.TrustedProxies = nil }, "error trusted_proxies"},
		"loopback targets":                    {func(s *configfile.Settings) { s.AllowNetworks = prefixes("127.0.0.0/8") }, "error allowed_networks"},
		"metadata by webhooks":                {func(s *configfile.Settings) { s.WebhookAllow = prefixes("169.254.0.0/16") }, "error allowed_networks"},
		"private targets":                     {func(s *configfile.Settings) { s.AllowNetworks = prefixes("10.1.0.0/16") }, "warning allowed_networks"},
		"unlimited registrations":             {func(s *configfile.Settings) { s.RegisterLimit = 0 }, "error registration"},
		"closed registration":                 {func(s *configfile.Settings) { s.RegisterLimit, s.Registration = 0, account.ClosedRegistration }, ""},
		"unlimited trials of a network":       {func(s *configfile.Settings) { s.TrialPerNetwork = 0 }, "error trial"},
		"unlimited trials of a day":           {func(s *configfile.Settings) { s.TrialDailyTotal = 0 }, "error trial"},
		"no trial":                            {func(s *configfile.Settings) { s.TrialDailyTotal, s.TrialBalance = 0, 0 }, ""},
		"addresses that are not kept":         {func(s *configfile.Settings) { s.ClientAddressDays = 0 }, "warning client_addresses"},
		"unlimited requests":                  {func(s *configfile.Settings) { s.RateLimit = 0 }, "warning limits"},
		"unlimited sessions":                  {func(s *configfile.Settings) { s.SessionLimit = 0 }, "warning limits"},
		"unlimited connections":               {func(s *configfile.Settings) { s.AgentConnections = 0 }, "warning limits"},
		"unlimited new connections":           {func(s *configfile.Settings) { s.ConnectionRate = 0 }, "warning limits"},
		"unlimited targets":                   {func(s *configfile.Settings) { s.TrialTargets = 0 }, "warning limits"},
		"unlimited rate at targets":           {func(s *configfile.Settings) { s.TrialTargetRate = 0 }, "warning limits"},
		"payments that are off":               {func(s *configfile.Settings) { s.Payments = configfile.PaymentSettings{Off: true} }, "warning payments"},
		"no key":                              {func(s *configfile.Settings) { s.Payments.APIKey = "" }, "warning payments"},
		"test coins":                          {func(s *configfile.Settings) { s.Payments.Network = "tron-nile" }, "error payments"},
		"a placeholder as the secret":         {func(s *configfile.Settings) { s.RootSecret = "please-changeme-0123456789-ABCDEF-xyz" }, "error root_secret"},
		"a secret that repeats itself":        {func(s *configfile.Settings) { s.RootSecret = "k3JqX9zRk3JqX9zRk3JqX9zRk3JqX9zR" }, "error root_secret"},
		"a secret that counts":                {func(s *configfile.Settings) { s.RootSecret = "0123456789ABCDEFGHIJKLMNOPQRSTUV" }, "error root_secret"},
		"a secret of words":                   {func(s *configfile.Settings) { s.RootSecret = "correct horse battery staple fountain" }, "error root_secret"},
		"previous secrets":                    {func(s *configfile.Settings) { s.PreviousSecrets = []configfile.Secret{"x"} }, "warning previous_secrets"},
		"a default database password": {func(s *configfile.Settings) {
			s.DatabaseURL = "postgres://agentproxy:agentproxy@db.internal/x?sslmode=require"
		}, "error database_password"},
		"a short database password": {func(s *configfile.Settings) {
			s.DatabaseURL = "postgres://agentproxy:Rk7vJx4m@db.internal/x?sslmode=require"
		}, "warning database_password"},
		"a database without TLS": {func(s *configfile.Settings) { s.DatabaseURL = "postgres://service:Wq8zTn4kRv2m@db.internal/x" },
			"warning database_tls"},
		"a local database": {func(s *configfile.Settings) { s.DatabaseURL = "postgres://service:Wq8zTn4kRv2m@127.0.0.1/x" }, ""},
		"a loss": {func(s *configfile.Settings) {
			s.Catalog.Products = seller(catalog.Product{Price: 1, OwnMoneyOnly: true, Sources: []procurement.Source{{Provider: "p", Cost: 2}}})
		}, "warning below_cost"},
		"trial credit at a seller": {func(s *configfile.Settings) {
			s.Catalog.Products = seller(catalog.Product{Price: 2, Sources: []procurement.Source{{Provider: "p", Cost: 1}}})
		}, "warning trial_credit"},
		"trial credit at home": {func(s *configfile.Settings) {
			s.Catalog.Products = seller(catalog.Product{Price: 2, Sources: []procurement.Source{{Provider: "embedded"}}})
		}, ""},
	} {
		t.Run(claim, func(t *testing.T) {
			s := public()
			c.change(&s)
			found := doctor.Settings(s)
			if got := strings.Join(bad(found), ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			for _, x := range found {
				if x.What == "" || x.Level != doctor.OK && (x.Why == "" || x.Do == "") {
					t.Errorf("lacks what, why or what to do: %+v", x)
				}
				for _, secret := range []string{string(s.RootSecret), "Wq8zTn4kRv2m", "Rk7vJx4m", "xpub"} {
					if strings.Contains(x.What+x.Why+x.Do, secret) {
						t.Errorf("a secret is repeated: %+v", x)
					}
				}
			}
		})
	}
}

func prefixes(list ...string) (nets []netip.Prefix) {
	for _, text := range list {
		nets = append(nets, netip.MustParsePrefix(text))
	}
	return nets
}

func TestFilesThatOthersMayUseAreErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) doctor.File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return doctor.File{Path: path, What: "The file", Secret: strings.HasPrefix(name, "s")}
	}
	for _, c := range []struct {
		name string
		mode os.FileMode
		want string
	}{
		{"s1", 0o600, ""}, {"s2", 0o640, ""}, {"s3", 0o644, "chmod 600 "}, {"s4", 0o660, "chmod 600 "}, {"c1", 0o644, ""},
		{"c2", 0o664, "chmod go-w "},
	} {
		found := doctor.Files([]doctor.File{file(c.name, c.mode)})
		if len(found) != 1 || (found[0].Level == doctor.Error) != (c.want != "") || !strings.Contains(found[0].Do, c.want) {
			t.Errorf("mode %04o: %+v", c.mode, found)
		}
	}
	if found := doctor.Files([]doctor.File{{Path: filepath.Join(dir, "none")}, {}}); len(found) != 0 {
		t.Errorf("of files that do not exist: %+v", found)
	}
}

func TestTheProcessMustHoldTheConnections(t *testing.T) {
	for _, c := range []struct {
		descriptors, user int
		want              string
	}{
		{65_536, 1000, ""}, {0, 1000, ""}, {20_000, 1000, "warning descriptors"}, {1024, 1000, "error descriptors"}, {65_536, 0, "warning user"},
	} {
		if got := strings.Join(bad(doctor.Process(doctor.Host{Descriptors: c.descriptors, UserID: c.user}, public())), ", "); got != c.want {
			t.Errorf("%d descriptors, user %d: %q, want %q", c.descriptors, c.user, got, c.want)
		}
	}
}

func TestARouterMayNotNameClients(t *testing.T) {
	const four = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	01501DAC	0003	0	0	0	00000000	0	0	0
eth0	00501DAC	00000000	0001	0	0	0	00FFFFFF	0	0	0
`
	const six = `00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
`
	routers := doctor.Gateways(four, six+"what is this\n")
	if got := fmt.Sprint(routers); binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && got != "[172.29.80.1 fd00::1]" {
		t.Errorf("the routers are %s", got)
	}
	for network, want := range map[string]string{"172.29.80.0/24": "error trusted_proxies", "172.29.80.10/32": "", "fd00::/64": "error trusted_proxies"} {
		s := public()
		s.TrustedProxies = prefixes(network)
		if got := strings.Join(bad(doctor.Process(doctor.Host{Descriptors: 65_536, UserID: 1, Gateways: routers}, s)), ", "); got != want {
			t.Errorf("%s: %q, want %q", network, got, want)
		}
	}
}

func TestTheClientsOfTheGatewayAreJudged(t *testing.T) {
	for claim, c := range map[string]struct {
		agents, addresses, number int
		protocol, trusted         bool
		want                      string
	}{
		"nothing was seen":                        {1, 1, 0, false, true, "warning gateway_clients"},
		"nothing was seen, and no proxy":          {1, 1, 0, false, false, ""},
		"nothing was seen, with the protocol":     {1, 1, 0, true, true, ""},
		"a few of the balancer":                   {2, 1, 5, false, true, "warning gateway_clients"},
		"all of the balancer":                     {2, 1, 30, false, true, "error gateway_clients"},
		"all of the balancer, with the protocol":  {2, 1, 30, true, true, "error gateway_clients"},
		"all of a router":                         {2, 1, 30, false, false, "error gateway_clients"},
		"one agent of one address":                {1, 1, 30, false, false, ""},
		"many addresses":                          {5, 9, 30, false, true, ""},
		"more agents and addresses than are kept": {3000, 3000, 3000, false, true, ""},
	} {
		s := public()
		s.ProxyProtocol = c.protocol
		if !c.trusted {
			s.TrustedProxies = nil
		}
		var seen doctor.Clients
		for i := range c.number {
			seen.Add(fmt.Sprint("agt_", i%c.agents), netip.AddrFrom4([4]byte{127, 0, byte(i % c.addresses >> 8), byte(1 + i%c.addresses)}))
		}
		if got := strings.Join(bad(doctor.Balancers(s, seen)), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", claim, got, c.want)
		}
	}
}

func TestWhatIsStoredIsJudged(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	good := doctor.Database{BackedUp: now.Add(-time.Hour), ProvedAt: now, Now: now}
	for claim, c := range map[string]struct {
		change func(d *doctor.Database)
		want   string
	}{
		"good":               {func(*doctor.Database) {}, ""},
		"never proved":       {func(d *doctor.Database) { d.ProvedAt = time.Time{} }, ""},
		"ledger":             {func(d *doctor.Database) { d.Faults = 1 }, "error ledger"},
		"never backed up":    {func(d *doctor.Database) { d.BackedUp = time.Time{} }, "warning backup"},
		"an old backup":      {func(d *doctor.Database) { d.BackedUp = now.AddDate(0, 0, -8) }, "warning backup"},
		"PostgreSQL":         {func(d *doctor.Database) { d.PostgreSQL, d.Capacity, d.Skew = true, 1, -time.Second }, "warning backup"},
		"skewed":             {func(d *doctor.Database) { d.PostgreSQL, d.Capacity, d.Skew = true, 1, -3*time.Second }, "warning clock, warning backup"},
		"no capacity":        {func(d *doctor.Database) { d.PostgreSQL = true }, "warning backup, warning database_space"},
		"SQLite has no skew": {func(d *doctor.Database) { d.Skew = time.Hour }, ""},
	} {
		d := good
		c.change(&d)
		if got := strings.Join(bad(doctor.Stored(d)), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", claim, got, c.want)
		}
	}
}

func TestSellersAreJudgedByTheirAnswers(t *testing.T) {
	traffic := catalog.Product{No: "one", Type: session.Dynamic, Price: 3 * domain.Dollar,
		Sources: []procurement.Source{{Provider: "p", SKU: "mix"}}}
	loss := traffic
	loss.Sources = []procurement.Source{{Provider: "p", SKU: "mix", BelowCost: true}}
	addresses := catalog.Product{No: "two", Type: session.Static, Countries: []string{"DE"},
		Durations: []catalog.Duration{{Days: 30, Price: 2 * domain.Dollar}}, Sources: []procurement.Source{{Provider: "p", SKU: "isp"}}}
	gb := procurement.Offer{SKU: "mix", Type: session.Dynamic, Cost: 4 * domain.Dollar}
	ip := procurement.Offer{SKU: "isp", Type: session.Static, Cost: 4 * domain.Dollar, Days: []int{30}, Location: session.Location{Country: "DE"}}
	elsewhere, cheap := ip, gb
	elsewhere.Location.Country, cheap.Cost = "US", domain.Dollar
	for claim, c := range map[string]struct {
		seller doctor.Seller
		sold   catalog.Product
		want   string
	}{
		"it answers":                   {doctor.Seller{}, traffic, ""},
		"it fails":                     {doctor.Seller{Err: errors.New("no")}, traffic, "error provider"},
		"nothing is left there":        {doctor.Seller{Balance: procurement.ProviderBalance{Known: true}}, traffic, "warning provider"},
		"traffic costs more":           {doctor.Seller{Offers: []procurement.Offer{gb}}, traffic, "error below_cost"},
		"traffic costs more, accepted": {doctor.Seller{Offers: []procurement.Offer{gb}}, loss, ""},
		"traffic costs less":           {doctor.Seller{Offers: []procurement.Offer{cheap}}, traffic, ""},
		"addresses cost more":          {doctor.Seller{Offers: []procurement.Offer{ip}}, addresses, "error below_cost"},
		"elsewhere they do":            {doctor.Seller{Offers: []procurement.Offer{elsewhere}}, addresses, ""},
	} {
		c.seller.Name = "p"
		if got := strings.Join(bad(doctor.Sellers([]doctor.Seller{c.seller}, []catalog.Product{c.sold})), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", claim, got, c.want)
		}
	}
}

// TestTheNamesOfACertificateInFiles reads the names of pairs of files: of hosts, of a wildcard and of an address.
func TestTheNamesOfACertificateInFiles(t *testing.T) {
	for _, c := range []struct {
		names   []string
		gateway string
		want    string
	}{
		{[]string{"gate.shop.example", "api.shop.example"}, "gate.shop.example", ""},
		{[]string{"*.shop.example"}, "gate.shop.example", ""},
		{[]string{"203.0.113.9", "api.shop.example"}, "203.0.113.9", ""},
		{[]string{"api.shop.example"}, "gate.shop.example", "gate.shop.example"},
		{[]string{"gate.shop.example"}, "gate.shop.example", "api.shop.example"},
		{[]string{"*.shop.example"}, "203.0.113.9", "203.0.113.9"},
		{[]string{"*.example"}, "gate.shop.example", "gate.shop.example, api.shop.example"},
	} {
		s := public()
		cert, key := pairOf(t, c.names...)
		s.TLS = configfile.TLSSettings{CertFile: cert, KeyFile: key, API: true}
		s.PublicHost, s.TrustedProxies = c.gateway, nil
		var what string
		for _, x := range doctor.Settings(s) {
			if x.Check == "certificate_names" && x.Level != doctor.OK {
				what = x.What
			}
		}
		if c.want == "" && what != "" || c.want != "" && what != "The certificate is not for "+c.want+"." {
			t.Errorf("%v for %s: %q", c.names, c.gateway, what)
		}
	}
}

// pairOf writes a certificate of names and its key to files.
func pairOf(t *testing.T, names ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	draft := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			draft.IPAddresses = append(draft.IPAddresses, ip)
		} else {
			draft.DNSNames = append(draft.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &draft, &draft, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
