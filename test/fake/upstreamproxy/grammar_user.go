package upstreamproxy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// https://docs.brightdata.com/proxy-networks/config-options and
// https://docs.brightdata.com/api-reference/proxy/keep_same_peer_in_session
func brightData(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	if len(p) < 5 || p[0] != "brd" || p[1] != "customer" || p[3] != "zone" {
		return Wanted{}, fmt.Errorf("not brd-customer-…-zone-…: %d parts", len(p))
	}
	rest, strict := p[5:], false // const follows the session and has no value
	if last := len(rest) - 1; last > 1 && rest[last] == "const" && rest[last-2] == "session" {
		rest, strict = rest[:last], true
	}
	s := flat(rest, "country state city zip asn os session ip")
	s.needs("city", "country")
	s.needs("state", "country")
	w := Wanted{Account: p[2], State: s.got["state"], ASN: s.got["asn"], Zone: p[4], Password: password, Country: s.lower("country"),
		City: s.id("city", 1, 64), Session: s.id("session", 1, 64), Strict: strict}
	if w.City != strings.ToLower(w.City) {
		s.fail("a city is lower case")
	}
	return w, s.err
}

// https://developers.oxylabs.io/products/proxies/residential-proxies/session-control
func oxylabs(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	if len(p) < 2 || p[0] != "customer" {
		return Wanted{}, fmt.Errorf("not customer-…")
	}
	s := flat(p[2:], "cc city st ASN sessid sessid_oneip sesstime")
	s.needs("city", "cc")
	if id, strict := s.got["sessid_oneip"]; strict && s.got["sessid"] == "" {
		s.got["sessid"] = id
	} else if strict {
		s.fail("two sessions")
	}
	s.needs("sesstime", "sessid")
	if s.got["ASN"] != "" && s.got["cc"] != "" {
		s.fail("documented: of country and network the country alone is taken")
	}
	minutes := s.number("sesstime", 1, 1440, 10)
	w := Wanted{Account: p[1], Password: password, Country: s.upper("cc"), City: s.got["city"],
		State: s.got["st"], ASN: s.got["ASN"], Strict: s.got["sessid_oneip"] != "", Session: s.id("sessid", 1, 64), Keep: time.Duration(minutes) * time.Minute}
	if strings.Contains(w.City, " ") {
		s.fail("a city has no space")
	}
	return w, s.err
}

// https://help.decodo.com/docs/residential-proxy-custom-sticky-sessions.md
func decodo(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	if len(p) < 2 || p[0] != "user" {
		return Wanted{}, fmt.Errorf("not user-…")
	}
	s := flat(p[2:], "country state city zip asn session sessionduration")
	s.needs("city", "country")
	s.needs("sessionduration", "session")
	minutes := s.number("sessionduration", 1, 1440, 10)
	return Wanted{Account: p[1], Password: password, Country: s.lower("country"), City: s.got["city"],
		Session: s.got["session"], Keep: time.Duration(minutes) * time.Minute}, s.err
}

// https://docs.dataimpulse.com/proxies/parameters/session-id.md
func dataImpulse(user, password string) (Wanted, error) {
	login, rest, marked := strings.Cut(user, "__")
	var parts []string
	if marked {
		parts = strings.Split(rest, ";")
	}
	s := joined(parts, ".", "cr state city zip asn sessid sessttl")
	s.needs("city", "cr")
	for k, v := range s.got {
		if strings.ContainsAny(v, ".,") {
			s.fail("%s has more than one value", k)
		}
	}
	minutes := s.number("sessttl", 1, 120, 30)
	return Wanted{Account: login, Password: password, Country: s.lower("cr"), City: s.got["city"],
		Session: s.got["sessid"], Keep: time.Duration(minutes) * time.Minute}, s.err
}

