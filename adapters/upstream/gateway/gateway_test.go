package gateway_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/gateway"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/contract"
)

func portText(port uint16) string { return strconv.Itoa(int(port)) }

func TestGatewayContract(t *testing.T) {
	t.Parallel()
	for _, profile := range gateway.Profiles() {
		t.Run(profile, func(t *testing.T) {
			contract.Seller(t, func(t *testing.T) contract.Selling {
				return contract.Selling{Provider: openGateway(t, gatewaySpec(profile, nil)),
					Dynamic: &procurement.Intent{Bytes: 1e9, Location: session.Location{Country: "US"}}}
			})
		})
	}
}

func TestGatewayCapabilities(t *testing.T) {
	t.Parallel()
	for _, profile := range gateway.Profiles() {
		p := openGateway(t, gatewaySpec(profile, nil))
		if got, want := p.Capabilities(), (procurement.Capabilities{InProcess: true, ViaUpstream: true, Workers: true}); got != want {
			t.Errorf("%s can %+v, want %+v", profile, got, want)
		}
	}
}

func TestAnOrderAtAGatewayIsANameAndCarriesNoCredential(t *testing.T) {
	t.Parallel()
	p := openGateway(t, gatewaySpec("oxylabs", nil))
	in := procurement.Intent{Key: "ord_1", SessionID: "sess_1", Type: session.Dynamic, Bytes: 1e9}
	d, err := p.Order(t.Context(), in)
	if err != nil || d.Ref != "sess_1" || d.State != procurement.Live || d.Access != (procurement.Access{}) || d.Cost != 0 {
		t.Errorf("delivered %s %s, %v", d.Ref, d.State, err)
	}
	q, err := p.Quote(t.Context(), in)
	if err != nil || q != (procurement.Quote{Stock: procurement.StockUnknown}) {
		t.Errorf("quoted %+v, %v", q, err)
	}
	for what, err := range map[string]error{
		"disable": p.Disable(t.Context(), "sess_1"),
		"usage":   func() error { _, err := p.Usage(t.Context(), "sess_1"); return err }(),
		"static": func() error {
			_, err := p.Order(t.Context(), procurement.Intent{Type: session.Static})
			return err
		}(),
	} {
		if procurement.ClassOf(err) != procurement.Unsupported {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatAGatewayCannotBeAskedForIsRefused(t *testing.T) {
	t.Parallel()
	type target struct {
		country, city, token string
		ttl                  time.Duration
	}
	for _, c := range []struct {
		claim, profile string
		more           map[string]string
		target
	}{
		{"a city without its country", "oxylabs", nil, target{city: "berlin"}},
		{"a country that does not exist", "oxylabs", nil, target{country: "XK"}},
		{"a country that is a word", "decodo", nil, target{country: "us-session-x"}},
		{"a city in an ISP zone", "brightdata", map[string]string{"network": "isp"}, target{"US", "newyork", "", 0}},
		{"a city in a datacenter zone", "brightdata", map[string]string{"network": "datacenter"}, target{"US", "newyork", "", 0}},
		{"a city on a plan of proxies", "webshare", map[string]string{"network": "datacenter"}, target{"US", "dallas", "", 0}},
		{"a city that is optional", "proxies.sx", nil, target{"US", "nyc", "", 0}},
		{"a city that has no key", "packetstream", nil, target{"US", "nyc", "", 0}},
		{"a city with a digit", "webshare", nil, target{"US", "city17", "", 0}},
		{"a city of two words where one is known", "rayobyte", nil, target{"NL", "den haag", "", 0}},
		{"a city that is no word", "decodo", nil, target{"NL", " _ ", "", 0}},
		{"a city with a question mark", "rayobyte", nil, target{"NL", "haag?", "", 0}},
		{"a city in other letters", "decodo", nil, target{"BR", "são paulo", "", 0}},
		{"a country whose name is not known", "packetstream", nil, target{country: "TR"}},
		{"a token that is too short", "iproyal", nil, target{token: "abc1234"}},
		{"a token with a sign", "decodo", nil, target{token: "abc-1234"}},
		{"a token with capitals", "oxylabs", nil, target{token: "Abcd1234"}},
		{"a token that begins with a digit", "oxylabs", nil, target{token: "1bcd1234"}},
		{"a time that is too long", "oxylabs", nil, target{token: "abcd1234", ttl: 1441 * time.Minute}},
		{"a time that is too short", "proxies.sx", nil, target{token: "abcd1234", ttl: 59 * time.Second}},
		{"a time of half a minute", "decodo", nil, target{token: "abcd1234", ttl: 90 * time.Second}},
		{"a time of half a second", "iproyal", nil, target{token: "abcd1234", ttl: 1500 * time.Millisecond}},
		{"a time below nothing", "soax", nil, target{token: "abcd1234", ttl: -time.Second}},
		{"a time where none is known", "brightdata", nil, target{token: "abcd1234", ttl: time.Minute}},
		{"a credential that SOCKS5 cannot carry", "oxylabs", map[string]string{"username": strings.Repeat("u", 250)}, target{token: "abcd1234"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := openGateway(t, gatewaySpec(c.profile, c.more))
			e, err := p.Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: c.country, City: c.city}, Token: c.token, TTL: c.ttl})
			if procurement.ClassOf(err) != procurement.Invalid {
				t.Errorf("got %s %v", e.User, err)
			}
			if c.token != "" {
				return
			}
			in := procurement.Intent{SessionID: "sess_1", Type: session.Dynamic, Location: session.Location{Country: c.country, City: c.city}}
			_, quote := p.Quote(t.Context(), in)
			if _, err := p.Order(t.Context(), in); procurement.ClassOf(err) != procurement.Invalid || procurement.ClassOf(quote) != procurement.Invalid {
				t.Errorf("ordered: %v, quoted: %v", err, quote)
			}
		})
	}
}

