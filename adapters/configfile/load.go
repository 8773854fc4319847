package configfile

import (
	"errors"
	"net/netip"
	"os"

	"github.com/caarlos0/env/v11"

	"agentproxy/domain/policy"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Load reads the defaults, the file that AGENTPROXY_CONFIG names, and the
// variables, and checks the whole. Its error lists every fault; FaultsOf splits
// it.
func Load(rules Rules) (Settings, error) {
	config := defaults()
	c := check{rules: rules}
	catalog := CatalogConfig{Policy: defaultPolicy()}
	var warnings []Fault
	var secrets []string // variables that the file names
	var asked map[string]bool
	if file := os.Getenv("AGENTPROXY_CONFIG"); file != "" {
		root, err := parse(file)
		if err != nil {
			c.faults = append(c.faults, err)
		} else {
			keys := root.fields(append(config.keys(), catalogKeys...))
			c.places = config.read(keys)
			l := loader{Rules: rules}
			catalog, secrets, asked = l.load(keys), root.doc.variables, l.asked
			warnings = append(l.warnings, root.doc.warnings...)
			for _, f := range root.doc.faults {
				c.faults = append(c.faults, f)
			}
		}
	}
	if err := env.Parse(&config); err != nil {
		c.faults = append(c.faults, variableFaults(err)...)
	}
	s, err := c.settings(config, len(catalog.Providers))
	catalog.Policy.Trial = c.trial
	s.Catalog, s.Warnings = catalog, append(warnings, unknownVariables(os.Environ(), secrets)...)
	if !s.Dev {
		keepAddresses(catalog.Products, asked)
	}
	if !s.Dev && len(s.Exits) == 0 {
		err = errors.Join(err, undelivered(catalog, rules.EmbeddedProvider))
	}
	if s.Dev && s.Payments.AccountKey != "" && s.Payments.Network == recharge.MainNetwork {
		s.Warnings = append(s.Warnings, realPayments)
	}
	if at, err := ParseListener(s.AdminAddr); err == nil && !ours(at.Addr().Unmap()) {
		s.Warnings = append(s.Warnings, plainAdmin)
	}
	if s.SellsNoExits() {
		s.Warnings = append(s.Warnings, noExits)
	}
	return s, ordered(err)
}

// load reads the keys of the catalog.
func (l *loader) load(root fields) CatalogConfig {
	l.names, l.sellers, l.codes = map[string]bool{}, map[string]ports.Provider{}, map[string]int{}
	l.asked = map[string]bool{}
	l.config.Policy = &policy.Shared{Operator: l.operatorPolicy(root.get("policy")), Products: map[string]*policy.Rules{}}
	l.config.ExitFacts = l.exitFacts(root.get("exit_facts"))
	l.config.WithoutEmbedded = !root.get("embedded").boolean(true)
	for _, v := range root.get("providers").items() {
		l.provider(v)
	}
	if l.Running != nil {
		clear(l.sellers)
		for _, p := range l.Running {
			if l.names[p.Name()] { // else the file would be refused at the next start
				l.sellers[p.Name()] = p
			}
		}
	}
	if l.WithoutProducts {
		return l.config
	}
	var places []value
	for _, v := range root.get("products").items() {
		if p, ok := l.product(v); ok {
			l.config.Products, places = append(l.config.Products, p), append(places, v)
		}
	}
	l.check(places)
	return l.config
}

// plainAdmin is the warning of an admin listener that others may reach, whose passwords they may then read on the way.
var plainAdmin = Fault{Path: "AGENTPROXY_ADMIN_ADDR", Text: "is neither a loopback nor a private address, and " +
	"the admin pages have no TLS: credentials cross the network in clear; listen on loopback, behind a reverse proxy " +
	"with TLS"}

// ours reports whether only this host or the operator's network reaches an address. On all addresses, as in a
// container, the networks of the host decide.
func ours(at netip.Addr) bool { return at.IsLoopback() || at.IsPrivate() || at.IsUnspecified() }
