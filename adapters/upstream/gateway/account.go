package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain/country"
	"agentproxy/domain/session"
)

// Login is an account at a gateway as the operator writes it. Empty fields have the
// profile's defaults.
type Login struct {
	Username string `option:"username" help:"the user name of the account (brightdata: the customer id)"`
	Password string `secret:"password" required:"true" help:"the password of the account at the gateway"`
	Host     string `option:"host" help:"another host of the gateway than the seller's usual one"`
	Port     string `option:"port" help:"another port; it is taken for both protocols"`
	Protocol string `option:"protocol" help:"http or socks5, for sessions without a protocol"`
	Zone     string `option:"zone" help:"brightdata: the zone"`
	Package  string `option:"package" help:"soax: the number of the package"`
	Network  string `option:"network" help:"brightdata: residential, mobile, isp, datacenter; anyip: residential, mobile; webshare: residential, datacenter; proxies.sx: any, mbl, peer, best"`
	Numbers  string `option:"numbers" help:"webshare: how many proxies the plan lists"`
	State    string `option:"state" help:"a country and the seller's spelling of its state, such as US/california: exits there alone"`
	ASN      string `option:"asn" help:"the number of a network, such as 7922: exits in it alone"`
	TLS      bool   `option:"tls" help:"true: over TLS, with a certificate that is valid for the host (oxylabs and custom)"`
	Strict   bool   `option:"strict" help:"true: a session fails where its exit is lost, rather than get another one"`
	// Places are the seller's spellings, by country ("US") or country and city
	// ("US/newyork").
	Places map[string]string
}

// Account is a checked Login.
type Account struct {
	// Options are the values of the placeholders of the profile's templates.
	Options  map[string]string
	Password string
	Places   map[string]string
	Host     string           // empty: that of the profile
	Port     uint16           // 0: that of the profile
	Protocol session.Protocol // for targets without one; empty: http
	tls      bool
	narrowing
	numbers uint64 // the count of numeric tokens; 0: that of the profile
}

var (
	hostForm    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	optionForm  = regexp.MustCompile(`^[A-Za-z0-9_.@+-]+$`)
	visibleForm = regexp.MustCompile(`^[!-~]+$`)
)

// ErrHost and ErrPort are the faults of the settings host and port.
var (
	ErrHost = errors.New("options.host must be a name or an address")
	ErrPort = errors.New("options.port must be 1 to 65535")
)

// ValidHost reports whether text is a host name or an IPv4 address.
func ValidHost(text string) bool { return hostForm.MatchString(text) }

// ParsePort returns the port that a setting names, or 0 for an empty one. It fails
// with ErrPort.
func ParsePort(text string) (uint16, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, ErrPort
	}
	return uint16(n), nil
}

// Account checks a login. Its error names every invalid setting.
func (p Profile) Account(in Login) (Account, error) {
	a := Account{Password: in.Password, Places: maps.Clone(in.Places), Host: in.Host,
		Protocol: session.Protocol(in.Protocol), Options: map[string]string{"username": in.Username, "zone": in.Zone,
			"package": in.Package, "network": in.Network, "numbers": in.Numbers}}
	if len(p.networks) > 0 && a.Options["network"] == "" {
		a.Options["network"] = p.networks[0].name
	}
	faults := p.checkOptions(a.Options)
	if in.Numbers != "" {
		n, err := strconv.ParseUint(in.Numbers, 10, 32)
		if err != nil || n == 0 || n > p.number.max-p.number.min+1 {
			faults = append(faults, fmt.Errorf("options.numbers must be 1 to %d", p.number.max-p.number.min+1))
		}
		a.numbers = n
	}
	var err error
	if a.narrowing, err = p.narrowing(in); err != nil {
		faults = append(faults, err)
	}
	if a.Port, err = ParsePort(in.Port); err != nil {
		faults = append(faults, err)
	}
	if _, err := netip.ParseAddr(a.Host); a.Host != "" && err != nil && !ValidHost(a.Host) {
		faults = append(faults, ErrHost)
	}
	if a.Protocol != "" && a.Protocol != session.HTTP && a.Protocol != session.SOCKS5 {
		faults = append(faults, errors.New("options.protocol must be http or socks5"))
	}
	switch {
	case in.TLS && !p.tls:
		faults = append(faults, errors.New("options.tls: the seller documents no way to its proxies over TLS"))
	case in.TLS && a.Protocol == session.SOCKS5:
		faults = append(faults, errors.New("options.tls is for HTTP, not for socks5"))
	}
	a.tls = in.TLS
	if a.Password != "" && !visibleForm.MatchString(a.Password) {
		faults = append(faults, errors.New("secrets.password must be of visible ASCII characters"))
	}
	return a, errors.Join(append(faults, p.CheckPlaces(in.Places)...)...)
}

// checkOptions returns the faults of the values for the profile's templates.
func (p Profile) checkOptions(options map[string]string) (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	used := p.options()
	if p.custom != nil {
		used["username"] = options["username"] != "" // its templates are checked with it
	}
	for _, name := range []string{"username", "zone", "package", "network", "numbers"} {
		value := options[name]
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
	if n := options["network"]; used["network"] && !slices.ContainsFunc(p.networks,
		func(k exitNetwork) bool { return k.name == n }) {
		fault("options.network does not exist at the gateway")
	}
	return faults
}

// CheckPlaces returns the faults of the operator's spellings.
func (p Profile) CheckPlaces(places map[string]string) (faults []error) {
	for _, place := range slices.Sorted(maps.Keys(places)) {
		code, _, _ := strings.Cut(place, "/")
		if !country.Known(code) {
			faults = append(faults, fmt.Errorf("locations: %q does not begin with a country code", place))
		}
		if text := places[place]; !spellingForm.MatchString(text) || strings.ContainsAny(text, p.separators) {
			faults = append(faults, fmt.Errorf("locations: %q at %q cannot be written in the gateway's grammar", text, place))
		}
	}
	return faults
}
