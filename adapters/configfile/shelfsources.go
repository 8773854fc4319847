package configfile

import (
	"fmt"
	"slices"

	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// maxPreference is the last place that a source can be given.
const maxPreference = 1000

// sources reads where a product is bought.
func (r *shelfReader) sources(m fields, p *catalog.Product) {
	at := m.need("sources", "the providers that the product is bought of")
	for _, item := range at.items() {
		f := item.fields("provider", "sku", "preference", "cost", "costs", "countries", "cities")
		s := procurement.Source{SKU: f.get("sku").text(), Preference: f.get("preference").whole(0, maxPreference, 0),
			Countries: countries(f.get("countries")), Cities: cities(f.get("cities"))}
		s.Provider = r.source(f.need("provider", "the name of a provider"), *p)
		switch p.Type {
		case session.Dynamic:
			s.Cost = f.get("cost").money()
			refuse(f, p.Type, "costs")
		case session.Static:
			s.Costs = costs(f.get("costs"), *p)
			refuse(f, p.Type, "cost")
		}
		p.Sources = append(p.Sources, s)
	}
	if at.given() && len(p.Sources) == 0 && !at.faulty() {
		at.fault("is empty")
	}
}

// source reads the name of a provider, and whether it can deliver the product.
func (r *shelfReader) source(v value, p catalog.Product) string {
	name, ok := v.scalar()
	if !ok {
		return ""
	}
	if name == embedded.Name {
		if p.Direct {
			v.fault("the embedded provider cannot be given to agents directly: it sells through the gateway")
		}
		return name
	}
	made := r.sellers[name]
	if made == nil {
		switch {
		case !r.written[name]:
			v.fault("no provider has the name %q", name)
		case r.running != nil:
			v.fault("the provider %q was not there at the start: restart to sell it", name)
		}
		return name // written, and faulted there
	}
	if _, ok := made.(ports.Dynamic); !ok && p.Type == session.Dynamic {
		v.fault("the provider %q (%s) sells no traffic, so no dynamic product", name, r.shelf.Kind(name))
	}
	if _, ok := made.(ports.Static); !ok && p.Type == session.Static {
		v.fault("the provider %q (%s) sells no addresses, so no static product", name, r.shelf.Kind(name))
	}
	if p.Direct && !made.Capabilities().Direct {
		v.fault("the provider %q (%s) cannot be given to agents directly: its credential is not one order's alone", name, r.shelf.Kind(name))
	}
	return name
}

// costs reads what an IP costs by duration.
func costs(v value, p catalog.Product) []procurement.Term {
	var list []procurement.Term
	for _, item := range v.items() {
		m := item.fields("days", "cost")
		days := m.need("days", "a duration of the product")
		t := procurement.Term{Days: days.whole(1, 3650, 0), Cost: m.need("cost", "US dollars an IP").money()}
		switch _, sold := p.PriceFor(t.Days); {
		case t.Days == 0:
		case !sold:
			days.fault("the product has no duration of %d days", t.Days)
		case slices.ContainsFunc(list, func(o procurement.Term) bool { return o.Days == t.Days }):
			days.fault("stands there twice")
		}
		list = append(list, t)
	}
	return list
}

// margins refuses a price below what a source takes, unless that is allowed. An
// unknown cost is below nothing, and a warning.
func (r *shelfReader) margins(m fields, p catalog.Product) {
	allowed := m.get("allow_below_cost").truth(false)
	judge := func(field string, price, cost domain.Money, source int) {
		if price > 0 && cost > price && !allowed {
			find(m.of, field).fault("%s USD is below the cost of %s USD of sources[%d]; allow_below_cost: true sells at a loss", price, cost, source)
		}
	}
	for i, s := range p.Sources {
		told := s.Cost > 0
		judge("price", p.Price, s.Cost, i)
		if p.Type == session.Static {
			told = true
			for j, d := range p.Durations {
				cost := s.CostFor(d.Days)
				told = told && cost > 0
				judge(fmt.Sprintf("durations[%d].price", j), d.Price, cost, i)
			}
		}
		if !told && s.Provider != embedded.Name { // which costs nothing
			at := find(m.of, fmt.Sprintf("sources[%d]", i))
			r.shelf.Warnings = append(r.shelf.Warnings, Fault{at.doc.file, at.line, at.path,
				"no cost is told, so nobody can tell whether the product is sold at a loss"})
		}
	}
}
