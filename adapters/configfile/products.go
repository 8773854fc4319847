package configfile

import (
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Bounds of a product that sets none, as in the embedded catalog.
const (
	minTraffic = billing.GB / 10
	maxTraffic = 1000 * billing.GB
)

// product reads one product. It returns false if faults leave nothing more to
// check.
func (l *loader) product(v value) (catalog.Product, bool) {
	m := v.fields(productKeys)
	p := catalog.Product{
		No:          m.need("code").text(),
		Name:        m.need("name").text(),
		Description: m.get("description").text(),
		Type:        session.Type(m.need("type").text()),
		Direct:      m.get("direct").boolean(false),
		Available:   true, MinQuantity: 1, MaxQuantity: 1,
	}
	if first, used := l.codes[p.No]; used && p.No != "" {
		m.get("code").fault("duplicate code: the product on line %d has it too", first)
	} else {
		l.codes[p.No] = v.line
	}
	if !l.config.WithoutEmbedded && slices.Contains(l.EmbeddedCodes, p.No) {
		m.get("code").fault("is a code of the embedded catalog; choose another, or set embedded: false")
	}
	switch p.Type {
	case session.Dynamic:
		p.Price = m.need("price").money()
		p.MinBytes, p.MaxBytes = gigabytes(m.get("min_traffic_gb"), minTraffic),
			gigabytes(m.get("max_traffic_gb"), maxTraffic)
		inapplicable(m, p.Type, "durations", "min_quantity", "max_quantity", "fair_use_gb")
	case session.Static:
		p.Durations = durations(m.need("durations"))
		p.MinQuantity = m.get("min_quantity").integer(1, session.MaxQuantity, 1)
		p.MaxQuantity = m.get("max_quantity").integer(1, session.MaxQuantity, session.MaxQuantity)
		p.FairUse = gigabytes(m.get("fair_use_gb"), 0)
		inapplicable(m, p.Type, "price", "min_traffic_gb", "max_traffic_gb")
	default:
		if at := m.get("type"); at.given() && !at.faulty() {
			at.fault("must be dynamic or static")
		}
		return p, false
	}
	p.Countries, p.Cities = l.countries(m.get("countries")), cities(m.get("cities"))
	l.sources(m, &p)
	if len(p.Sources) == 0 {
		return p, false
	}
	l.places(m, &p)
	l.margins(m, p)
	l.buyers(m, &p)
	if rules := l.productPolicy(m.get("policy")); rules != nil {
		l.config.Policy.Products[p.No] = rules
	}
	l.provisioning(m, &p)
	return p, true
}

// inapplicable adds a fault for each key that does not apply to the type of the
// product.
func inapplicable(m fields, t session.Type, names ...string) {
	for _, n := range names {
		if v := m.get(n); v.given() {
			v.fault("does not apply to a %s product", t)
		}
	}
}

// gigabytes reads GB with at most 3 decimals, in bytes.
func gigabytes(v value, otherwise int64) int64 {
	text, ok := v.scalar()
	if !ok {
		return otherwise
	}
	milli, err := domain.ParseDecimal(text, 3)
	if err != nil || milli <= 0 || milli > 1_000_000_000 {
		v.fault("must be a number of GB above 0 and at most 1000000, with at most 3 decimals")
		return otherwise
	}
	return milli * (billing.GB / 1000)
}

func durations(v value) []catalog.Duration {
	var list []catalog.Duration
	for _, item := range v.items() {
		m := item.fields(durationKeys)
		list = append(list, catalog.Duration{
			Days:  m.need("days").integer(1, 3650, 0),
			Price: m.need("price").money(),
		})
	}
	return list
}

// countries reads codes and sorts them. It returns nil if there are none.
func (l *loader) countries(v value) []string {
	var list []string
	for _, item := range v.items() {
		code, ok := item.scalar()
		switch {
		case !ok:
		case !l.isCountry(code):
			item.fault("%q is not a country code (ISO 3166-1 alpha-2, upper case); similar codes: %s", code,
				strings.Join(catalog.Nearest(code, l.Countries), ", "))
		case slices.Contains(list, code):
			item.fault("duplicate entry")
		default:
			list = append(list, code)
		}
	}
	if v.given() && len(list) == 0 && !v.faulty() {
		v.fault("must not be empty; remove the key instead")
	}
	slices.Sort(list)
	return list
}

// cities reads codes. It returns nil if the key is absent, and an empty list if
// that is empty.
func cities(v value) []string {
	if !v.given() {
		return nil
	}
	list := []string{}
	for _, item := range v.items() {
		code, ok := item.scalar()
		switch {
		case !ok:
		case !session.IsLabel(code):
			item.fault("must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
		case slices.Contains(list, code):
			item.fault("duplicate entry")
		default:
			list = append(list, code)
		}
	}
	return list
}

// places sets what the product leaves to its sources, and refuses places that a
// source might not have.
func (l *loader) places(m fields, p *catalog.Product) {
	if m.get("sources").faulty() {
		return // the sources are not known
	}
	union := func(name string, own []string, of func(i int) []string) []string {
		if own != nil || m.get(name).faulty() {
			return own
		}
		none, all := -1, []string(nil)
		for i := range p.Sources {
			list := of(i)
			if list == nil {
				none = i
			}
			all = append(all, list...)
		}
		if none >= 0 && len(all) > 0 {
			m.get(name).fault("is missing: sources[%d] has no such list, so the product needs one of its own", none)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	p.Countries = union("countries", p.Countries, func(i int) []string { return p.Sources[i].Countries })
	p.Cities = union("cities", p.Cities, func(i int) []string { return p.Sources[i].Cities })
	for i, s := range p.Sources {
		in, of := s.Countries, s.Cities
		if in == nil {
			in = p.Countries
		}
		if of == nil {
			of = p.Cities
		}
		if len(of) > 0 && len(in) > 1 {
			partAt(m.of, "sources["+strconv.Itoa(i)+"]").fault("has cities in %d countries; write one source for each country",
				len(in))
		}
	}
}

// keepAddresses has trial credit buy no fixed address where the file does not ask for it: free accounts would
// hold all of them for a month.
func keepAddresses(products []catalog.Product, asked map[string]bool) {
	for i, p := range products {
		if p.Type == session.Static && !asked[p.No] {
			products[i].OwnMoneyOnly = true
		}
	}
}

// buyers sets who may buy the product, and with what. A delivery costs nothing at the embedded provider
// alone: a cost that the file does not state is not 0.
func (l *loader) buyers(m fields, p *catalog.Product) {
	_, l.asked[p.No] = m.get("trial_credit").scalar()
	costs := slices.ContainsFunc(p.Sources, func(s procurement.Source) bool { return s.Provider != l.EmbeddedProvider })
	p.OwnMoneyOnly = !m.get("trial_credit").boolean(!costs)
	v := m.get("min_tier")
	if text, ok := v.scalar(); ok {
		if p.MinTier = account.Tier(text); !slices.Contains(account.Tiers, p.MinTier) {
			v.fault("must be trial, funded or verified")
		}
	}
}

// provisioning sets whether the product is delivered later: as its sources do,
// unless the file sets it.
func (l *loader) provisioning(m fields, p *catalog.Product) {
	for _, s := range p.Sources {
		if made := l.sellers[s.Provider]; made != nil && made.Capabilities().Async {
			p.Async = true
		}
	}
	v := m.get("provisioning")
	switch text, ok := v.scalar(); {
	case !ok:
	case text == "sync":
		p.Async = false
	case text == "async":
		p.Async = true
	default:
		v.fault("must be sync or async")
	}
}

// check adds what the catalog refuses, at the line of the field, unless the field
// has a fault already.
func (l *loader) check(places []value) {
	type note struct {
		at   value
		text string
	}
	var notes []note
	for _, problem := range catalog.Problems(l.config.Products) {
		product := places[problem.Index]
		at := partAt(product, problem.Field)
		if problem.Field == "provider" { // that of the first source
			continue
		}
		place := strings.HasPrefix(problem.Field, "countries") || strings.HasPrefix(problem.Field, "cities")
		if place && entry(product, "sources").faulty() {
			continue
		}
		if !at.faulty() {
			notes = append(notes, note{at, problem.Text})
		}
	}
	for _, n := range notes {
		n.at.fault("%s", n.text)
	}
}

// partAt returns the part of a value at a path such as durations[1].price, or the
// nearest part around it that exists.
func partAt(v value, path string) value {
	for part := range strings.SplitSeq(path, ".") {
		name, index, listed := strings.Cut(part, "[")
		v = entry(v, name)
		if !listed {
			continue
		}
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if list := v.items(); err == nil && i < len(list) {
			v = list[i]
		}
	}
	return v
}
