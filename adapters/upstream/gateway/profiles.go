package gateway

import (
	"maps"
	"slices"
	"time"

	"agentproxy/domain/session"
)

// Profile is the grammar of a seller's gateway: the parameters that name an exit, in
// the user name or in the password of the proxy. It is data that Endpoint reads.
//
// Parameters are templates. {username}, {zone}, {package} and {network} are settings
// of the operator, {country} and {city} the place in the seller's spelling, {token}
// the session and {ttl} its time.
type Profile struct {
	host  string
	ports map[session.Protocol]uint16

	inPassword  bool   // the parameters follow the password, else the user name
	user        string // the user name in front of the parameters
	first, next string // in front of the first parameter; between parameters

	anywhere        []string // for no place in particular
	country, city   []string // for a place; nil if it cannot be asked for
	session, rotate []string // with a token, and without one
	ttl             lifetime
	number          numberRange // of numeric tokens; zero if tokens are sent as they are

	state  string   // for a state, behind the country; empty if it cannot be asked for
	asn    string   // for a network by its number; empty if it cannot be asked for
	strict []string // in place of session, where a lost exit is not replaced; nil if there is no such word
	// strictForever: a strict session takes no time.
	strictForever bool
	// lostStatus is what the seller documents as its answer to CONNECT when the exit of a strict
	// session is gone; 0 if it documents none.
	lostStatus int
	// freeState: the seller's spelling of a state may contain separators.
	freeState bool
	// asnAlone, asnInCountry: a network is asked for without a country, or only with one.
	asnAlone, asnInCountry bool

	tls    bool       // the seller documents TLS on the port of HTTP
	custom *templates // in place of all words; nil for a seller's profile

	networks     []exitNetwork // the first is the default; nil if there is one only
	upperCountry bool
	countryNames bool   // English names without spaces instead of codes
	cityGap      string // between the words of a city, or cityGapUnknown
	cityTitle    bool   // New-York instead of new-york
	cityLetters  bool   // no digits

	// separators are the characters of the grammar. A place that contains one is
	// refused.
	separators string
	// strictUser is set if the gateway splits the whole user name, so that the
	// account's part of it must not contain a separator either.
	strictUser bool
	unverified bool // known only from public code of customers
}

// cityGapUnknown is the cityGap of a seller that does not document how a name of two
// words is written.
const cityGapUnknown = "?"

// lifetime is the parameter for how long a session keeps its exit. It is zero
// for a gateway without such a parameter.
type lifetime struct {
	template string
	units    []timeUnit // from the longest to the shortest
	min, max time.Duration
}

// timeUnit is a length of time and the suffix of its count.
type timeUnit struct {
	length time.Duration
	suffix string
}

// numberRange is a range of numbers with both ends.
type numberRange struct{ min, max uint64 }

// exitNetwork is one of several kinds of exits of one account.
type exitNetwork struct {
	name string
	city bool // cities can be asked for
}

// profiles are the known gateways, by name.
var profiles = func() map[string]Profile {
	all := maps.Clone(userNameProfiles)
	maps.Copy(all, passwordProfiles)
	return all
}()

// Profiles returns the names of the known gateways, sorted, CustomProfile included.
func Profiles() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(profiles)), CustomProfile)))
}

// Named returns the profile of a name; it is zero for an unknown one.
func Named(name string) Profile { return profiles[name] }

// options returns the settings that the templates of the profile use.
func (p Profile) options() map[string]bool {
	used := map[string]bool{}
	templates := slices.Concat([]string{p.user, p.ttl.template}, p.anywhere, p.country, p.city, p.session, p.rotate)
	for _, t := range templates {
		for _, m := range placeholder.FindAllString(t, -1) {
			used[m[1:len(m)-1]] = true
		}
	}
	if len(p.networks) > 0 {
		used["network"] = true
	}
	return used
}
