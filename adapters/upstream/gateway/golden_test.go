package gateway_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// gatewayOptions are the options that each profile requires.
var gatewayOptions = map[string]map[string]string{
	"brightdata":   {"username": "hl1", "zone": "z1"},
	"oxylabs":      {"username": "USERNAME"},
	"decodo":       {"username": "proxyuser"},
	"dataimpulse":  {"username": "login"},
	"soax":         {"package": "12345"},
	"anyip":        {"username": "user_ID"},
	"nodemaven":    {"username": "login"},
	"geonode":      {"username": "geonode_x"},
	"webshare":     {"username": "myuser"},
	"proxyseller":  {"username": "xxx"},
	"proxies.sx":   {"username": "psx_acme"},
	"iproyal":      {"username": "username123"},
	"evomi":        {"username": "testuser"},
	"packetstream": {"username": "someone"},
	"rayobyte":     {"username": "someone_example_com"},
	"thordata":     {"username": "USERNAME"},
	"custom": {"username": "USERNAME", "host": "gate.example.com", "http_port": "7777", "socks5_port": "1080",
		"user_template":     "customer-{username}[-cc-{country}][-st-{state}][-city-{city}][-asn-{asn}][-sessid-{token}-sesstime-{ttl}]",
		"password_template": "{password}", "ttl_unit": "m", "ttl_min": "1", "ttl_max": "30", "country_case": "upper", "city_gap": "_"},
}

// gatewaySpec returns the spec of a gateway with the options in more.
func gatewaySpec(profile string, more map[string]string) upstream.Spec {
	s := upstream.Spec{Name: "gw", Kind: "gateway", Options: map[string]string{"profile": profile},
		Secrets: map[string]string{"password": "password321"}, Locations: map[string]string{}}
	if profile == "proxies.sx" {
		s.Secrets["password"] = "pak_password321"
	}
	for _, m := range []map[string]string{gatewayOptions[profile], more} {
		for k, v := range m {
			s.Options[k] = v
		}
	}
	return s
}

func openGateway(t testing.TB, s upstream.Spec) ports.Dynamic {
	t.Helper()
	p, err := upstream.New(s, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.Options["profile"], err)
	}
	return p.(ports.Dynamic)
}

