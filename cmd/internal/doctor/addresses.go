package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"agentproxy/adapters/certificate"
	"agentproxy/adapters/configfile"
)

// addresses checks where agents reach the service, and whether others on the network can read what
// they send.
func (f *Findings) addresses(s configfile.Settings) {
	u, err := url.Parse(s.PublicURL)
	if err != nil {
		u = &url.URL{}
	}
	switch host := u.Hostname(); {
	case isLocal(host):
		f.add(Error, "public_url", "The public address of the API is "+s.PublicURL+".", "Agents on other hosts cannot "+
			"reach it, and answers and documents name it.",
			"Set AGENTPROXY_PUBLIC_URL to the https address that agents use.")
	case u.Scheme != "https":
		f.add(Error, "public_url", "The public address of the API is "+s.PublicURL+", without TLS.",
			"Keys, secrets and proxy passwords cross the network in clear.",
			"Set AGENTPROXY_ACME_HOSTS, or AGENTPROXY_TLS_CERT "+
				"and AGENTPROXY_TLS_KEY, or put a reverse proxy with TLS in front of the API; and set AGENTPROXY_PUBLIC_URL to "+
				"the https address.")
	default:
		f.ok("public_url", "The public address of the API is %s.", s.PublicURL)
	}
	if isLocal(s.PublicHost) {
		f.add(Error, "public_gateway", "The public address of the gateway is "+s.PublicHost+".",
			"full_url names it, and agents on other hosts cannot reach it.", "Set AGENTPROXY_PUBLIC_GATEWAY to the host:port "+
				"that agents use.")
	} else {
		f.ok("public_gateway", "The public address of the gateway is %s.",
			net.JoinHostPort(s.PublicHost, fmt.Sprint(s.PublicPort)))
	}
	if at := listens(s.HTTPAddr); !s.TLS.API && !at.IsLoopback() && !at.IsPrivate() {
		f.add(Warning, "api_listener", "The API listens on "+s.HTTPAddr+", with HTTP without TLS.",
			"A client that finds the port sends keys in clear, past the reverse proxy.",
			"Listen on a loopback or private address, or let the firewall pass the reverse proxy alone.")
	} else {
		f.ok("api_listener", "The API listens on %s.", s.HTTPAddr)
	}
}

// certificate checks whether credentials and names of targets cross the network in clear on their way to the gateway.
func (f *Findings) certificate(s configfile.Settings) {
	at := listens(s.GatewayAddr)
	if s.TLS.Certificate() {
		f.ok("gateway_tls", "The gateway has a certificate.")
		f.names(s)
		return
	}
	if !at.IsLoopback() && !at.IsPrivate() {
		f.add(Error, "gateway_tls", "The gateway listens on "+s.GatewayAddr+" without a certificate.",
			"Passwords of sessions and the names of targets cross the network in clear.", "Set AGENTPROXY_ACME_HOSTS to the "+
				"name that agents reach the gateway by, or AGENTPROXY_TLS_CERT and AGENTPROXY_TLS_KEY.")
	}
}

// names checks whether the certificate has the names by which agents reach what presents it.
func (f *Findings) names(s configfile.Settings) {
	names := []string{s.PublicHost}
	if u, err := url.Parse(s.PublicURL); err == nil && s.TLS.API && !slices.Contains(names, u.Hostname()) {
		names = append(names, u.Hostname())
	}
	names = slices.DeleteFunc(names, isLocal) // another finding
	var missing []string
	var err error
	if s.TLS.CertFile != "" {
		missing, err = certificate.Uncovered(s.TLS.CertFile, s.TLS.KeyFile, names)
	} else {
		missing = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.Contains(s.TLS.Hosts, strings.ToLower(name))
		})
	}
	const why = "Clients that verify it, such as apx forward and those with an https_url, refuse to connect."
	switch {
	case err != nil:
		f.add(Error, "certificate_names", "The certificate cannot be read: "+err.Error()+".", why,
			"Mend the files of AGENTPROXY_TLS_CERT and AGENTPROXY_TLS_KEY.")
	case len(missing) > 0:
		f.add(Error, "certificate_names", "The certificate is not for "+strings.Join(missing, ", ")+".", why,
			"Have a certificate with these names (with AGENTPROXY_ACME_HOSTS: add them there), or set "+
				"AGENTPROXY_PUBLIC_GATEWAY and AGENTPROXY_PUBLIC_URL to names that it has.")
	default:
		f.ok("certificate_names", "The certificate is for %s.", strings.Join(names, ", "))
	}
}

// exits checks whether there are addresses to sell.
func (f *Findings) exits(s configfile.Settings) {
	switch {
	case s.SellsNoExits():
		f.add(Error, "exits", "No address of this host is declared as an exit.", "The embedded products are not sold: a "+
			"target would see the host's one address, whichever exit an agent buys.",
			"Set AGENTPROXY_EXITS to the host's public addresses with their places, such as 203.0.113.7@DE/berlin, or "+
				"embedded: false in the file if you sell other sellers' exits alone.")
	case !s.Dev && !s.Catalog.WithoutEmbedded:
		f.ok("exits", "%d addresses of this host are declared as exits.", len(s.Exits))
	}
}

