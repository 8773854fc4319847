package doctor

import (
	"fmt"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Seller is a provider that was asked what it sells.
type Seller struct {
	Name    string
	Offers  []procurement.Offer
	Balance procurement.ProviderBalance
	Err     error
}

// Sellers checks the providers by their answers, and the prices of products by what they cost there
// now.
func Sellers(sellers []Seller, products []catalog.Product) (f Findings) {
	for _, s := range sellers {
		switch {
		case s.Err != nil:
			f.add(Error, "provider", "The provider "+s.Name+" does not answer as it should: "+procurement.ReasonOf(s.Err)+".",
				"Orders there fail, and what was bought there cannot be watched.", "Check its credential and address; agentproxy "+
					"providers check "+s.Name+" asks again.")
		case s.Balance.Known && s.Balance.Amount <= 0:
			f.add(Warning, "provider", "You have "+s.Balance.Amount.String()+" at "+s.Name+".", "Orders there are refused.",
				"Pay in there.")
		default:
			f.ok("provider", "The provider %s answers.", s.Name)
		}
		for _, p := range products {
			if price, cost := belowCost(p, s); cost > 0 {
				f.add(Error, "below_cost", fmt.Sprintf("%s is sold for %s USD and costs %s USD at %s now.", p.No, price, cost,
					s.Name),
					"Orders of it lose money or are refused.", "Raise the price, or state the cost of the source.")
			}
		}
	}
	return f
}

// belowCost returns the price of a product and what a provider asks for it, if that is more and not
// accepted by the operator.
func belowCost(p catalog.Product, s Seller) (price, cost domain.Money) {
	for _, from := range p.Sources {
		if from.Provider != s.Name || from.BelowCost {
			continue
		}
		for _, o := range s.Offers {
			if o.SKU != from.SKU || o.Type != p.Type || o.Location.Country != "" && !p.Sells(o.Location.Country) {
				continue
			}
			price := p.Price
			if p.Type == session.Static {
				if len(o.Days) == 0 {
					continue
				}
				var sold bool
				if price, sold = p.PriceFor(o.Days[0]); !sold {
					continue
				}
			}
			if o.Cost > price {
				return price, o.Cost
			}
		}
	}
	return 0, 0
}
