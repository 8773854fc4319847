package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

var gatewayKind = Kind{
	Secrets: []Field{
		{"password", true, "the password of the account at the gateway"},
	},
	Options: []Field{
		{"profile", true, "the gateway: " + strings.Join(Profiles(), ", ")},
		{"username", false, "the user name of the account (brightdata: the customer id)"},
		{"host", false, "another host of the gateway than the seller's usual one"},
		{"port", false, "another port; it is taken for both protocols"},
		{"protocol", false, "http or socks5, where a session does not tell"},
		{"zone", false, "brightdata: the zone"},
		{"package", false, "soax: the number of the package"},
		{"network", false, "brightdata: residential, mobile, isp, datacenter; netnut: res, stc, mob, dc; " +
			"webshare: residential, datacenter; proxies.sx: any, mbl, peer, best"},
		{"numbers", false, "webshare: how many proxies the plan lists"},
	},
	make: newGateway,
}

// gateway sells traffic of one account at a gateway whose user name or password
// tells the exit. Nothing is ordered: an order is a session's name, and its
// credential is the account's, which is in the configuration alone. So it is
// neither stored with orders nor given to agents, and only our own meter caps it.
type gateway struct {
	name    string
	profile profile
	account gatewayAccount
}

var _ ports.Dynamic = (*gateway)(nil)

func newGateway(s Spec, log *slog.Logger) (ports.Provider, error) {
	p, ok := profiles[s.Options["profile"]]
	if !ok {
		return nil, fmt.Errorf("options.profile must be one of %v, not %q", Profiles(), s.Options["profile"])
	}
	a, err := p.account(s)
	if err != nil {
		return nil, err
	}
	if s.BaseURL != "" {
		return nil, errors.New("a gateway has no API: options.host names it")
	}
	if p.unverified {
		log.Warn("the grammar of this gateway is unverified: check it with the seller", "provider", s.Name, "profile", s.Options["profile"])
	}
	return &gateway{name: s.Name, profile: p, account: a}, nil
}

// Name is the operator's.
func (g *gateway) Name() string { return g.name }

// Capabilities describes a provider that does no IO and is reached through the
// seller's proxies.
func (g *gateway) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{InProcess: true, ViaUpstream: true}
}

// Ready is true: nothing is called that could fail.
func (g *gateway) Ready() bool { return true }

// Offers lists none: the operator's catalogue says what is sold.
func (g *gateway) Offers(context.Context) ([]procurement.Offer, error) { return nil, nil }

// Balance is not told.
func (g *gateway) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote costs nothing: the seller counts traffic later. It is Invalid when the
// place cannot be asked for.
func (g *gateway) Quote(_ context.Context, in procurement.Intent) (procurement.Quote, error) {
	return procurement.Quote{Stock: procurement.StockUnknown}, g.check(in)
}

// Order names the session, if its place can be asked for.
func (g *gateway) Order(_ context.Context, in procurement.Intent) (procurement.Delivery, error) {
	if err := g.check(in); err != nil {
		return procurement.Delivery{}, err
	}
	return procurement.Delivery{Ref: in.SessionID, State: procurement.Live}, nil
}

func (g *gateway) check(in procurement.Intent) error {
	if in.Type == session.Static {
		return procurement.Refuse(procurement.Unsupported, "a gateway sells traffic, not addresses")
	}
	_, err := g.Endpoint(procurement.Access{}, procurement.Target{Location: in.Location})
	return err
}

// Find finds nothing: there is no list, and no order can be lost.
func (g *gateway) Find(context.Context, procurement.Intent) ([]procurement.Delivery, error) {
	return nil, nil
}

// Read repeats what Order said.
func (g *gateway) Read(_ context.Context, ref string) (procurement.Delivery, error) {
	return procurement.Delivery{Ref: ref, State: procurement.Live}, nil
}

// Cancel has nothing to give up.
func (g *gateway) Cancel(context.Context, string) error { return nil }

