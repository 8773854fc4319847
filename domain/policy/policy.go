// Package policy decides which targets may be reached: by the rules of the operator, for
// accounts on trial, of a product and of a session, in this order. A rule is a host, a host with everything
// below it, a network, a port or a range of ports; a list denies what its rules match,
// or allows nothing else.
//
// Rules are checked twice. Name is asked before a name is looked up, Address about every
// address that may be dialled then. Names are canonical: ASCII in lower case without the
// final dot.
package policy

import (
	"net/netip"
	"strings"
)

// Layer is whose rules refuse a target.
type Layer string

// The layers, in the order in which they are checked.
const (
	Operator Layer = "operator"
	Trial    Layer = "trial" // the ports that accounts on trial reach
	Product  Layer = "product"
	Session  Layer = "session"
)

// Mode is what the rules of a session do.
type Mode string

// The modes. Report lets everything pass and records what Enforce would refuse.
const (
	Off     Mode = "off"
	Report  Mode = "report"
	Enforce Mode = "enforce"
)

// Modes lists every mode.
var Modes = []Mode{Off, Report, Enforce}

// Part is what of a target is refused.
type Part string

// The parts.
const (
	Host    Part = "host"
	Address Part = "address"
	Port    Part = "port"
)

// Denial is why a target is refused. The zero Denial means that it is not.
type Denial struct {
	Layer Layer
	// Rule is as it was written, in its canonical form; allow or ports if nothing there matches; of Trial all ports.
	Rule     string
	Reported bool // nothing is refused: the session's mode is Report
	Part     Part
}

// Refuses reports whether the target must not be reached.
func (d Denial) Refuses() bool { return d.Layer != "" && !d.Reported }

// Layers holds the rules that apply to a connection; nil rules refuse nothing.
type Layers struct {
	Operator, Trial, Product, Session *Rules
	Reports                           bool // the session's rules report instead of refusing
}

// Name checks a port and a canonical name before it is looked up. The name is empty for a
// target that is an address.
func (l Layers) Name(host string, port uint16) Denial {
	d := l.first(l.Operator.Name(host, port), l.Product.Name(host, port), l.Session.Name(host, port))
	if d.Layer != Operator && l.Trial.Name(host, port) != "" {
		d = Denial{Layer: Trial, Rule: strings.Join(l.Trial.ports.texts(), ", ")}
	}
	switch r := l.Of(d.Layer); {
	case d.Layer == "":
	case r.closes(host, port):
		d.Part = Port
	default:
		d.Part = Host
	}
	return d
}

// Address checks an address of a target; host is its name, empty if the target is an address. What
// Name refuses is not checked again.
func (l Layers) Address(host string, addr netip.Addr) Denial {
	d := l.first(l.Operator.Address(host, addr), l.Product.Address(host, addr), l.Session.Address(host, addr))
	if d.Layer != "" {
		d.Part = Address
	}
	return d
}

// first returns the first refusal of those of the layers.
func (l Layers) first(operator, product, session string) Denial {
	switch {
	case operator != "":
		return Denial{Layer: Operator, Rule: operator}
	case product != "":
		return Denial{Layer: Product, Rule: product}
	case session != "":
		return Denial{Layer: Session, Rule: session, Reported: l.Reports}
	}
	return Denial{}
}

// Of returns the rules of a layer, which may be nil.
func (l Layers) Of(layer Layer) *Rules {
	switch layer {
	case Operator:
		return l.Operator
	case Trial:
		return l.Trial
	case Product:
		return l.Product
	}
	return l.Session
}

// OnTrial returns the layers for a session whose account is on trial.
func (l Layers) OnTrial(s *Shared) Layers {
	if s != nil {
		l.Trial = s.Trial
	}
	return l
}

// Shared holds the rules of the operator, for accounts on trial, and those of products, by their codes. It is
// never changed: a reload replaces it.
type Shared struct {
	Operator *Rules
	Trial    *Rules // ports alone; nil: every port
	Products map[string]*Rules
}

// Layers returns the rules for a session of a product. A nil Shared has none.
func (s *Shared) Layers(product string, session *Rules, reports bool) Layers {
	l := Layers{Session: session, Reports: reports}
	if s != nil {
		l.Operator, l.Product = s.Operator, s.Products[product]
	}
	return l
}