// contact checks whether complaints arrive.
func (f *Findings) contact(s configfile.Settings) {
	if s.AbuseContact == "" {
		f.add(Warning, "abuse_contact", "No contact for abuse and vulnerabilities is published.", "People who are harmed "+
			"through an exit turn to its network instead, which may close it.",
			"Set AGENTPROXY_ABUSE_CONTACT to an address that is read; /.well-known/security.txt shows it.")
		return
	}
	f.ok("abuse_contact", "Complaints go to %s.", s.AbuseContact)
}

// admin checks who can read what is sent to the operator's listener, which has a credential and no TLS.
func (f *Findings) admin(s configfile.Settings) {
	const why = "It has no TLS: who reads the network on the way has the operator's credential."
	switch at := listens(s.AdminAddr); {
	case at.IsLoopback() || at.IsPrivate():
		f.ok("admin_listener", "The admin pages listen on %s.", s.AdminAddr)
	case at.IsUnspecified():
		f.add(Warning, "admin_listener", "The admin pages listen on all addresses ("+s.AdminAddr+").", why,
			"Set AGENTPROXY_ADMIN_ADDR to a loopback or private address; in a container, do not publish the port.")
	default:
		f.add(Warning, "admin_listener", "The admin pages listen on the public address "+s.AdminAddr+".", why,
			"Set AGENTPROXY_ADMIN_ADDR to a loopback or private address, and reach it by SSH or a reverse proxy with TLS.")
	}
	if at := listens(s.AdminAddr); s.MetricsOpen && !at.IsLoopback() && !at.IsPrivate() {
		f.add(Warning, "open_metrics", "The metrics need no credential, and the admin pages listen on "+s.AdminAddr+".",
			"They have the number of accounts, sessions and orders, for everybody who reaches the port.",
			"Let the firewall pass Prometheus alone, or unset AGENTPROXY_METRICS_OPEN and give Prometheus a credential.")
	}
}

// widest are the prefix lengths below which a network has others than load balancers.
const widest4, widest6 = 24, 64

// proxies checks which reverse proxies are trusted to name a client's address.
func (f *Findings) proxies(s configfile.Settings) {
	wide := false
	for _, p := range s.TrustedProxies {
		if p.Bits() < widest4 || p.Addr().Is6() && p.Bits() < widest6 {
			wide = true
			f.add(Error, "trusted_proxies", "The trusted proxies contain "+p.String()+".",
				"A stranger in that network chooses his own client address, so that every limit per address is void.",
				"List the addresses of your own reverse proxies alone in AGENTPROXY_TRUSTED_PROXIES.")
		}
	}
	u, err := url.Parse(s.PublicURL)
	if err == nil && u.Scheme == "https" && len(s.TrustedProxies) == 0 && !s.TLS.API {
		f.add(Error, "trusted_proxies", "The API has an https address and no trusted proxy.",
			"Every client seems to come from the reverse proxy: one of them uses up what all together may do, and no address "+
				"is recorded.",
			"Set AGENTPROXY_TRUSTED_PROXIES to the address of the reverse proxy.")
	} else if !wide {
		f.ok("trusted_proxies", "%d networks are trusted to forward a client's address.", len(s.TrustedProxies))
	}
}

// metadata are the addresses at which clouds hand out credentials of a host.
var metadata = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200")}

// networks checks which networks agents reach besides public addresses.
func (f *Findings) networks(s configfile.Settings) {
	before := len(*f)
	for _, list := range []struct {
		variable, who string
		networks      []netip.Prefix
	}{
		{"AGENTPROXY_ALLOW_NETWORKS", "Agents reach them through the gateway", s.AllowNetworks},
		{"AGENTPROXY_WEBHOOK_ALLOW_NETWORKS", "Agents choose the addresses of webhooks", s.WebhookAllow},
	} {
		for _, p := range list.networks {
			level, what := Warning, list.variable+" opens "+p.String()+"."
			if p.Overlaps(netip.MustParsePrefix("127.0.0.0/8")) || p.Contains(netip.IPv6Loopback()) {
				level, what = Error, list.variable+" opens addresses of this host itself ("+p.String()+")."
			}
			for _, m := range metadata {
				if p.Contains(m) {
					level, what = Error, list.variable+" opens the cloud's metadata service ("+p.String()+")."
				}
			}
			f.add(level, "allowed_networks", what, list.who+", with whatever trusts this host there.",
				"Remove it unless every agent may reach it.")
		}
	}
	if len(*f) == before {
		f.ok("allowed_networks", "No network is opened to agents beside public addresses.")
	}
}

// listens returns the IP address of a listener, which configfile has checked.
func listens(text string) netip.Addr {
	at, _ := configfile.ParseListener(text)
	return at.Addr().Unmap()
}

// isLocal reports whether a host is known on this host alone.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil && (ip.Unmap().IsLoopback() || ip.IsUnspecified())
}
