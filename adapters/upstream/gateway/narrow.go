package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"agentproxy/domain/country"
	"agentproxy/domain/session"
)

// narrowing restricts all sessions of an account: to a state of a country, to a network by
// its number, and to exits that are not replaced while a session lasts.
type narrowing struct {
	stateOf, state string // the country's code and the seller's spelling; empty: any
	asn            string
	strict         bool
}

var (
	asnForm   = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)
	stateForm = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
)

// narrowing returns what the options state, asn and strict restrict.
func (p Profile) narrowing(in Login) (n narrowing, err error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if in.State != "" {
		n.stateOf, n.state, _ = strings.Cut(in.State, "/")
		switch {
		case p.state == "":
			fault("options.state means nothing to the profile")
		case !country.Known(n.stateOf) || !stateForm.MatchString(n.state):
			fault("options.state must be a country and the seller's spelling of the state, such as US/california")
		case strings.ContainsAny(n.state, p.separators) && !p.freeState:
			fault("options.state holds a separator of the seller's grammar")
		}
	}
	if n.asn = in.ASN; n.asn != "" && p.asn == "" {
		fault("options.asn means nothing to the profile")
	} else if n.asn != "" && !asnForm.MatchString(n.asn) {
		fault("options.asn must be the number alone, such as 7922")
	}
	if n.strict = in.Strict; in.Strict && p.strict == nil {
		fault("options.strict means nothing to the profile")
	}
	return n, errors.Join(faults...)
}

// narrow stores the state and the network in values. An order for another country than the
// state's is refused: it would be delivered from anywhere.
func (p Profile) narrow(a Account, l session.Location, values map[string]string) error {
	values["state"], values["asn"] = a.state, a.asn
	switch {
	case a.state != "" && !strings.EqualFold(l.Country, a.stateOf):
		return invalid("the account is for a state of %s alone", a.stateOf)
	case a.asn != "" && p.asnAlone && l.Country != "":
		return invalid("the gateway takes a country or a network, not both")
	case a.asn != "" && p.asnInCountry && l.Country == "":
		return invalid("the gateway takes a network with its country alone")
	}
	return nil
}

// narrowed adds the words of the account to those of a place: the state behind its country,
// the network behind the place.
func (p Profile) narrowed(a Account, words []string) []string {
	words = slices.Clone(words)
	if a.state != "" {
		i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "{country}") })
		words = slices.Insert(words, i+1, p.state)
	}
	if a.asn != "" {
		words = append(words, p.asn)
	}
	return words
}