// https://helpcenter.soax.com/en/articles/6723733-sticky-sessions
func soax(user, password string) (Wanted, error) {
	s := flat(strings.Split(user, "-"), "package country region city isp sessionid sessionlength")
	if !strings.HasPrefix(user, "package-") {
		s.fail("not package-…")
	}
	s.needs("city", "country")
	s.needs("sessionlength", "sessionid")
	seconds := s.number("sessionlength", 0, 86400, 180)
	w := Wanted{Account: s.got["package"], Password: password, Country: s.lower("country"), City: s.got["city"],
		Session: s.got["sessionid"], Keep: time.Duration(seconds) * time.Second}
	if seconds == 0 {
		w.Session = "" // documented: a new exit for each request
	}
	return w, s.err
}

// https://anyip.io/docs/guides/configuration
func anyIP(user, password string) (Wanted, error) {
	p := strings.FieldsFunc(user, func(c rune) bool { return c == ',' || c == '|' })
	if len(p) == 0 || !strings.HasPrefix(p[0], "user_") {
		return Wanted{}, fmt.Errorf("not user_…")
	}
	s := joined(p[1:], "_", "type country region city asn session sesstime sessreplace sessasn")
	s.needs("city", "region")
	s.needs("region", "country")
	s.needs("sesstime", "session")
	if t := s.got["type"]; t != "residential" && t != "mobile" {
		s.fail("%q is no type", t)
	}
	minutes := s.number("sesstime", 1, 10080, 10080)
	return Wanted{Account: p[0], Network: s.got["type"], Password: password, Country: s.upper("country"), City: s.got["city"],
		Session: s.id("session", 1, 64), Keep: time.Duration(minutes) * time.Minute}, s.err
}

// https://pypi.org/project/nodemaven
func nodeMaven(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	s := flat(p[1:], "country region city isp type ipv4 sid ttl filter")
	s.needs("city", "country")
	s.needs("ttl", "sid")
	w := Wanted{Account: p[0], Password: password, Country: s.lower("country"), City: s.got["city"], Session: s.id("sid", 1, 64)}
	if text, ok := s.got["ttl"]; ok {
		n, err := strconv.Atoi(strings.TrimRight(text, "mh"))
		w.Keep = time.Duration(n) * time.Minute
		if strings.HasSuffix(text, "h") {
			w.Keep *= 60
		}
		if err != nil || n < 1 || text[len(text)-1] != 'm' && text[len(text)-1] != 'h' {
			s.fail("%q is no time", text)
		}
	}
	return w, s.err
}

// https://docs.geonode.com
func geonode(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	s := flat(p[1:], "type country session lifetime")
	if s.got["type"] != "residential" {
		s.fail("%q is no type", s.got["type"])
	}
	s.needs("lifetime", "session")
	minutes := s.number("lifetime", 3, 1440, 10)
	return Wanted{Account: p[0], Password: password, Country: s.lower("country"), Session: s.id("session", 1, 25),
		Keep: time.Duration(minutes) * time.Minute}, s.err
}

// A gateway of no seller, whose grammar an operator describes.
func described(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	if len(p) < 2 || p[0] != "customer" {
		return Wanted{}, fmt.Errorf("not customer-…")
	}
	s := flat(p[2:], "cc st city asn sessid sesstime")
	s.needs("city", "cc")
	minutes := s.number("sesstime", 1, 30, 10)
	return Wanted{Account: p[1], Password: password, Country: s.upper("cc"), City: s.got["city"], State: s.got["st"], ASN: s.got["asn"],
		Session: s.id("sessid", 8, 8), Keep: time.Duration(minutes) * time.Minute}, s.err
}

// https://doc.thordata.com/doc/proxies/mobile-proxies/making-request
func thordata(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	if len(p) < 3 || p[0] != "td" || p[1] != "customer" {
		return Wanted{}, fmt.Errorf("not td-customer-…")
	}
	s := flat(p[3:], "continent country state city asn sessid sesstime")
	s.needs("state", "country")
	s.needs("sesstime", "sessid")
	asn, marked := strings.CutPrefix(s.got["asn"], "AS")
	if asn != "" && !marked {
		s.fail("%q is no network", asn)
	}
	minutes := s.number("sesstime", 1, 90, 10)
	return Wanted{Account: p[2], Password: password, Country: s.lower("country"), City: s.got["city"], State: s.got["state"],
		ASN: asn, Session: s.id("sessid", 1, 64), Keep: time.Duration(minutes) * time.Minute}, s.err
}