// Disable always fails with Unsupported: one account serves all sessions.
func (g *gateway) Disable(context.Context, string) error { return errShared }

// Usage always fails with Unsupported, as Disable does.
func (g *gateway) Usage(context.Context, string) (procurement.Usage, error) {
	return procurement.Usage{}, errShared
}

var errShared = procurement.Refuse(procurement.Unsupported, "the sessions of a gateway share one account")

// Endpoint writes the target into the account's credential. The Access, which is
// zero, is not looked at.
func (g *gateway) Endpoint(_ procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	return g.profile.endpoint(g.account, t)
}

// NewExit is the zero Exit: the next token is the next exit.
func (g *gateway) NewExit(procurement.Intent, session.Exit) (session.Exit, error) {
	return session.Exit{}, nil
}

var (
	hostForm    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	optionForm  = regexp.MustCompile(`^[A-Za-z0-9_.@+-]+$`)
	visibleForm = regexp.MustCompile(`^[!-~]+$`)
)

// account reads the operator's settings for a profile and names every fault.
func (p profile) account(s Spec) (gatewayAccount, error) {
	a := gatewayAccount{options: maps.Clone(s.Options), password: s.Secrets["password"], places: maps.Clone(s.Locations),
		host: s.Options["host"], protocol: session.Protocol(s.Options["protocol"])}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if len(p.networks) > 0 && a.options["network"] == "" {
		a.options["network"] = p.networks[0].name
	}
	used := p.options()
	for _, name := range []string{"username", "zone", "package", "network", "numbers"} {
		value := a.options[name]
		switch {
		case used[name] && value == "":
			fault("options.%s is missing: the profile needs it", name)
		case value == "":
		case !used[name] && !(name == "numbers" && p.number.max > 0):
			fault("options.%s means nothing to the profile", name)
		case !optionForm.MatchString(value), p.strictUser && strings.ContainsAny(value, p.separators):
			fault("options.%s holds a character that the gateway cannot take", name)
		}
	}
	if n := a.options["network"]; used["network"] && !slices.ContainsFunc(p.networks, func(k exitNetwork) bool { return k.name == n }) {
		fault("options.network does not exist at the gateway")
	}
	if text := a.options["numbers"]; text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 || n > p.number.max-p.number.min+1 {
			fault("options.numbers must be 1 to %d", p.number.max-p.number.min+1)
		}
		a.numbers = n
	}
	if text := s.Options["port"]; text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			fault("options.port must be 1 to 65535")
		}
		a.port = uint16(n)
	}
	if _, err := netip.ParseAddr(a.host); a.host != "" && err != nil && !hostForm.MatchString(a.host) {
		fault("options.host must be a name or an address")
	}
	if a.protocol != "" && a.protocol != session.HTTP && a.protocol != session.SOCKS5 {
		fault("options.protocol must be http or socks5")
	}
	if a.password != "" && !visibleForm.MatchString(a.password) {
		fault("secrets.password must be of visible ASCII characters")
	}
	return a, errors.Join(append(faults, p.checkPlaces(s.Locations)...)...)
}

// checkPlaces names the faults of the operator's spellings.
func (p profile) checkPlaces(places map[string]string) (faults []error) {
	own := func(c rune) bool { return strings.ContainsRune(p.separators, c) && !strings.ContainsRune(p.nested, c) }
	for _, place := range slices.Sorted(maps.Keys(places)) {
		code, _, _ := strings.Cut(place, "/")
		if _, ok := slices.BinarySearch(Countries, code); !ok {
			faults = append(faults, fmt.Errorf("locations: %q does not begin with a country code", place))
		}
		if text := places[place]; !spellingForm.MatchString(text) || strings.ContainsFunc(text, own) {
			faults = append(faults, fmt.Errorf("locations: %q at %q cannot be written in the gateway's grammar", text, place))
		}
	}
	return faults
}