// The user names and passwords are those of the sellers' documentation, except for
// session tokens of another length.
func TestCredentialsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	const pw = "password321"
	at := func(country, city string) session.Location { return session.Location{Country: country, City: city} }
	for _, c := range []struct {
		profile        string
		more           map[string]string
		place          session.Location
		token          string
		ttl            time.Duration
		user, password string
	}{
		{"brightdata", nil, at("", ""), "", 0, "brd-customer-hl1-zone-z1", pw},
		{"brightdata", nil, at("US", ""), "", 0, "brd-customer-hl1-zone-z1-country-us", pw},
		{"brightdata", nil, at("US", "San Francisco"), "", 0, "brd-customer-hl1-zone-z1-country-us-city-sanfrancisco", pw},
		{"brightdata", map[string]string{"network": "isp"}, at("US", ""), "abcd1234", 0, "brd-customer-hl1-zone-z1-country-us-session-abcd1234", pw},

		{"oxylabs", nil, at("", ""), "", 0, "customer-USERNAME", pw},
		{"oxylabs", nil, at("us", "los_angeles"), "", 0, "customer-USERNAME-cc-US-city-los_angeles", pw},
		{"oxylabs", nil, at("DE", "Munich"), "", 0, "customer-USERNAME-cc-DE-city-munich", pw},
		{"oxylabs", nil, at("US", ""), "abcde123", 5 * time.Minute, "customer-USERNAME-cc-US-sessid-abcde123-sesstime-5", pw},
		{"oxylabs", nil, at("DE", ""), "abcd1234", 0, "customer-USERNAME-cc-DE-sessid-abcd1234-sesstime-1440", pw},

		{"decodo", nil, at("US", "New York"), "account1", 30 * time.Minute, "user-proxyuser-country-us-city-new_york-session-account1-sessionduration-30", pw},
		{"decodo", nil, at("", ""), "account1", 0, "user-proxyuser-session-account1-sessionduration-1440", pw},

		{"dataimpulse", nil, at("", ""), "", 0, "login", pw},
		{"dataimpulse", nil, at("DE", "berlin"), "", 0, "login__cr.de;city.berlin", pw},
		{"dataimpulse", nil, at("FR", ""), "abcd1234", time.Hour, "login__cr.fr;sessid.abcd1234;sessttl.60", pw},
		{"dataimpulse", nil, at("", ""), "abcd1234", 0, "login__sessid.abcd1234;sessttl.120", pw},

		{"soax", nil, at("US", "New York"), "", 0, "package-12345-country-us-city-new+york", pw},
		{"soax", nil, at("US", ""), "rand1234", 90 * time.Second, "package-12345-country-us-sessionid-rand1234-sessionlength-90", pw},
		{"soax", nil, at("", ""), "rand1234", 0, "package-12345-sessionid-rand1234-sessionlength-86400", pw},

		{"anyip", nil, at("FR", ""), "abcd1234", 30 * time.Minute, "user_ID,type_residential,country_FR,session_abcd1234,sesstime_30", pw},
		{"anyip", map[string]string{"network": "mobile"}, at("", ""), "abcd1234", 0, "user_ID,type_mobile,session_abcd1234,sesstime_10080", pw},

		{"nodemaven", nil, at("US", ""), "abcd1234", 10 * time.Minute, "login-country-us-sid-abcd1234-ttl-10m", pw},
		{"nodemaven", nil, at("", ""), "abcd1234", 0, "login-sid-abcd1234-ttl-24h", pw},
		{"nodemaven", nil, at("", ""), "abcd1234", time.Hour, "login-sid-abcd1234-ttl-1h", pw},

		{"geonode", nil, at("US", ""), "abcd1234", 0, "geonode_x-type-residential-country-us-session-abcd1234-lifetime-1440", pw},
		{"geonode", nil, at("", ""), "abcd1234", 5 * time.Minute, "geonode_x-type-residential-session-abcd1234-lifetime-5", pw},
		{"geonode", nil, at("", ""), "", 0, "geonode_x-type-residential", pw},

		{"webshare", nil, at("US", ""), "", 0, "myuser-us-rotate", pw},
		{"webshare", nil, at("", ""), "", 0, "myuser-rotate", pw},
		{"webshare", nil, at("US", "Los Angeles"), "abcd1234", 0, "myuser-us-city_los_angeles-93159061", pw},
		{"webshare", map[string]string{"numbers": "10"}, at("US", ""), "abcd1234", 0, "myuser-us-6", pw},

		{"proxyseller", nil, at("", ""), "", 0, "xxx", pw},
		{"proxyseller", nil, at("FR", "paris"), "", 0, "xxx_c_FR_city_Paris", pw},
		{"proxyseller", nil, at("US", "New York"), "abcd1234", 30 * time.Second, "xxx_c_US_city_New-York_s_abcd1234_ttl_30s", pw},
		{"proxyseller", nil, at("US", "new-york"), "", 0, "xxx_c_US_city_New-York", pw},

		{"proxies.sx", nil, at("", ""), "", 0, "psx_acme-any-any", "pak_" + pw},
		{"proxies.sx", map[string]string{"network": "peer"}, at("US", ""), "abcd1234", 12 * time.Hour, "psx_acme-peer-us-sid-abcd1234-rot-sticky-ttl-43200", "pak_" + pw},
		{"proxies.sx", map[string]string{"network": "mbl"}, at("GB", ""), "abcd1234", 0, "psx_acme-mbl-gb-sid-abcd1234-rot-sticky-ttl-2592000", "pak_" + pw},

		{"iproyal", nil, at("BR", ""), "sgn34f3e", 10 * time.Minute, "username123", "password321_country-br_session-sgn34f3e_lifetime-10m"},
		{"iproyal", nil, at("PE", "lima"), "", 0, "username123", "password321_country-pe_city-lima"},
		{"iproyal", nil, at("", ""), "sgn34f3e", 30 * time.Second, "username123", "password321_session-sgn34f3e_lifetime-30s"},
		{"iproyal", nil, at("", ""), "sgn34f3e", 90 * time.Minute, "username123", "password321_session-sgn34f3e_lifetime-90m"},
		{"iproyal", nil, at("", ""), "sgn34f3e", 0, "username123", "password321_session-sgn34f3e_lifetime-7d"},

		{"evomi", nil, at("US", ""), "", 0, "testuser", "password321_country-US"},
		{"evomi", nil, at("US", "New York"), "", 0, "testuser", "password321_country-US_city-new.york"},
		{"evomi", nil, at("DE", "berlin"), "abcd1234", 30 * time.Minute, "testuser", "password321_country-DE_city-berlin_session-abcd1234_lifetime-30"},
		{"evomi", nil, at("", ""), "abcd1234", 0, "testuser", "password321_session-abcd1234_lifetime-120"},

		{"packetstream", nil, at("US", ""), "abcd1234", 0, "someone", "password321_country-UnitedStates_session-abcd1234"},
		{"packetstream", nil, at("DE", ""), "", 0, "someone", "password321_country-Germany"},

		{"thordata", nil, at("AU", "melbourne"), "au123456", 10 * time.Minute, "td-customer-USERNAME-country-au-city-melbourne-sessid-au123456-sesstime-10", pw},
		{"thordata", map[string]string{"state": "AU/victoria"}, at("AU", "melbourne"), "au123456", 0, "td-customer-USERNAME-country-au-state-victoria-city-melbourne-sessid-au123456-sesstime-90", pw},
		{"thordata", map[string]string{"asn": "1221"}, at("AU", ""), "", 0, "td-customer-USERNAME-country-au-asn-AS1221", pw},

		{"brightdata", map[string]string{"state": "US/ny"}, at("US", ""), "abcd1234", 0, "brd-customer-hl1-zone-z1-country-us-state-ny-session-abcd1234", pw},
		{"brightdata", map[string]string{"asn": "56386"}, at("US", ""), "", 0, "brd-customer-hl1-zone-z1-country-us-asn-56386", pw},
		{"oxylabs", map[string]string{"state": "US/us_california"}, at("US", ""), "abcd1234", 0, "customer-USERNAME-cc-US-st-us_california-sessid-abcd1234-sesstime-1440", pw},
		{"oxylabs", map[string]string{"asn": "21928"}, at("", ""), "abcde123", 10 * time.Minute, "customer-USERNAME-ASN-21928-sessid-abcde123-sesstime-10", pw},
		{"oxylabs", map[string]string{"strict": "true"}, at("DE", ""), "abcd1234", 10 * time.Minute, "customer-USERNAME-cc-DE-sessid_oneip-abcd1234-sesstime-10", pw},
		{"decodo", map[string]string{"state": "US/us_california"}, at("US", ""), "", 0, "user-proxyuser-country-us-state-us_california", pw},
		{"dataimpulse", map[string]string{"state": "US/texas", "asn": "7922"}, at("US", ""), "", 0, "login__cr.us;state.texas;asn.7922", pw},
		{"soax", map[string]string{"state": "US/california"}, at("US", "Los Angeles"), "", 0, "package-12345-country-us-region-california-city-los+angeles", pw},
		{"anyip", map[string]string{"state": "FR/bretagne", "strict": "true"}, at("FR", ""), "abcd1234", time.Hour, "user_ID,type_residential,country_FR,region_bretagne,session_abcd1234,sessreplace_false,sesstime_60", pw},
		{"nodemaven", map[string]string{"state": "US/texas"}, at("US", ""), "abcd1234", time.Hour, "login-country-us-region-texas-sid-abcd1234-ttl-1h", pw},
		{"proxyseller", map[string]string{"state": "US/12", "asn": "7922"}, at("US", ""), "", 0, "xxx_c_US_sd_12_asn_7922", pw},
		{"proxies.sx", map[string]string{"asn": "7922", "strict": "true"}, at("US", ""), "abcd1234", time.Hour, "psx_acme-any-us-asn-7922-sid-abcd1234-rot-hard-ttl-3600", "pak_" + pw},
		{"iproyal", map[string]string{"state": "US/iowa"}, at("US", ""), "", 0, "username123", "password321_country-us_state-iowa"},
		{"evomi", map[string]string{"state": "US/iowa", "strict": "true"}, at("US", ""), "abcd1234", 0, "testuser", "password321_country-US_region-iowa_hardsession-abcd1234"},

		{"custom", nil, at("", ""), "abcd1234", 0, "customer-USERNAME-sessid-abcd1234-sesstime-30", pw},
		{"custom", map[string]string{"state": "US/us_iowa", "asn": "7922"}, at("US", "Des Moines"), "abcd1234", 5 * time.Minute,
			"customer-USERNAME-cc-US-st-us_iowa-city-des_moines-asn-7922-sessid-abcd1234-sesstime-5", pw},
		{"custom", map[string]string{"user_template": "{username}", "password_template": "{password}[_c-{country}]_s-{token}", "ttl_unit": "", "ttl_min": "", "ttl_max": "",
			"country_case": "lower", "token_alphabet": "digits", "token_length": "10"}, at("DE", ""), "abcd1234", 0, "USERNAME", "password321_c-de_s-6081263254"},

		{"rayobyte", nil, at("ES", "madrid"), "abcd1234", 0, "someone_example_com", "password321-country-ES-city-madrid-session-abcd1234"},
	} {
		e, err := openGateway(t, gatewaySpec(c.profile, c.more)).Endpoint(procurement.Access{}, procurement.Target{Location: c.place, Token: c.token, TTL: c.ttl})
		if err != nil || e.User != c.user || e.Password != c.password || !e.Trusted {
			t.Errorf("%s %v %q %v:\ngot  %s : %s, %v\nwant %s : %s", c.profile, c.place, c.token, c.ttl, e.User, e.Password, err, c.user, c.password)
		}
	}
}

func TestHostsAndPortsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]string{
		"brightdata":  "http brd.superproxy.io 44445, socks5 brd.superproxy.io 22228",
		"oxylabs":     "http pr.oxylabs.io 7777, socks5 pr.oxylabs.io 7777",
		"decodo":      "http gate.decodo.com 7000, socks5 gate.decodo.com 7000",
		"dataimpulse": "http gw.dataimpulse.com 823, socks5 gw.dataimpulse.com 824",
		"soax":        "http proxy.soax.com 5000, http proxy.soax.com 5000",
		"anyip":       "http portal.anyip.io 1080, socks5 portal.anyip.io 1080",
		"nodemaven":   "http gate.nodemaven.com 8080, socks5 gate.nodemaven.com 1080",
		"geonode":     "http proxy.geonode.io 10000, socks5 proxy.geonode.io 12000",
		"webshare":    "http p.webshare.io 80, http p.webshare.io 80",
		"proxyseller": "http res.proxy-seller.com 10000, socks5 res.proxy-seller.com 10000",
		"proxies.sx":  "http gw.proxies.sx 7000, socks5 gw.proxies.sx 7001",
		"iproyal":     "http geo.iproyal.com 12321, socks5 geo.iproyal.com 12321",
		"evomi":       "http rp.evomi.com 1000, socks5 rp.evomi.com 1002",
		"thordata":    "http t.pr.thordata.net 9999, http t.pr.thordata.net 9999",
		"custom":      "http gate.example.com 7777, socks5 gate.example.com 1080",

		"packetstream": "http proxy.packetstream.io 31112, http proxy.packetstream.io 31112",
		"rayobyte":     "http la.residential.rayobyte.com 8000, socks5 la.residential.rayobyte.com 1080",
	} {
		p := openGateway(t, gatewaySpec(profile, nil))
		if got := reached(t, p, session.HTTP) + ", " + reached(t, p, session.SOCKS5); got != want {
			t.Errorf("%s: %s, want %s", profile, got, want)
		}
	}
	if len(gateway.Profiles()) != len(gatewayOptions) {
		t.Errorf("%d profiles, %d are tested", len(gateway.Profiles()), len(gatewayOptions))
	}
	own := openGateway(t, gatewaySpec("soax", map[string]string{"host": "127.0.0.1", "port": "8", "protocol": "socks5"}))
	if got := reached(t, own, ""); got != "socks5 127.0.0.1 8" {
		t.Errorf("the operator's host: %s", got)
	}
	if got := reached(t, own, session.HTTP); got != "http 127.0.0.1 8" {
		t.Errorf("the operator's host, by http: %s", got)
	}
}

func reached(t *testing.T, p ports.Dynamic, protocol session.Protocol) string {
	t.Helper()
	e, err := p.Endpoint(procurement.Access{}, procurement.Target{Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{string(e.Protocol), e.Host, portText(e.Port)}, " ")
}