func TestTheSellersSpellingIsConfigurable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ profile, place, spelled, country, city, want string }{
		{"packetstream", "US", "US", "US", "", "password321_country-US"},
		{"packetstream", "TR", "Turkey", "tr", "", "password321_country-Turkey"},
		{"iproyal", "US/new-york", "newyork", "US", "new-york", "password321_country-us_city-newyork"},
	} {
		s := gatewaySpec(c.profile, nil)
		s.Locations[c.place] = c.spelled
		e, err := openGateway(t, s).Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: c.country, City: c.city}})
		if err != nil || e.User != c.want && e.Password != c.want {
			t.Errorf("%s: %s : %s, %v", c.place, e.User, e.Password, err)
		}
	}
}

func TestAGatewayIsNotMadeOfFaultySettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim, profile string
		change         func(*upstream.Spec)
		want           string
	}{
		{"no profile", "oxylabs", func(s *upstream.Spec) { delete(s.Options, "profile") }, "options.profile is missing"},
		{"an unknown profile", "luminati", func(*upstream.Spec) {}, `options.profile must be one of`},
		{"no password", "oxylabs", func(s *upstream.Spec) { delete(s.Secrets, "password") }, "secrets.password is missing"},
		{"a password of two lines", "oxylabs", func(s *upstream.Spec) { s.Secrets["password"] = "very\nsecret" }, "secrets.password must be"},
		{"no zone", "brightdata", func(s *upstream.Spec) { delete(s.Options, "zone") }, "options.zone is missing"},
		{"no user name", "iproyal", func(s *upstream.Spec) { delete(s.Options, "username") }, "options.username is missing"},
		{"no package", "soax", func(s *upstream.Spec) { delete(s.Options, "package") }, "options.package is missing"},
		{"a zone where there are none", "oxylabs", func(s *upstream.Spec) { s.Options["zone"] = "z" }, "options.zone means nothing"},
		{"numbers where sessions are words", "oxylabs", func(s *upstream.Spec) { s.Options["numbers"] = "7" }, "options.numbers means nothing"},
		{"no numbers", "webshare", func(s *upstream.Spec) { s.Options["numbers"] = "0" }, "options.numbers must be 1 to"},
		{"a user name with a colon", "oxylabs", func(s *upstream.Spec) { s.Options["username"] = "a:b" }, "options.username holds"},
		{"a user name that its gateway would split", "proxies.sx", func(s *upstream.Spec) { s.Options["username"] = "psx_a-b" }, "options.username holds"},
		{"a network that does not exist", "brightdata", func(s *upstream.Spec) { s.Options["network"] = "sat" }, "options.network does not exist"},
		{"a port that does not exist", "oxylabs", func(s *upstream.Spec) { s.Options["port"] = "65536" }, "options.port must be"},
		{"a host that is a URL", "oxylabs", func(s *upstream.Spec) { s.Options["host"] = "http://a" }, "options.host must be"},
		{"an unknown protocol", "oxylabs", func(s *upstream.Spec) { s.Options["protocol"] = "socks4" }, "options.protocol must be"},
		{"an API", "oxylabs", func(s *upstream.Spec) { s.BaseURL = "http://127.0.0.1" }, "has no API"},
		{"a place of no country", "oxylabs", func(s *upstream.Spec) { s.Locations["EU"] = "eu" }, `"EU" does not begin with a country`},
		{"a spelling with a separator", "iproyal", func(s *upstream.Spec) { s.Locations["US"] = "us_session-x" }, "cannot be written"},
		{"a name with a separator", "packetstream", func(s *upstream.Spec) { s.Locations["US"] = "US_session-x" }, "cannot be written"},
		{"a spelling with a space", "oxylabs", func(s *upstream.Spec) { s.Locations["US/x"] = "x y" }, "cannot be written"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s := gatewaySpec(c.profile, nil)
			c.change(&s)
			_, err := upstream.New(s, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if strings.Contains(err.Error(), "password321") || strings.Contains(err.Error(), "very") {
				t.Errorf("the error reveals the password: %v", err)
			}
		})
	}
	s := gatewaySpec("brightdata", map[string]string{"port": "x", "protocol": "y"})
	delete(s.Options, "zone")
	_, err := upstream.New(s, nil)
	for _, want := range []string{"zone", "port", "protocol"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of three faults %s is not named: %v", want, err)
		}
	}
}

