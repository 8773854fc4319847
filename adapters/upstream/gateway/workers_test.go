package gateway_test

import (
	"regexp"
	"strings"
	"testing"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Two workers of one session in Germany, at every seller: {token} is what names the exit.
func TestTwoWorkersOfEachSeller(t *testing.T) {
	t.Parallel()
	const pw = "password321"
	for profile, want := range map[string]struct{ user, password, strict string }{
		"brightdata":   {"brd-customer-hl1-zone-z1-country-de-session-{token}", pw, "brd-customer-hl1-zone-z1-country-de-session-{token}-const"},
		"oxylabs":      {"customer-USERNAME-cc-DE-sessid-{token}-sesstime-1440", pw, "customer-USERNAME-cc-DE-sessid_oneip-{token}-sesstime-1440"},
		"decodo":       {"user-proxyuser-country-de-session-{token}-sessionduration-1440", pw, ""},
		"dataimpulse":  {"login__cr.de;sessid.{token};sessttl.120", pw, ""},
		"soax":         {"package-12345-country-de-sessionid-{token}-sessionlength-86400", pw, ""},
		"anyip":        {"user_ID,type_residential,country_DE,session_{token},sesstime_10080", pw, "user_ID,type_residential,country_DE,session_{token},sessreplace_false,sesstime_10080"},
		"nodemaven":    {"login-country-de-sid-{token}-ttl-24h", pw, ""},
		"geonode":      {"geonode_x-type-residential-country-de-session-{token}-lifetime-1440", pw, ""},
		"webshare":     {"myuser-de-{token}", pw, ""},
		"proxyseller":  {"xxx_c_DE_s_{token}_ttl_3600s", pw, ""},
		"proxies.sx":   {"psx_acme-any-de-sid-{token}-rot-sticky-ttl-2592000", "pak_" + pw, "psx_acme-any-de-sid-{token}-rot-hard-ttl-2592000"},
		"iproyal":      {"username123", pw + "_country-de_session-{token}_lifetime-7d", ""},
		"evomi":        {"testuser", pw + "_country-DE_session-{token}_lifetime-120", "password321_country-DE_hardsession-{token}"},
		"packetstream": {"someone", pw + "_country-Germany_session-{token}", ""},
		"rayobyte":     {"someone_example_com", pw + "-country-DE-session-{token}", ""},
		"thordata":     {"td-customer-USERNAME-country-de-sessid-{token}-sesstime-90", pw, ""},
		"custom":       {"customer-USERNAME-cc-DE-sessid-{token}-sesstime-30", pw, ""},
	} {
		p := openGateway(t, gatewaySpec(profile, nil))
		target := procurement.Target{Location: session.Location{Country: "DE"}}
		var names []string
		for id := range int64(2) {
			target.Token, target.Strict = procurement.WorkerToken("sess_0123456789abcdefghij", id+1, 0), false
			e, err := p.Endpoint(procurement.Access{}, target)
			if err != nil {
				t.Fatalf("%s: %v", profile, err)
			}
			for _, c := range [][2]string{{e.User, want.user}, {e.Password, want.password}} {
				form := strings.ReplaceAll(regexp.QuoteMeta(c[1]), `\{token\}`, "("+target.Token+"|[0-9]+)")
				if !regexp.MustCompile("^" + form + "$").MatchString(c[0]) {
					t.Errorf("%s: %s, want %s with %s", profile, c[0], c[1], target.Token)
				}
			}
			names = append(names, e.User+":"+e.Password)
			target.Strict = true
			e, err = p.Endpoint(procurement.Access{}, target)
			if got := strings.ReplaceAll(e.User+e.Password, target.Token, "{token}"); want.strict == "" {
				if procurement.ClassOf(err) != procurement.Invalid {
					t.Errorf("%s: a strict worker is promised what the seller does not keep: %v", profile, err)
				}
			} else if err != nil || !strings.Contains(got, want.strict) {
				t.Errorf("%s: strict: %s, %v", profile, got, err)
			}
		}
		if names[0] == names[1] {
			t.Errorf("%s: two workers are %s", profile, names[0])
		}
	}
	if tokens := procurement.WorkerToken("sess_0123456789abcdefghij", 1, 0) + procurement.WorkerToken("sess_0123456789abcdefghij", 1, 1); tokens[:8] == tokens[8:] {
		t.Error("a worker that moved has the token that it had")
	}
	if len(gateway.Profiles()) != 17 {
		t.Errorf("%d profiles, 17 are tested", len(gateway.Profiles()))
	}
}
