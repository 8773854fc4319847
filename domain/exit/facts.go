// Package exit has the facts that are measured about exits: where an address is, whose network it is in and
// which lists it is on, and the risk that follows.
package exit

import (
	"net/netip"
	"slices"
	"time"
)

// Network is the kind of network that an address is in.
type Network string

// The kinds of networks. The zero value is a kind that is not known.
const (
	Residential Network = "residential" // of households
	Mobile      Network = "mobile"      // of phones
	ISP         Network = "isp"         // assigned to an access provider, used by a server
	Hosting     Network = "hosting"     // of a data centre
)

// Networks are the kinds of networks that can be known, by rising risk.
var Networks = []Network{Residential, Mobile, ISP, Hosting}

// Known is what sources have about an address. The zero value of a field means that no source has it.
type Known struct {
	Country  string // ISO 3166-1 alpha-2, in upper case
	Region   string // the largest subdivision, in English
	City     string // in English
	Timezone string // a name of the IANA database, as Europe/Berlin
	ASN      uint32
	ASName   string // the organization that announces the address
	Network  Network
	// Listed are the labels of the lists that the address is on, sorted. It is nil while no list has answered, and
	// empty if the address is on none.
	Listed []string
	// Disputed is set if two sources have different countries.
	Disputed bool
}

// Add takes the facts of one more source. Of a fact that both have the first stays, so sources are added in
// the order of their rank; lists add up.
func (k *Known) Add(more Known) {
	k.Disputed = k.Disputed || more.Disputed || k.Country != "" && more.Country != "" && k.Country != more.Country
	first(&k.Country, more.Country)
	first(&k.Region, more.Region)
	first(&k.City, more.City)
	first(&k.Timezone, more.Timezone)
	first(&k.ASN, more.ASN)
	first(&k.ASName, more.ASName)
	first(&k.Network, more.Network)
	if more.Listed == nil {
		return
	}
	listed := make([]string, 0, len(k.Listed)+len(more.Listed))
	listed = append(append(listed, k.Listed...), more.Listed...)
	slices.Sort(listed)
	k.Listed = slices.Compact(listed)
}

// first sets a fact that is not known yet.
func first[T comparable](fact *T, to T) {
	var unknown T
	if *fact == unknown {
		*fact = to
	}
}

// Measured is what is known about an exit whose address was seen by the service's own echo.
type Measured struct {
	Known
	IP       netip.Addr // that targets see
	At       time.Time  // of the measurement
	Declared string     // country that the exit was sold as; empty if none was
}

// Version returns the version of the address's protocol, 4 or 6.
func (m Measured) Version() int {
	if m.IP.Unmap().Is4() {
		return 4
	}
	return 6
}

// Agreed reports whether the sources agree on the country with each other and with what was sold. It is not known
// where there is no measured country, or only one source and nothing that was sold.
func (m Measured) Agreed() (agreed, known bool) {
	switch {
	case m.Disputed:
		return false, true
	case m.Country == "" || m.Declared == "":
		return false, false
	}
	return m.Country == m.Declared, true
}

// The weights of the risk. Their greatest sum is 100.
const (
	riskListed    = 40 // on one list
	riskListedAll = 15 // for each list more
	riskListedMax = 70 // of all lists
	riskDisagreed = 10
)

// riskOf has the weights of the kinds of networks.
var riskOf = map[Network]int{Residential: 0, Mobile: 0, ISP: 5, Hosting: 20}

// Risk returns how likely targets are to refuse the address, 0 to 100: the sum of the weights of the lists that it
// is on, of its kind of network, and of a place that is disputed or not the one sold. A sign that is not known
// adds nothing, and with neither lists nor a kind of network there is no risk to give. The weights are this
// project's own; docs/exits.md has what they are worth.
func (m Measured) Risk() (risk int, known bool) {
	if m.Listed == nil && m.Network == "" {
		return 0, false
	}
	if n := len(m.Listed); n > 0 {
		risk = min(riskListed+(n-1)*riskListedAll, riskListedMax)
	}
	risk += riskOf[m.Network]
	if agreed, known := m.Agreed(); known && !agreed {
		risk += riskDisagreed
	}
	return risk, true
}