func TestAGatewayKeepsItsPasswordToItself(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := gatewaySpec("iproyal", nil)
	p, err := upstream.New(s, l)
	if err != nil {
		t.Fatal(err)
	}
	gw := openGateway(t, s)
	e, err := gw.Endpoint(procurement.Access{}, procurement.Target{Token: "abcd1234"})
	if err != nil {
		t.Fatal(err)
	}
	l.Info("made", "spec", s, "endpoint", e)
	_, refused := gw.Endpoint(procurement.Access{}, procurement.Target{Location: session.Location{Country: "US", City: "x_y"}})
	d, _ := p.Order(t.Context(), procurement.Intent{SessionID: "sess_1"})
	if text := log.String() + refused.Error() + fmt.Sprint(d); strings.Contains(text, "password321") {
		t.Errorf("the password is in %s", text)
	}
	s = gatewaySpec("brightdata", nil)
	kept := maps.Clone(s.Options)
	if openGateway(t, s); !maps.Equal(kept, s.Options) {
		t.Error("the operator's settings were changed")
	}
}

func TestAnUnverifiedGrammarIsLogged(t *testing.T) {
	t.Parallel()
	for _, profile := range gateway.Profiles() {
		var log bytes.Buffer
		if _, err := upstream.New(gatewaySpec(profile, nil), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if want := profile == "packetstream" || profile == "rayobyte"; strings.Contains(log.String(), "unverified") != want {
			t.Errorf("%s is %q", profile, log.String())
		}
	}
}
