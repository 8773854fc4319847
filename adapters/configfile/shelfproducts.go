package configfile

import (
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/upstream/country"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// The bounds of a product that names none, as the embedded catalogue has them.
const (
	minTraffic = billing.GB / 10
	maxTraffic = 1000 * billing.GB
)

// product reads one product. False: it has faults that leave nothing to check
// further.
func (r *shelfReader) product(v value) (catalog.Product, bool) {
	m := v.fields("code", "name", "description", "type", "price", "durations", "countries", "cities", "min_traffic_gb", "max_traffic_gb",
		"min_quantity", "max_quantity", "provisioning", "direct", "allow_below_cost", "sources")
	p := catalog.Product{
		No:          m.need("code", "agents order the product by it").text(),
		Name:        m.need("name", "what agents read").text(),
		Description: m.get("description").text(),
		Type:        session.Type(m.need("type", "dynamic or static").text()),
		Direct:      m.get("direct").truth(false),
		Available:   true, MinQuantity: 1, MaxQuantity: 1,
	}
	if first, used := r.codes[p.No]; used && p.No != "" {
		m.get("code").fault("is the code of the product of line %d too", first)
	} else {
		r.codes[p.No] = v.line
	}
	if !r.shelf.WithoutEmbedded && slices.Contains(embedded.Codes(), p.No) {
		m.get("code").fault("is a code of the embedded catalogue; take another, or set embedded: false")
	}
	switch p.Type {
	case session.Dynamic:
		p.Price = m.need("price", "US dollars a GB").money()
		p.MinBytes, p.MaxBytes = gigabytes(m.get("min_traffic_gb"), minTraffic), gigabytes(m.get("max_traffic_gb"), maxTraffic)
		refuse(m, p.Type, "durations", "min_quantity", "max_quantity")
	case session.Static:
		p.Durations = durations(m.need("durations", "days, and the price of an IP for so many"))
		p.MinQuantity = m.get("min_quantity").whole(1, session.MaxQuantity, 1)
		p.MaxQuantity = m.get("max_quantity").whole(1, session.MaxQuantity, session.MaxQuantity)
		refuse(m, p.Type, "price", "min_traffic_gb", "max_traffic_gb")
	default:
		if at := m.get("type"); at.given() && !at.faulty() {
			at.fault("must be dynamic or static")
		}
		return p, false
	}
	p.Countries, p.Cities = countries(m.get("countries")), cities(m.get("cities"))
	r.sources(m, &p)
	if len(p.Sources) == 0 {
		return p, false
	}
	r.places(m, &p)
	r.margins(m, p)
	r.provisioning(m, &p)
	return p, true
}

// refuse faults what a product of the type does not have.
func refuse(m fields, t session.Type, names ...string) {
	for _, n := range names {
		if v := m.get(n); v.given() {
			v.fault("a %s product has none", t)
		}
	}
}

// gigabytes reads GB with at most 3 decimals.
func gigabytes(v value, otherwise int64) int64 {
	text, ok := v.scalar()
	if !ok {
		return otherwise
	}
	milli, err := domain.ParseDecimal(text, 3)
	if err != nil || milli <= 0 || milli > 1_000_000_000 {
		v.fault("must be GB above 0 with at most 3 decimals, and at most a million")
		return otherwise
	}
	return milli * (billing.GB / 1000)
}

func durations(v value) []catalog.Duration {
	var list []catalog.Duration
	for _, item := range v.items() {
		m := item.fields("days", "price")
		list = append(list, catalog.Duration{
			Days:  m.need("days", "how long").whole(1, 3650, 0),
			Price: m.need("price", "US dollars an IP").money(),
		})
	}
	return list
}

// countries reads codes and sorts them; nil when none are given.
func countries(v value) []string {
	var list []string
	for _, item := range v.items() {
		code, ok := item.scalar()
		switch {
		case !ok:
		case !isCountry(code):
			item.fault("%s is no country: codes are of ISO 3166-1 alpha-2, in upper case; near it are %s", strconv.Quote(code),
				strings.Join(catalog.Nearest(code, country.Codes), ", "))
		case slices.Contains(list, code):
			item.fault("stands there twice")
		default:
			list = append(list, code)
		}
	}
	if v.given() && len(list) == 0 && !v.faulty() {
		v.fault("is empty; leave it out instead")
	}
	slices.Sort(list)
	return list
}

// cities reads codes; nil when they are not given, empty when the list is.
func cities(v value) []string {
	if !v.given() {
		return nil
	}
	list := []string{}
	for _, item := range v.items() {
		code, ok := item.scalar()
		switch {
		case !ok:
		case !cityCode.MatchString(code):
			item.fault("must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
		case slices.Contains(list, code):
			item.fault("stands there twice")
		default:
			list = append(list, code)
		}
	}
	return list
}

// places fills in what the product leaves to its sources, and refuses what would
// widen a place.
func (r *shelfReader) places(m fields, p *catalog.Product) {
	if m.get("sources").faulty() {
		return // nobody knows what was meant
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
			m.get(name).fault("is missing: sources[%d] names none, and nobody can tell whether it has those of the others", none)
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
			find(m.of, "sources["+strconv.Itoa(i)+"]").fault("has cities in %d countries, and nobody can tell which is where; write a source for each country", len(in))
		}
	}
}

// provisioning is sync or async.
func (r *shelfReader) provisioning(m fields, p *catalog.Product) {
	for _, s := range p.Sources {
		if made := r.sellers[s.Provider]; made != nil && made.Capabilities().Async {
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

// check adds what the catalogue refuses, at the line of the field. What was
// faulted already is not said again.
func (r *shelfReader) check(places []value) {
	type note struct {
		at   value
		text string
	}
	var notes []note
	for _, problem := range catalog.Problems(r.shelf.Products) {
		product := places[problem.Index]
		at := find(product, problem.Field)
		if problem.Field == "provider" { // that of the first source
			continue
		}
		if place := strings.HasPrefix(problem.Field, "countries") || strings.HasPrefix(problem.Field, "cities"); place && entry(product, "sources").faulty() {
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

// find is the part of a value at a path such as durations[1].price, or the
// nearest part around it that is there.
func find(v value, path string) value {
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
