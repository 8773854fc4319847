package iproyal

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// product is a product of GET /products.
type product struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name"`
	Plans     []plan     `json:"plans"`
	Locations []place    `json:"locations"`
	Questions []question `json:"questions"`
}

type plan struct {
	ID    int64       `json:"id"`
	Name  string      `json:"name"` // "30 Days"
	Price rest.Number `json:"price"`
	Min   *int        `json:"min_quantity"`
	Max   *int        `json:"max_quantity"`
}

// place is a country, or a city below one. Its count of addresses may be missing.
type place struct {
	ID         int64   `json:"id"`
	Name       string  `json:"name"`
	OutOfStock *bool   `json:"out_of_stock"`
	Count      *int    `json:"available_proxies_count"`
	Children   []place `json:"child_locations"`
}

type question struct {
	ID       int64  `json:"id"`
	Text     string `json:"text"`
	Required *bool  `json:"is_required"`
}

var planDays = regexp.MustCompile(`^\s*([0-9]{1,4})\s*[Dd]ays?\s*$`)

// days returns the term of a plan, which only its name contains; it is 0 for a plan
// that is not sold by days.
func (p plan) days() int {
	m := planDays.FindStringSubmatch(p.Name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// stock returns whether that number of addresses is available. A flag without a count
// promises one address.
func (p place) stock(quantity int) procurement.Stock {
	switch {
	case p.OutOfStock != nil && *p.OutOfStock, p.Count != nil && *p.Count < quantity:
		return procurement.StockNo
	case p.Count != nil, p.OutOfStock != nil && quantity == 1:
		return procurement.StockYes
	}
	return procurement.StockUnknown
}

func (p *Provider) products(ctx context.Context) ([]product, error) {
	var out rest.Unwrapped[[]product]
	if err := p.reseller.Call(ctx, rest.Safely, http.MethodGet, "/products", nil, &out); err != nil {
		return nil, err
	}
	return out.Value, nil
}

// selection is what an order refers to by numbers.
type selection struct {
	product product
	plan    plan
	place   place
}

// selectProduct looks up the product, plan and place of an intent. It fails with
// Invalid if the catalogue lacks one of them; a place is never widened.
func (p *Provider) selectProduct(ctx context.Context, in procurement.Intent) (selection, error) {
	list, err := p.products(ctx)
	if err != nil {
		return selection{}, err
	}
	var g selection
	i := slices.IndexFunc(list, func(x product) bool { return strconv.FormatInt(x.ID, 10) == in.SKU })
	if i < 0 {
		return selection{}, procurement.Refuse(procurement.Invalid, "no product has the number "+rest.OneLine(in.SKU))
	}
	g.product = list[i]
	i = slices.IndexFunc(g.product.Plans, func(x plan) bool { return x.days() == in.Days && in.Days > 0 })
	if i < 0 {
		return selection{}, procurement.Refuse(procurement.Invalid, "the product has no plan of "+
			strconv.Itoa(in.Days)+" days")
	}
	g.plan = g.product.Plans[i]
	if q := in.Quantity; q < 1 || g.plan.Min != nil && q < *g.plan.Min ||
		g.plan.Max != nil && *g.plan.Max > 0 && q > *g.plan.Max {
		return selection{}, procurement.Refuse(procurement.Invalid, "the plan is not sold in this quantity")
	}
	for _, q := range g.product.Questions {
		if q.Required != nil && *q.Required && p.answers[strconv.FormatInt(q.ID, 10)] == nil {
			return selection{}, procurement.Refuse(procurement.Invalid,
				"the product has a question to answer in options.answers: "+strconv.FormatInt(q.ID, 10)+" "+rest.OneLine(q.Text))
		}
	}
	g.place, err = p.findPlace(g.product, in.Location)
	return g, err
}

// findPlace looks up a location by its configured number, else by the English name of
// the country and the name of the city below it.
func (p *Provider) findPlace(product product, l session.Location) (place, error) {
	if id := p.placeID(l); id != "" {
		for _, c := range product.Locations {
			for _, x := range append([]place{c}, c.Children...) {
				if strconv.FormatInt(x.ID, 10) == id {
					return x, nil
				}
			}
		}
		return place{}, procurement.Refuse(procurement.Invalid, "the product has no location "+id)
	}
	if l.Country == "" {
		return place{}, procurement.Refuse(procurement.Invalid, "addresses are sold by country")
	}
	i := slices.IndexFunc(product.Locations, func(x place) bool { return countryOf(x.Name) == l.Country })
	if i < 0 {
		return place{}, procurement.Refuse(procurement.Invalid, "the product is not sold in "+rest.OneLine(l.Country))
	}
	country := product.Locations[i]
	if l.City == "" {
		return country, nil
	}
	var cities []place
	for _, c := range country.Children {
		if citySlug(c.Name) == slug(l.City) {
			cities = append(cities, c)
		}
	}
	switch len(cities) {
	case 0:
		return place{}, procurement.Refuse(procurement.Invalid, "the product is not sold in the city "+rest.OneLine(l.City))
	case 1:
		return cities[0], nil
	}
	return place{}, procurement.Refuse(procurement.Invalid, "several locations are called "+rest.OneLine(l.City)+
		": configure one by its number")
}

// placeID returns the configured number of a place; it is empty if there is none.
func (p *Provider) placeID(l session.Location) string {
	if l.City == "" {
		return p.config.Locations[l.Country]
	}
	for name, id := range p.config.Locations {
		country, city, _ := strings.Cut(name, "/")
		if country == l.Country && city != "" && slug(city) == slug(l.City) {
			return id
		}
	}
	return ""
}

// addressOffers lists the catalogue without places that are neither countries nor
// configured.
func (p *Provider) addressOffers(ctx context.Context) ([]procurement.Offer, error) {
	list, err := p.products(ctx)
	if err != nil {
		return nil, err
	}
	configured := map[string]session.Location{}
	for name, id := range p.config.Locations {
		country, city, _ := strings.Cut(name, "/")
		configured[id] = session.Location{Country: country, City: city}
	}
	var offers []procurement.Offer
	for _, product := range list {
		var days []int
		for _, plan := range product.Plans {
			if d := plan.days(); d > 0 {
				days = append(days, d)
			}
		}
		slices.Sort(days)
		if len(days) == 0 {
			continue // nothing in it is sold by days
		}
		i := slices.IndexFunc(product.Plans, func(x plan) bool { return x.days() == days[0] })
		cost, _ := product.Plans[i].Price.Cost()
		add := func(x place, l session.Location) {
			if at, ok := configured[strconv.FormatInt(x.ID, 10)]; ok {
				l = at
			}
			if l.Country == "" {
				return
			}
			o := procurement.Offer{SKU: strconv.FormatInt(product.ID, 10), Type: session.Static, Name: product.Name, Location: l,
				Days: days, Stock: x.stock(1), Cost: cost}
			if x.Count != nil {
				o.Count = *x.Count
			}
			offers = append(offers, o)
		}
		for _, c := range product.Locations {
			code := countryOf(c.Name)
			add(c, session.Location{Country: code})
			for _, child := range c.Children {
				if code != "" {
					add(child, session.Location{Country: code, City: citySlug(child.Name)})
				}
			}
		}
	}
	return offers, nil
}
