package upstreamproxy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/test/fake/upstreamproxy"
)

var profiles = []string{"brightdata", "oxylabs", "decodo", "dataimpulse", "soax", "anyip", "nodemaven", "geonode", "webshare", "proxyseller",
	"proxies.sx", "iproyal", "evomi", "packetstream", "rayobyte"}

func TestDocumentedCredentialsAreRead(t *testing.T) {
	t.Parallel()
	type wanted = upstreamproxy.Wanted
	for _, c := range []struct {
		profile, user, password string
		want                    wanted
	}{
		{"brightdata", "brd-customer-hl1-zone-z1-country-us-city-sanfrancisco", "pw", wanted{Account: "hl1", Zone: "z1", Country: "US", City: "sanfrancisco"}},
		{"oxylabs", "customer-USERNAME-cc-US-sessid-abcde12345", "pw", wanted{Account: "USERNAME", Country: "US", Session: "abcde12345", Keep: 10 * time.Minute}},
		{"decodo", "user-me-country-us-city-new_york-session-a1-sessionduration-30", "pw", wanted{Account: "me", Country: "US", City: "new_york", Session: "a1", Keep: 30 * time.Minute}},
		{"dataimpulse", "login__cr.au;sessid.123", "pw", wanted{Account: "login", Country: "AU", Session: "123", Keep: 30 * time.Minute}},
		{"soax", "package-123-country-us-sessionid-rand123456-sessionlength-90", "pw", wanted{Account: "123", Country: "US", Session: "rand123456", Keep: 90 * time.Second}},
		{"anyip", "user_ID,type_residential,country_FR,session_a1", "pw", wanted{Account: "user_ID", Network: "residential", Country: "FR", Session: "a1", Keep: 168 * time.Hour}},
		{"nodemaven", "login-country-us-sid-a1-ttl-10m-filter-medium", "pw", wanted{Account: "login", Country: "US", Session: "a1", Keep: 10 * time.Minute}},
		{"geonode", "geonode_x-type-residential-country-us-session-a1", "pw", wanted{Account: "geonode_x", Country: "US", Session: "a1", Keep: 10 * time.Minute}},
		{"geonode", "geonode_x-type-residential-session-a1-lifetime-1440", "pw", wanted{Account: "geonode_x", Session: "a1", Keep: 24 * time.Hour}},
		{"thordata", "td-customer-bob-country-au-state-victoria-city-melbourne-asn-AS1221-sessid-au123-sesstime-10", "pw",
			wanted{Account: "bob", Country: "AU", State: "victoria", City: "melbourne", ASN: "1221", Session: "au123", Keep: 10 * time.Minute}},
		{"oxylabs", "customer-bob-ASN-21928-sessid_oneip-abcde12345", "pw",
			wanted{Account: "bob", ASN: "21928", Strict: true, Session: "abcde12345", Keep: 10 * time.Minute}},
		{"webshare", "myuser-us-1234", "pw", wanted{Account: "myuser", Country: "US", Session: "1234"}},
		{"webshare", "myuser-us-city_los_angeles-rotate", "pw", wanted{Account: "myuser", Country: "US", City: "los_angeles"}},
		{"proxyseller", "xxx_c_US_city_New-York_s_100_ttl_30s", "pw", wanted{Account: "xxx", Country: "US", City: "New-York", Session: "100", Keep: 30 * time.Second}},
		{"proxies.sx", "psx_acme-peer-us-sid-cust_8f3a21bd-rot-sticky", "pak_a1", wanted{Account: "psx_acme", Network: "peer", Country: "US", Session: "cust_8f3a21bd", Keep: time.Hour, Idle: true}},
		{"proxies.sx", "psx_acme-mbl-gb-rot-auto5", "pak_a1", wanted{Account: "psx_acme", Network: "mbl", Country: "GB", Keep: 5 * time.Minute}},
		{"iproyal", "username123", "password321_country-br_session-sgn34f3e_lifetime-10m", wanted{Account: "username123", Password: "password321", Country: "BR", Session: "sgn34f3e", Keep: 10 * time.Minute}},
		{"evomi", "testuser", "testpassword_country-US", wanted{Account: "testuser", Password: "testpassword", Country: "US", Keep: 40 * time.Minute}},
	} {
		if c.want.Password == "" {
			c.want.Password = c.password
		}
		if w, err := upstreamproxy.Parse(c.profile, c.user, c.password); err != nil || w != c.want {
			t.Errorf("%s : %s is read as %+v, %v", c.user, c.password, w, err)
		}
	}
}

func TestWhatIsNotOfTheGrammarIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ profile, user, password string }{
		{"brightdata", "brd-customer-hl1-zone-z1-country-US", "pw"},
		{"brightdata", "brd-customer-hl1-zone-z1-session-a_b", "pw"},
		{"oxylabs", "customer-me-city-berlin", "pw"},
		{"oxylabs", "customer-me-sessid-a-sesstime-1441", "pw"},
		{"oxylabs", "customer-me-cc-US-cc-DE", "pw"},
		{"decodo", "user-me-sessionduration-5", "pw"},
		{"dataimpulse", "login__city.berlin", "pw"},
		{"dataimpulse", "login__cr.us;sessid.a;sessttl.0", "pw"},
		{"soax", "package-1-sessionid-a-sessionlength-86401", "pw"},
		{"anyip", "me,type_residential", "pw"},
		{"anyip", "user_me,type_residential,country_fr", "pw"},
		{"nodemaven", "me-ttl-10m", "pw"},
		{"geonode", "me-country-us", "pw"},
		{"geonode", "geonode_x-type-residential-session-a1-lifetime-2", "pw"},
		{"thordata", "td-customer-bob-sessid-a1-sesstime-91", "pw"},
		{"thordata", "td-customer-bob-state-victoria", "pw"},
		{"oxylabs", "customer-bob-cc-US-ASN-21928", "pw"},
		{"evomi", "bob", "pw_hardsession-abcd1234_lifetime-5"},
		{"webshare", "me-us", "pw"},
		{"webshare", "me-us-city_a1-rotate", "pw"},
		{"proxyseller", "me_c_us", "pw"},
		{"proxies.sx", "psx_me-any-any-session-x", "pak_1"},
		{"proxies.sx", "psx_me-any-any-sid-x-ttl-59", "pak_1"},
		{"proxies.sx", "psx_me-any-any", "password"},
		{"iproyal", "me", "pw_session-abc"},
		{"iproyal", "me", "pw_session-abcd1234_lifetime-8d"},
		{"evomi", "me", "pw_session-abcde"},
		{"evomi", "me", "pw_session-abcd1234_lifetime-121"},
		{"rayobyte", "me", "pw-country"},
		{"unknown", "me", "pw"},
	} {
		if w, err := upstreamproxy.Parse(c.profile, c.user, c.password); err == nil {
			t.Errorf("%s: %s : %s is read as %+v", c.profile, c.user, c.password, w)
		}
	}
}

func TestNoCredentialBreaksTheGateway(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z-_.;]{0,20}(-|_|__|;)[a-z]+(-|_|\.)[a-z0-9]*`))
	rapid.Check(t, func(t *rapid.T) {
		_, _ = upstreamproxy.Parse(rapid.SampledFrom(profiles).Draw(t, "profile"), text.Draw(t, "user"), text.Draw(t, "password"))
	})
}
