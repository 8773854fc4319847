package configfile

import (
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// maxPreference is the last rank of a source.
const maxPreference = 1000

// sources reads the sources of a product.
func (l *loader) sources(m fields, p *catalog.Product) {
	at := m.need("sources")
	for _, item := range at.items() {
		f := item.fields(sourceKeys)
		s := procurement.Source{SKU: f.get("sku").text(), Preference: f.get("preference").integer(0, maxPreference, 0),
			Countries: l.countries(f.get("countries")), Cities: cities(f.get("cities")),
			BelowCost: m.get("allow_below_cost").boolean(false)}
		s.Provider = l.source(f.need("provider"), *p)
		switch p.Type {
		case session.Dynamic:
			s.Cost = f.get("cost").money()
			inapplicable(f, p.Type, "costs")
		case session.Static:
			s.Costs = costs(f.get("costs"), *p)
			inapplicable(f, p.Type, "cost")
		}
		p.Sources = append(p.Sources, s)
	}
	if p.Direct && p.Type == session.Dynamic {
		l.steps(m, p)
	}
	if at.given() && len(p.Sources) == 0 && !at.faulty() {
		at.fault("must not be empty")
	}
}

// steps sets the step of a direct product to the unit of its providers' caps. Bounds
// that the file leaves out are the nearest within the usual ones.
func (l *loader) steps(m fields, p *catalog.Product) {
	var units []int64
	for _, s := range p.Sources {
		if made := l.sellers[s.Provider]; made != nil {
			units = append(units, made.Capabilities().CapUnit)
		}
	}
	p.StepBytes = catalog.StepOf(units...)
	if !m.get("min_traffic_gb").given() {
		p.MinBytes = (p.MinBytes + p.StepBytes - 1) / p.StepBytes * p.StepBytes
	}
	if !m.get("max_traffic_gb").given() {
		p.MaxBytes = max(p.MaxBytes/p.StepBytes*p.StepBytes, p.MinBytes)
	}
}

// source reads the name of a provider, which must be able to deliver the product.
func (l *loader) source(v value, p catalog.Product) string {
	name, ok := v.scalar()
	if !ok {
		return ""
	}
	if name == l.EmbeddedProvider {
		if p.Direct {
			v.fault("the embedded provider cannot be used directly: it delivers through the gateway")
		}
		return name
	}
	made := l.sellers[name]
	if made == nil {
		switch {
		case !l.names[name]:
			v.fault("no provider is named %q", name)
		case l.Running != nil:
			v.fault("the provider %q was added after the start; restart agentproxy to sell from it", name)
		}
		return name // in the file, with a fault of its own
	}
	if _, ok := made.(ports.Dynamic); !ok && p.Type == session.Dynamic {
		v.fault("the provider %q (%s) sells no traffic, so it cannot deliver a dynamic product", name, l.config.Kind(name))
	}
	if _, ok := made.(ports.Static); !ok && p.Type == session.Static {
		v.fault("the provider %q (%s) sells no IP addresses, so it cannot deliver a static product", name,
			l.config.Kind(name))
	}
	if p.Direct && !made.Capabilities().Direct {
		v.fault("the provider %q (%s) cannot be used directly: its credential is shared by orders", name, l.config.Kind(name))
	}
	return name
}

// costs reads the cost of an IP address by duration.
func costs(v value, p catalog.Product) []procurement.Term {
	var list []procurement.Term
	for _, item := range v.items() {
		m := item.fields(costKeys)
		days := m.need("days")
		t := procurement.Term{Days: days.integer(1, 3650, 0), Cost: m.need("cost").money()}
		switch _, sold := p.PriceFor(t.Days); {
		case t.Days == 0:
		case !sold:
			days.fault("the product has no duration of %d days", t.Days)
		case slices.ContainsFunc(list, func(o procurement.Term) bool { return o.Days == t.Days }):
			days.fault("duplicate duration")
		}
		list = append(list, t)
	}
	return list
}

// margins refuses a price below the cost of a source, unless that is allowed. It
// warns of a cost that is unknown.
func (l *loader) margins(m fields, p catalog.Product) {
	allowed := m.get("allow_below_cost").boolean(false)
	compare := func(field string, price, cost domain.Money, source int) {
		if price > 0 && cost > price && !allowed {
			partAt(m.of, field).fault("%s USD is below the cost of %s USD of sources[%d]; set allow_below_cost: true to "+
				"sell at a loss",
				price, cost, source)
		}
	}
	for i, s := range p.Sources {
		known := s.Cost > 0
		compare("price", p.Price, s.Cost, i)
		if p.Type == session.Static {
			known = true
			for j, d := range p.Durations {
				cost := s.CostFor(d.Days)
				known = known && cost > 0
				compare(fmt.Sprintf("durations[%d].price", j), d.Price, cost, i)
			}
		}
		if !known && s.Provider != l.EmbeddedProvider { // which costs nothing
			at := partAt(m.of, fmt.Sprintf("sources[%d]", i))
			l.warnings = append(l.warnings, Fault{at.doc.file, at.line, at.path,
				"has no cost, so a price below the cost would not be noticed"})
		}
	}
}