// https://apidocs.webshare.io/proxy-connection
func webshare(user, password string) (Wanted, error) {
	p := strings.Split(user, "-")
	w := Wanted{Account: p[0], Password: password}
	s := &scan{got: map[string]string{}}
	last := len(p) - 1
	if last < 1 {
		return w, fmt.Errorf("neither a number nor rotate")
	}
	if p[last] != "rotate" {
		s.got["number"] = p[last]
		w.Session = strconv.Itoa(s.number("number", 1, 1<<31, 0))
	}
	places := p[1:last]
	for i, place := range places {
		name, isCity := strings.CutPrefix(place, "city_")
		switch {
		case isCity && i == len(places)-1:
			w.City = name
			if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_") != "" {
				s.fail("%q is not letters and underscores", name)
			}
		case isCity || w.Country != "":
			s.fail("%q is out of place", place)
		default:
			s.got["country"] = place
			if w.Country = s.lower("country"); w.Country == "" {
				s.fail("an empty country")
			}
		}
	}
	return w, s.err
}

// https://docs.proxy-seller.com/docs/proxy-seller/residential-proxy/api-tool
func proxySeller(user, password string) (Wanted, error) {
	p := strings.Split(user, "_")
	s := flat(p[1:], "c sd city isp asn zip s ttl")
	s.needs("city", "c")
	s.needs("ttl", "s")
	w := Wanted{Account: p[0], Password: password, Country: s.upper("c"), City: s.got["city"], Session: s.got["s"]}
	if text, ok := s.got["ttl"]; ok {
		n, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
		if err != nil || n < 1 || !strings.HasSuffix(text, "s") {
			s.fail("%q is no time", text)
		}
		w.Keep = time.Duration(n) * time.Second
	}
	return w, s.err
}

// docs/USERNAME-DSL.md of https://github.com/bolivian-peru/proxy-reseller-kit
func proxiesSX(user, password string) (Wanted, error) {
	p := strings.Split(strings.ToLower(user), "-")
	if len(p) < 3 || len(user) > 256 {
		return Wanted{}, fmt.Errorf("not an account, a pool and a country: %d parts", len(p))
	}
	if !strings.HasPrefix(p[0], "psx_") || !strings.HasPrefix(password, "pak_") {
		return Wanted{}, fmt.Errorf("not an account and a pool key")
	}
	if !strings.Contains(" mbl peer any best ", " "+p[1]+" ") {
		return Wanted{}, fmt.Errorf("%q is no pool", p[1])
	}
	s := flat(p[3:], "carrier city iptype isp asn sid rot ttl failover")
	w := Wanted{Account: p[0], Network: p[1], Password: password, City: s.got["city"], Session: s.got["sid"]}
	if p[2] != "any" {
		s.got["country"] = p[2]
		w.Country = s.lower("country")
	}
	if len(w.Session) > 64 || strings.Trim(w.Session, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		s.fail("%q is no sid", w.Session)
	}
	ttl := time.Duration(s.number("ttl", 60, 2592000, 3600)) * time.Second
	switch rot := s.got["rot"]; rot {
	case "sticky", "hard":
		w.Keep, w.Idle = ttl, true
	case "", "auto10":
		w.Keep = 10 * time.Minute
	case "auto5", "auto20", "auto60":
		n, _ := strconv.Atoi(rot[4:])
		w.Keep = time.Duration(n) * time.Minute
	case "ondemand":
		w.Session = ""
	default:
		s.fail("%q is no rotation", rot)
	}
	return w, s.err
}
