package configfile

import (
	"errors"
	"slices"

	"agentproxy/domain/procurement"
)

// SellsNoExits reports whether the products of this host's own addresses are not sold because none is
// declared. In development mode loopback addresses are sold; elsewhere a target would see the host's one
// address in place of each.
func (s Settings) SellsNoExits() bool {
	return !s.Dev && len(s.Exits) == 0 && !s.Catalog.WithoutEmbedded
}

const exitsVariable = "AGENTPROXY_EXITS"

// noExits is what is warned of where SellsNoExits.
var noExits = Fault{Path: exitsVariable, Text: "declares no address of this host, so the embedded products are " +
	"not sold. List the host's public addresses with their places, such as 203.0.113.7@DE/berlin, or set embedded: " +
	"false in the file"}

// realPayments is what is warned of in development mode with payments that are real.
var realPayments = Fault{Path: "AGENTPROXY_DEV", Text: "development mode opens loopback targets and lifts limits, " +
	"while payments are real; remove AGENTPROXY_DEV, or the account key"}

// undelivered returns a fault for each product of the file with this host's own addresses as a source, of which there
// are none.
func undelivered(c CatalogConfig, embedded string) error {
	var faults []error
	for _, p := range c.Products {
		if slices.ContainsFunc(p.Sources, func(s procurement.Source) bool { return s.Provider == embedded }) {
			faults = append(faults, Fault{Path: exitsVariable,
				Text: "declares no address of this host, which is a source of the product " + p.No})
		}
	}
	return errors.Join(faults...)
}
