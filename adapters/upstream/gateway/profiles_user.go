package gateway

import (
	"net/http"
	"time"

	"agentproxy/domain/session"
)

var (
	inMinutes = []timeUnit{{time.Minute, ""}}
	inSeconds = []timeUnit{{time.Second, ""}}
)

// userNameProfiles have their parameters in the user name.
var userNameProfiles = map[string]Profile{
	// https://docs.brightdata.com/proxy-networks/config-options,
	// https://docs.brightdata.com/api-reference/proxy/geolocation-targeting and
	// https://docs.brightdata.com/api-reference/proxy/keep_same_peer_in_session: -const behind the
	// session answers 502 when its exit is gone.
	// The certificates of the older port 33335 have expired. How long a session lasts is
	// not documented and cannot be asked for. Cities are for
	// residential and mobile zones; names are lower case without spaces.
	"brightdata": {
		host: "brd.superproxy.io", ports: map[session.Protocol]uint16{session.HTTP: 44445, session.SOCKS5: 22228},
		user: "brd-customer-{username}-zone-{zone}", first: "-", next: "-",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state: "state-{state}", asn: "asn-{asn}", asnInCountry: true,
		session: []string{"session-{token}"}, strict: []string{"session-{token}-const"},
		lostStatus: http.StatusBadGateway,
		networks:   []exitNetwork{{"residential", true}, {"mobile", true}, {"isp", false}, {"datacenter", false}},
		separators: "-",
	},
	// https://developers.oxylabs.io/products/proxies/residential-proxies/session-control:
	// without sesstime a session lasts 10 minutes; it always ends after a minute
	// of silence. sessid_oneip answers 502 when its exit is gone. Of country and network the
	// gateway takes the country alone. A state is written us_california.
	"oxylabs": {
		host: "pr.oxylabs.io", ports: map[session.Protocol]uint16{session.HTTP: 7777, session.SOCKS5: 7777},
		user: "customer-{username}", first: "-", next: "-",
		country: []string{"cc-{country}"}, city: []string{"cc-{country}", "city-{city}"},
		state: "st-{state}", asn: "ASN-{asn}", asnAlone: true,
		session: []string{"sessid-{token}"}, strict: []string{"sessid_oneip-{token}"},
		lostStatus:   http.StatusBadGateway,
		ttl:          lifetime{"sesstime-{ttl}", inMinutes, time.Minute, 1440 * time.Minute},
		upperCountry: true, cityGap: "_", separators: "-",
		tls: true, // https://developers.oxylabs.io/proxies/residential-proxies/protocols
	},
	// https://help.decodo.com/docs/residential-proxy-custom-sticky-sessions.md
	"decodo": {
		host: "gate.decodo.com", ports: map[session.Protocol]uint16{session.HTTP: 7000, session.SOCKS5: 7000},
		user: "user-{username}", first: "-", next: "-",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state: "state-{state}", asn: "asn-{asn}",
		session: []string{"session-{token}"},
		ttl:     lifetime{"sessionduration-{ttl}", inMinutes, time.Minute, 1440 * time.Minute},
		cityGap: "_", separators: "-",
	},
	// https://docs.dataimpulse.com/proxies/parameters/session-id.md and its
	// neighbours city and session-interval. That sessttl counts beside sessid is
	// unverified: the documentation has it with the sticky ports. A city doubles
	// the price there.
	"dataimpulse": {
		host: "gw.dataimpulse.com", ports: map[session.Protocol]uint16{session.HTTP: 823, session.SOCKS5: 824},
		user: "{username}", first: "__", next: ";",
		country: []string{"cr.{country}"}, city: []string{"cr.{country}", "city.{city}"},
		state: "state.{state}", asn: "asn.{asn}", asnInCountry: true,
		session: []string{"sessid.{token}"},
		ttl:     lifetime{"sessttl.{ttl}", inMinutes, time.Minute, 120 * time.Minute},
		cityGap: "", separators: "_.;,",
	},
	// https://helpcenter.soax.com/en/articles/6723733-sticky-sessions. Without
	// sessionid every request has a new exit.
	"soax": {
		host: "proxy.soax.com", ports: map[session.Protocol]uint16{session.HTTP: 5000},
		user: "package-{package}", first: "-", next: "-",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state:   "region-{state}",
		session: []string{"sessionid-{token}"},
		ttl:     lifetime{"sessionlength-{ttl}", inSeconds, time.Second, 86400 * time.Second},
		cityGap: "+", separators: "-",
	},
	// https://anyip.io/docs/guides/configuration: the user name is user_ID. A city needs
	// its region there, which a place does not have, so it cannot be asked for. Seven days
	// are the default; that they are the longest time is unverified.
	"anyip": {
		host: "portal.anyip.io", ports: map[session.Protocol]uint16{session.HTTP: 1080, session.SOCKS5: 1080},
		user: "{username}", first: ",", next: ",",
		anywhere: []string{"type_{network}"}, country: []string{"type_{network}", "country_{country}"},
		state: "region_{state}", asn: "asn_{asn}",
		session: []string{"session_{token}"}, strict: []string{"session_{token}", "sessreplace_false"},
		ttl:          lifetime{"sesstime_{ttl}", inMinutes, time.Minute, 7 * 24 * time.Hour},
		networks:     []exitNetwork{{"residential", false}, {"mobile", false}},
		upperCountry: true, separators: ",|_",
	},
	// https://pypi.org/project/nodemaven: the gateway ignores what it does not know, so
	// cities, whose spelling is not documented without their region, cannot be asked for.
	"nodemaven": {
		host: "gate.nodemaven.com", ports: map[session.Protocol]uint16{session.HTTP: 8080, session.SOCKS5: 1080},
		user: "{username}", first: "-", next: "-",
		country:    []string{"country-{country}"},
		state:      "region-{state}",
		session:    []string{"sid-{token}"},
		ttl:        lifetime{"ttl-{ttl}", []timeUnit{{time.Hour, "h"}, {time.Minute, "m"}}, time.Minute, 24 * time.Hour},
		separators: "-", strictUser: true,
	},
	// https://docs.geonode.com/reference/session-id-lifetime: the sticky ports, on which one
	// port serves many sessions.
	"geonode": {
		host: "proxy.geonode.io", ports: map[session.Protocol]uint16{session.HTTP: 10000, session.SOCKS5: 12000},
		user: "{username}", first: "-", next: "-",
		anywhere: []string{"type-residential"}, country: []string{"type-residential", "country-{country}"},
		session:    []string{"session-{token}"},
		ttl:        lifetime{"lifetime-{ttl}", inMinutes, 3 * time.Minute, 1440 * time.Minute},
		separators: "-", strictUser: true,
	},
	// https://doc.thordata.com/doc/proxies/residential-proxies/session-control and
	// …/mobile-proxies/making-request. Customers' code has hosts of an account in place of t.,
	// which the option host sets.
	"thordata": {
		host: "t.pr.thordata.net", ports: map[session.Protocol]uint16{session.HTTP: 9999},
		user: "td-customer-{username}", first: "-", next: "-",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state: "state-{state}", asn: "asn-AS{asn}", asnInCountry: true,
		session: []string{"sessid-{token}"},
		ttl:     lifetime{"sesstime-{ttl}", inMinutes, time.Minute, 90 * time.Minute},
		cityGap: cityGapUnknown, separators: "-",
	},
	// https://apidocs.webshare.io/proxy-connection: the backbone. A session is a
	// number. On a plan that lists proxies it is the position in that list, whose length is
	// the option numbers. Cities are for residential plans.
	"webshare": {
		host: "p.webshare.io", ports: map[session.Protocol]uint16{session.HTTP: 80},
		user: "{username}", first: "-", next: "-",
		country: []string{"{country}"}, city: []string{"{country}", "city_{city}"},
		session: []string{"{token}"}, rotate: []string{"rotate"},
		number:   numberRange{1, 99999999},
		networks: []exitNetwork{{"residential", true}, {"datacenter", false}},
		cityGap:  "_", cityLetters: true, separators: "-",
	},
	// https://docs.proxy-seller.com/docs/proxy-seller/residential-proxy/api-tool.
	// The longest time is unverified: an hour is what a package allows.
	"proxyseller": {
		host: "res.proxy-seller.com", ports: map[session.Protocol]uint16{session.HTTP: 10000, session.SOCKS5: 10000},
		user: "{username}", first: "_", next: "_",
		country: []string{"c_{country}"}, city: []string{"c_{country}", "city_{city}"},
		state: "sd_{state}", asn: "asn_{asn}", asnInCountry: true, // the seller's numbers
		session:      []string{"s_{token}"},
		ttl:          lifetime{"ttl_{ttl}", []timeUnit{{time.Second, "s"}}, time.Second, time.Hour},
		upperCountry: true, cityGap: "-", cityTitle: true, separators: "_",
	},
	// https://api.proxies.sx/docs/gateway and docs/USERNAME-DSL.md of
	// https://github.com/bolivian-peru/proxy-reseller-kit. A session keeps its
	// device only with rot-sticky; without sid every connection has its own. The
	// time counts from the last use. A city is a preference there and never
	// excludes another, so it cannot be asked for.
	"proxies.sx": {
		host: "gw.proxies.sx", ports: map[session.Protocol]uint16{session.HTTP: 7000, session.SOCKS5: 7001},
		user: "{username}", first: "-", next: "-",
		anywhere: []string{"{network}", "any"}, country: []string{"{network}", "{country}"},
		asn:     "asn-{asn}",
		session: []string{"sid-{token}", "rot-sticky"}, strict: []string{"sid-{token}", "rot-hard"},
		ttl:        lifetime{"ttl-{ttl}", inSeconds, 60 * time.Second, 2592000 * time.Second},
		networks:   []exitNetwork{{"any", false}, {"mbl", false}, {"peer", false}, {"best", false}},
		separators: "-", strictUser: true,
	},
}
