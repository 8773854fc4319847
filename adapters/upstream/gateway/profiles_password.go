package gateway

import (
	"time"

	"agentproxy/domain/session"
)

// passwordProfiles have their parameters in the password.
var passwordProfiles = map[string]Profile{
	// https://docs.iproyal.com/proxies/residential/proxy/rotation.md: a session is
	// exactly 8 letters and digits; a time has one unit. How a city of two words
	// is written is unverified.
	"iproyal": {
		host: "geo.iproyal.com", ports: map[session.Protocol]uint16{session.HTTP: 12321, session.SOCKS5: 12321},
		inPassword: true, user: "{username}", first: "_", next: "_",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state:   "state-{state}",
		session: []string{"session-{token}"},
		ttl: lifetime{"lifetime-{ttl}", []timeUnit{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"},
			{time.Second, "s"}},
			time.Second, 7 * 24 * time.Hour},
		cityGap: "", separators: "_-,",
	},
	// https://docs.evomi.com/proxy-instructions/residential-proxies/proxy-sessions/
	// and …/geo-targetting/city/: a session is 6 to 10 letters and digits. At
	// least 512 bytes are billed there for a request. A hardsession keeps its exit as long as
	// that lasts, and takes no lifetime.
	"evomi": {
		host: "rp.evomi.com", ports: map[session.Protocol]uint16{session.HTTP: 1000, session.SOCKS5: 1002},
		inPassword: true, user: "{username}", first: "_", next: "_",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		state: "region-{state}", asn: "asn-{asn}",
		session: []string{"session-{token}"}, strict: []string{"hardsession-{token}"}, strictForever: true,
		ttl:          lifetime{"lifetime-{ttl}", inMinutes, time.Minute, 120 * time.Minute},
		upperCountry: true, cityGap: ".", separators: "_-",
	},
	// https://github.com/packetstream/packetstream-examples. Unverified: newer
	// code of customers has codes (US) where this has names (UnitedStates), which the
	// operator can set in locations.
	"packetstream": {
		host: "proxy.packetstream.io", ports: map[session.Protocol]uint16{session.HTTP: 31112},
		inPassword: true, user: "{username}", first: "_", next: "_",
		country:      []string{"country-{country}"},
		session:      []string{"session-{token}"},
		countryNames: true, separators: "_-", unverified: true,
	},
	// https://rayobyte.com. Unverified: the grammar is in no public documentation.
	"rayobyte": {
		host: "la.residential.rayobyte.com", ports: map[session.Protocol]uint16{session.HTTP: 8000, session.SOCKS5: 1080},
		inPassword: true, user: "{username}", first: "-", next: "-",
		country: []string{"country-{country}"}, city: []string{"country-{country}", "city-{city}"},
		session:      []string{"session-{token}"},
		upperCountry: true, cityGap: cityGapUnknown, separators: "-", unverified: true,
	},
}
