package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/upstreamproxy"
)

// squashCity returns a city without the separators of its words.
func squashCity(city string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "+", "", "-", "", ".", "").Replace(city))
}

// gateways returns a provider of each profile.
func gateways(t *testing.T) map[string]ports.Dynamic {
	all := map[string]ports.Dynamic{}
	for _, profile := range gateway.Profiles() {
		all[profile] = openGateway(t, gatewaySpec(profile, nil))
	}
	return all
}

// ttlStep is the unit of a profile's times; it is 0 if it has none.
var ttlStep = map[string]time.Duration{"oxylabs": time.Minute, "decodo": time.Minute, "dataimpulse": time.Minute, "evomi": time.Minute,
	"soax": time.Second, "proxyseller": time.Second, "proxies.sx": time.Second, "iproyal": time.Second,
	"anyip": time.Minute, "nodemaven": time.Minute}

// longestTTL is the longest time of a profile. It is written for a target without a time.
var longestTTL = map[string]time.Duration{"oxylabs": 24 * time.Hour, "decodo": 24 * time.Hour, "dataimpulse": 2 * time.Hour,
	"soax": 24 * time.Hour, "proxyseller": time.Hour, "proxies.sx": 720 * time.Hour, "iproyal": 168 * time.Hour, "evomi": 2 * time.Hour,
	"anyip": 168 * time.Hour, "nodemaven": 24 * time.Hour,
	"geonode": 24 * time.Hour, "thordata": 90 * time.Minute, "custom": 30 * time.Minute}

func TestWhatIsWrittenIsWhatTheGatewayReads(t *testing.T) {
	all := gateways(t)
	words := rapid.StringMatching(`[a-zA-Z]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		profile := rapid.SampledFrom(gateway.Profiles()).Draw(t, "profile")
		country := rapid.SampledFrom([]string{"", "US", "GB", "DE", "FR", "JP", "BR", "NL", "KR"}).Draw(t, "country")
		var city string
		if country != "" && !slices.Contains([]string{"proxies.sx", "packetstream", "anyip", "nodemaven", "geonode"}, profile) && rapid.Bool().Draw(t, "with city") {
			n := rapid.IntRange(1, 3).Draw(t, "words")
			if profile == "rayobyte" || profile == "thordata" {
				n = 1
			}
			city = strings.Join(rapid.SliceOfN(words, n, n).Draw(t, "city"), " ")
		}
		token := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z][a-z0-9]{7}`)).Draw(t, "token")
		var ttl time.Duration
		if ttlStep[profile] > 0 {
			longest := min(longestTTL[profile], 1<<40)
			ttl = ttlStep[profile] * time.Duration(rapid.IntRange(0, int(longest/ttlStep[profile])).Draw(t, "ttl"))
			if profile == "proxies.sx" && ttl < time.Minute {
				ttl = 0
			}
		}
		e, err := all[profile].Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: country, City: city}, Token: token, TTL: ttl})
		if err != nil {
			t.Fatalf("%s %s %s: %v", profile, country, city, err)
		}
		w, err := upstreamproxy.Parse(profile, e.User, e.Password)
		if err != nil {
			t.Fatalf("%s reads %s : %s as %v", profile, e.User, e.Password, err)
		}
		if ttl == 0 {
			ttl = longestTTL[profile]
		}
		if w.Country != country || squashCity(w.City) != squashCity(city) || (w.Session == "") != (token == "") ||
			token != "" && w.Keep != ttl || w.Session != token && profile != "webshare" {
			t.Fatalf("%s reads %s : %s as %+v", profile, e.User, e.Password, w)
		}
	})
}

// Text of an agent in one field never becomes another field.
func TestNoFieldCanWriteAnother(t *testing.T) {
	all := gateways(t)
	bit := rapid.OneOf(rapid.SampledFrom([]string{"-", "_", "__", ";", ".", ",", ":", "+", " ", "@", "%2d", "\x00", "\n", "é",
		"session", "sessid", "sid", "s", "ttl", "country", "cr", "c", "city", "lifetime", "us", "x", "y", "1", "rotate", "any"}),
		rapid.StringN(0, 3, 8))
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(bit, 0, 6).Draw(t, "bits"), "") })
	rapid.Check(t, func(t *rapid.T) {
		profile := rapid.SampledFrom(gateway.Profiles()).Draw(t, "profile")
		target := procurement.Target{Location: session.Location{Country: "US"}, Token: "abcd1234"}
		switch rapid.SampledFrom([]string{"city", "country", "token"}).Draw(t, "field") {
		case "city":
			target.Location.City = text.Draw(t, "city")
		case "country":
			target.Location.Country = text.Draw(t, "country")
		default:
			target.Token = text.Draw(t, "token")
		}
		e, err := all[profile].Endpoint(procurement.Access{}, target)
		if err != nil {
			if procurement.ClassOf(err) != procurement.Invalid {
				t.Fatalf("%s %+v: %v", profile, target, err)
			}
			return
		}
		w, err := upstreamproxy.Parse(profile, e.User, e.Password)
		if err != nil {
			t.Fatalf("%s %+v: %s : %s is read as %v", profile, target, e.User, e.Password, err)
		}
		name := strings.ReplaceAll(country.Name(target.Location.Country), " ", "")
		if !strings.EqualFold(w.Country, target.Location.Country) && (profile != "packetstream" || w.Country != name) || squashCity(w.City) != squashCity(target.Location.City) ||
			(w.Session == "") != (target.Token == "") || w.Session != target.Token && profile != "webshare" {
			t.Fatalf("%s %+v: %s : %s is read as %+v", profile, target, e.User, e.Password, w)
		}
	})
}

