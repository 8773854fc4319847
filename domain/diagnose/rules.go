package diagnose

import (
	"regexp"
	"slices"
	"strings"
)

// place is where a failure happens.
type place uint8

// The places.
const (
	gateway place = iota // the gateway answers, and the event log lists it
	client               // before the gateway has identified the session, so that the event log has nothing
	target               // behind an open connection
)

// rule is a cause and how it shows.
type rule struct {
	name, what, do string
	retry          bool
	place          place

	codes    []string           // of the gateway's answers
	fix      string             // how how_to_fix of the answer begins; empty: any
	ipv6     bool               // the target is an IPv6 address
	message  string             // what the answer's message has beside the code
	statuses []int              // of the answer; none: any
	sure     *regexp.Regexp     // what a client's error has for this cause alone
	text     *regexp.Regexp     // what it has for this cause too
	reports  []string           // types of events that the agent reported
	browsers bool               // happens to browsers
	state    func(Session) bool // a state of the session that explains it
}

// refuses reports whether an event is an answer of the rule.
func (r *rule) refuses(e Event) bool {
	for _, code := range r.codes {
		if e.Code == code && strings.HasPrefix(e.HowToFix, r.fix) {
			return !r.ipv6 || isIPv6(e.Host)
		}
	}
	return false
}

// The beginnings of how_to_fix by which causes with one code differ. The gateway's answers use them.
const (
	FixName       = "check the spelling of the host name; names of private networks are not found"
	FixRefused    = "check host and port; "
	FixRoute      = "check the address; "
	FixReset      = "try again; if it happens again, "
	FixMalformed  = "the target's HTTP response is malformed; "
	FixNameSilent = "try again: the name servers "
	FixDenied     = "use another host, address or port"
	FixTrial      = "use a port that accounts on trial reach"
	FixOwnRule    = "use another target, or change the rule "
)

// oneOf returns what finds one of several texts, in any case.
func oneOf(texts ...string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + strings.Join(texts, "|"))
}

// rules are the causes. Where two have the same evidence the first wins.
var rules = slices.Concat(ofSession, beforeGateway, ofGateway, inTransit, behindConnection)
