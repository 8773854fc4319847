package upstreamproxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Wanted is the exit that a credential names.
type Wanted struct {
	Account  string // the user name, customer id or package alone
	Password string // the password alone
	Zone     string // brightdata
	Network  string // anyip, proxies.sx
	Country  string // ISO 3166-1, upper case; empty: any
	City     string // in the seller's spelling
	State    string // in the seller's spelling
	ASN      string
	Strict   bool   // a lost exit is not replaced
	Session  string // empty: every connection has its own exit
	// Keep is how long a session has its exit, given or by default; 0: for ever. It counts
	// from its last use if Idle is set, else from its first.
	Keep time.Duration
	Idle bool
}

// parsers read the user name and the password of each gateway. They are written from the
// sellers' documentation and stricter than the sellers: unknown parameters are refused,
// where some sellers ignore them and sell another exit.
var parsers = map[string]func(user, password string) (Wanted, error){
	"brightdata":   brightData,
	"oxylabs":      oxylabs,
	"decodo":       decodo,
	"dataimpulse":  dataImpulse,
	"soax":         soax,
	"anyip":        anyIP,
	"nodemaven":    nodeMaven,
	"geonode":      geonode,
	"thordata":     thordata,
	"custom":       described,
	"webshare":     webshare,
	"proxyseller":  proxySeller,
	"proxies.sx":   proxiesSX,
	"iproyal":      ipRoyal,
	"evomi":        evomi,
	"packetstream": packetStream,
	"rayobyte":     rayobyte,
}

// Parse reads a credential as the gateway of a seller does.
func Parse(profile, user, password string) (Wanted, error) {
	f, ok := parsers[profile]
	if !ok {
		return Wanted{}, fmt.Errorf("no gateway is called %q", profile)
	}
	w, err := f(user, password)
	if err == nil && (w.Account == "" || w.Password == "") {
		err = errors.New("no account or no password")
	}
	if err == nil && w.City != "" && w.Country == "" {
		err = errors.New("a city without a country")
	}
	return w, err
}

// scan reads keys and values. An unknown, repeated or empty one is an error.
type scan struct {
	got map[string]string
	err error
}

// flat reads key, value, key, value.
func flat(parts []string, keys string) *scan {
	s := &scan{got: map[string]string{}}
	if len(parts)%2 != 0 {
		s.fail("a key has no value")
	}
	for i := 0; i+1 < len(parts); i += 2 {
		s.add(parts[i], parts[i+1], keys)
	}
	return s
}

// joined reads parts that are a key and a value with a separator between them.
func joined(parts []string, sign, keys string) *scan {
	s := &scan{got: map[string]string{}}
	for _, p := range parts {
		k, v, ok := strings.Cut(p, sign)
		if !ok {
			s.fail("%q has no value", p)
		}
		s.add(k, v, keys)
	}
	return s
}

func (s *scan) add(key, value, keys string) {
	_, twice := s.got[key]
	switch {
	case twice:
		s.fail("%q is there twice", key)
	case value == "":
		s.fail("%q is empty", key)
	case !strings.Contains(" "+keys+" ", " "+key+" "):
		s.fail("%q is no key", key)
	}
	s.got[key] = value
}

func (s *scan) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// lower and upper read a country code of one case.
func (s *scan) lower(key string) string { return s.code(key, 'a', 'z') }
func (s *scan) upper(key string) string { return s.code(key, 'A', 'Z') }

func (s *scan) code(key string, from, to rune) string {
	v := s.got[key]
	if v != "" && (len(v) != 2 || strings.ContainsFunc(v, func(c rune) bool { return c < from || c > to })) {
		s.fail("%q is no country code of this gateway", v)
	}
	return strings.ToUpper(v)
}

// id reads a session of letters and digits of a length.
func (s *scan) id(key string, least, most int) string {
	v := s.got[key]
	if v == "" {
		return ""
	}
	foreign := strings.ContainsFunc(v, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if foreign || len(v) < least || len(v) > most {
		s.fail("%q is no session of this gateway", v)
	}
	return v
}

// number reads a count from least to most; it is std if absent.
func (s *scan) number(key string, least, most, std int) int {
	v, ok := s.got[key]
	if !ok {
		return std
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most || strconv.Itoa(n) != v {
		s.fail("%s %q is not %d to %d", key, v, least, most)
	}
	return n
}

// needs returns an error for a key without its companion.
func (s *scan) needs(key, companion string) {
	_, ok := s.got[key]
	if _, with := s.got[companion]; ok && !with {
		s.fail("%s without %s", key, companion)
	}
}