func TestACityWithAParameterInsideIsRefusedByEveryGateway(t *testing.T) {
	t.Parallel()
	for profile, p := range gateways(t) {
		for _, city := range []string{"x-session-y_z;w", "x_session_y-z", "x;sessid.y", "x:y", "x@y", "x\r\ny"} {
			if profile == "proxyseller" && city == "x-session-y_z;w" {
				city = "x_s_y"
			}
			e, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: "US", City: city}})
			if procurement.ClassOf(err) != procurement.Invalid {
				t.Errorf("%s writes %q as %s : %s, %v", profile, city, e.User, e.Password, err)
			}
		}
	}
}

func TestNumbersAreComputedOfTokensAndStayInRange(t *testing.T) {
	t.Parallel()
	for profile, longest := range map[string]int{"webshare": 99999999} {
		p := openGateway(t, gatewaySpec(profile, nil))
		seen := map[string]bool{}
		for i := range 1000 {
			target := procurement.Target{Token: fmt.Sprintf("a%07d", i)}
			e, err := p.Endpoint(procurement.Access{}, target)
			if err != nil {
				t.Fatal(err)
			}
			w, err := upstreamproxy.Parse(profile, e.User, e.Password)
			if err != nil || len(w.Session) > len(fmt.Sprint(longest)) {
				t.Fatalf("%s: %s, %v", profile, e.User, err)
			}
			seen[w.Session] = true
		}
		if len(seen) < 999 {
			t.Errorf("%s: 1000 tokens are %d numbers", profile, len(seen))
		}
	}
	p := openGateway(t, gatewaySpec("webshare", map[string]string{"numbers": "3"}))
	seen := map[string]bool{}
	for i := range 100 {
		e, err := p.Endpoint(procurement.Access{}, procurement.Target{Token: fmt.Sprintf("a%07d", i)})
		if err != nil {
			t.Fatal(err)
		}
		seen[e.User] = true
	}
	if len(seen) != 3 || !seen["myuser-1"] || !seen["myuser-2"] || !seen["myuser-3"] {
		t.Errorf("of a list of 3 proxies %v are asked for", seen)
	}
}

// Every profile reaches its fake by HTTP and SOCKS5, and a new token gets a new exit.
func TestTheStandInsLetEveryProfileThrough(t *testing.T) {
	t.Parallel()
	for _, profile := range gateway.Profiles() {
		for _, protocol := range []session.Protocol{session.HTTP, session.SOCKS5} {
			t.Run(profile+" "+string(protocol), func(t *testing.T) {
				s := gatewaySpec(profile, nil)
				user := s.Options["username"]
				if user == "" {
					user = s.Options["package"]
				}
				proxy := upstreamproxy.New(t, profile, user, s.Secrets["password"])
				s.Options["host"], s.Options["port"] = "127.0.0.1", portText(proxy.Addr().Port())
				delete(s.Options, "http_port") // of custom, whose port is now for both
				delete(s.Options, "socks5_port")
				p := openGateway(t, s)
				through := func(token string) string {
					e, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: "GB"}, Token: token, Protocol: protocol})
					if err != nil {
						t.Fatal(err)
					}
					to := &url.URL{Scheme: string(e.Protocol), Host: e.Host + ":" + portText(e.Port), User: url.UserPassword(e.User, e.Password)}
					tr := &http.Transport{Proxy: http.ProxyURL(to), DisableKeepAlives: true}
					defer tr.CloseIdleConnections()
					res, err := (&http.Client{Transport: tr, Timeout: 2 * time.Minute}).Get(proxy.Echo)
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					body, err := io.ReadAll(res.Body)
					if err != nil || res.StatusCode != 200 {
						t.Fatalf("%d %s, %v", res.StatusCode, body, err)
					}
					return string(body)
				}
				if a, b := through("abcd1234"), through("abcd1234"); a != b {
					t.Errorf("one token has the exits %s and %s", a, b)
				}
				if a, b := through("abcd1234"), through("abcd1235"); a == b {
					t.Errorf("two tokens have one exit")
				}
				if a, b := through(""), through(""); a == b {
					t.Errorf("without a token two connections have one exit")
				}
				if last := proxy.Sessions()[0]; last.Country != "GB" {
					t.Errorf("the exit is in %s", last.Country)
				}
			})
		}
	}
}
