package upstreamproxy

import (
	"strconv"
	"strings"
	"time"
)

// https://docs.iproyal.com/proxies/residential/proxy/rotation.md
func ipRoyal(user, password string) (Wanted, error) {
	p := strings.Split(password, "_")
	s := joined(p[1:], "-", "region country state city isp session lifetime skipispstatic streaming")
	s.needs("city", "country")
	s.needs("lifetime", "session")
	w := Wanted{Account: user, Password: p[0], Country: s.lower("country"), City: s.id("city", 1, 64), Session: s.id("session", 8, 8)}
	if text := s.got["lifetime"]; text != "" {
		n, err := strconv.Atoi(text[:len(text)-1])
		unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
		w.Keep = time.Duration(n) * unit
		if err != nil || w.Keep < time.Second || w.Keep > 7*24*time.Hour {
			s.fail("%q is not 1 second to 7 days", text)
		}
	}
	return w, s.err
}

// https://docs.evomi.com/proxy-instructions/residential-proxies/proxy-sessions/
func evomi(user, password string) (Wanted, error) {
	p := strings.Split(password, "_")
	s := joined(p[1:], "-", "country region city isp asn continent session hardsession lifetime mode")
	if id, strict := s.got["hardsession"]; strict && s.got["session"] == "" && s.got["lifetime"] == "" {
		s.got["session"] = id
	} else if strict {
		s.fail("a hardsession has no lifetime")
	}
	s.needs("lifetime", "session")
	minutes := s.number("lifetime", 1, 120, 40)
	w := Wanted{Account: user, Password: p[0], Country: s.upper("country"), City: s.got["city"], State: s.got["region"],
		ASN: s.got["asn"], Strict: s.got["hardsession"] != "", Session: s.id("session", 6, 10), Keep: time.Duration(minutes) * time.Minute}
	if w.City != strings.ToLower(w.City) || strings.Contains(w.City, " ") {
		s.fail("a city is lower case, with dots")
	}
	return w, s.err
}

// names are PacketStream's names of countries, unverified; other codes are unchanged.
var names = map[string]string{"UnitedStates": "US", "UnitedKingdom": "GB", "Germany": "DE", "France": "FR",
	"Japan": "JP", "Brazil": "BR", "Netherlands": "NL", "SouthKorea": "KR"}

// Unverified: from public code of customers.
func packetStream(user, password string) (Wanted, error) {
	p := strings.Split(password, "_")
	s := joined(p[1:], "-", "country session")
	w := Wanted{Account: user, Password: p[0], Country: s.got["country"], Session: s.id("session", 1, 64)}
	if code := names[w.Country]; code != "" {
		w.Country = code
	}
	return w, s.err
}

// Unverified: from public code of customers.
func rayobyte(user, password string) (Wanted, error) {
	p := strings.Split(password, "-")
	s := flat(p[1:], "country region city session")
	s.needs("city", "country")
	return Wanted{Account: user, Password: p[0], Country: s.upper("country"), City: s.got["city"], Session: s.got["session"]}, s.err
}
