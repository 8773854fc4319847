package upstream

import (
	"maps"
	"slices"
	"time"

	"agentproxy/domain/session"
)

// profile is how a seller's gateway is told which exit is wanted: by words in
// the user name or in the password of the proxy. It is data; build reads it.
//
// Words are templates. {username}, {zone}, {package} and {network} are options
// of the operator, {country} and {city} the place in the seller's spelling,
// {token} the session and {ttl} its time.
type profile struct {
	host  string
	ports map[session.Protocol]uint16

	inPassword  bool   // the words follow the password, else the user name
	user        string // the user name before the words
	first, next string // before the first word; between words

	anywhere        []string // words of no place in particular
	country, city   []string // words of a place; nil: it cannot be asked for
	session, rotate []string // words with a token, and without one
	ttl             lifetime
	number          numberSpan // tokens are numbers; zero: they are as they come

	networks     []exitNetwork // the first is the default; nil: there is one
	upperCountry bool
	countryNames bool              // English names without spaces, not codes
	countryCodes map[string]string // codes that differ from those of ISO 3166-1
	cityGap      string            // between the words of a city; cityGapUnknown: it has one word
	cityTitle    bool              // New-York, else new-york
	cityLetters  bool              // no digits

	// separators are what the grammar is made of: no place, as an agent writes it,
	// holds one. nested are those that the operator may write in locations.
	separators, nested string
	// strictUser: the gateway splits the whole user name, so that the account's
	// part of it holds no separator either.
	strictUser bool
	unverified bool // known from public code of customers only
}

// cityGapUnknown: the seller does not tell how a name of two words is written.
const cityGapUnknown = "?"

// lifetime is the word for how long a session keeps its exit. The zero value:
// there is no such word, and nobody can ask for a time.
type lifetime struct {
	word     string
	units    []timeUnit // the longest that a time is a multiple of is written
	min, max time.Duration
}

// timeUnit is a length of time and what is written behind its count.
type timeUnit struct {
	length time.Duration
	suffix string
}

// numberSpan is a range of numbers, both ends included.
type numberSpan struct{ min, max uint64 }

// exitNetwork is a kind of exits that one account has beside others.
type exitNetwork struct {
	name string
	city bool // cities can be asked for
}

// profiles are the gateways that are known, by name.
var profiles = func() map[string]profile {
	all := maps.Clone(userNameProfiles)
	maps.Copy(all, passwordProfiles)
	return all
}()

// Profiles lists the names of the gateways that the kind "gateway" knows.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

// options are those that the words of the profile use.
func (p profile) options() map[string]bool {
	used := map[string]bool{}
	templates := slices.Concat([]string{p.user, p.ttl.word}, p.anywhere, p.country, p.city, p.session, p.rotate)
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
