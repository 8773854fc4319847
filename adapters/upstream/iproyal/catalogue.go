package upstream

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// iproyalProduct is a product of GET /products.
type iproyalProduct struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name"`
	Plans     []iproyalPlan     `json:"plans"`
	Locations []iproyalPlace    `json:"locations"`
	Questions []iproyalQuestion `json:"questions"`
}

type iproyalPlan struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"` // "30 Days"
	Price figure `json:"price"`
	Min   *int   `json:"min_quantity"`
	Max   *int   `json:"max_quantity"`
}

// iproyalPlace is a country, or a city below one. How many addresses it has may
// not be told.
type iproyalPlace struct {
	ID         int64          `json:"id"`
	Name       string         `json:"name"`
	OutOfStock *bool          `json:"out_of_stock"`
	Count      *int           `json:"available_proxies_count"`
	Children   []iproyalPlace `json:"child_locations"`
}

type iproyalQuestion struct {
	ID       int64  `json:"id"`
	Text     string `json:"text"`
	Required *bool  `json:"is_required"`
}

var planDays = regexp.MustCompile(`^\s*([0-9]{1,4})\s*[Dd]ays?\s*$`)

// days is the term of a plan, which only its name tells; 0: another kind of term.
func (p iproyalPlan) days() int {
	m := planDays.FindStringSubmatch(p.Name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// stock is whether a number of addresses can be had. A flag without a count
// promises one.
func (l iproyalPlace) stock(quantity int) procurement.Stock {
	switch {
	case l.OutOfStock != nil && *l.OutOfStock, l.Count != nil && *l.Count < quantity:
		return procurement.StockNo
	case l.Count != nil, l.OutOfStock != nil && quantity == 1:
		return procurement.StockYes
	}
	return procurement.StockUnknown
}

func (p *iproyal) products(ctx context.Context) ([]iproyalProduct, error) {
	var out inData[[]iproyalProduct]
	if err := p.static.call(ctx, safely, http.MethodGet, "/products", nil, &out); err != nil {
		return nil, err
	}
	return out.V, nil
}

// goods are the numbers that an order is made of.
type goods struct {
	product iproyalProduct
	plan    iproyalPlan
	place   iproyalPlace
}

// goods looks up what an intent asks for; Invalid when it is not in the
// catalogue. Nothing is widened.
func (p *iproyal) goods(ctx context.Context, in procurement.Intent) (goods, error) {
	list, err := p.products(ctx)
	if err != nil {
		return goods{}, err
	}
	var g goods
	i := slices.IndexFunc(list, func(x iproyalProduct) bool { return strconv.FormatInt(x.ID, 10) == in.SKU })
	if i < 0 {
		return goods{}, procurement.Refuse(procurement.Invalid, "no product has the number "+plain(in.SKU))
	}
	g.product = list[i]
	i = slices.IndexFunc(g.product.Plans, func(x iproyalPlan) bool { return x.days() == in.Days && in.Days > 0 })
	if i < 0 {
		return goods{}, procurement.Refuse(procurement.Invalid, "the product has no plan of "+strconv.Itoa(in.Days)+" days")
	}
	g.plan = g.product.Plans[i]
	if q := in.Quantity; q < 1 || g.plan.Min != nil && q < *g.plan.Min || g.plan.Max != nil && *g.plan.Max > 0 && q > *g.plan.Max {
		return goods{}, procurement.Refuse(procurement.Invalid, "the plan is not sold in this quantity")
	}
	for _, q := range g.product.Questions {
		if q.Required != nil && *q.Required && p.answers[strconv.FormatInt(q.ID, 10)] == nil {
			return goods{}, procurement.Refuse(procurement.Invalid,
				"the product has a question to answer in options.answers: "+strconv.FormatInt(q.ID, 10)+" "+plain(q.Text))
		}
	}
	g.place, err = p.place(g.product, in.Location)
	return g, err
}

// place finds a location: by its configured number, else by the English name of
// the country and the name of the city below it.
func (p *iproyal) place(product iproyalProduct, l session.Location) (iproyalPlace, error) {
	if id := p.placeID(l); id != "" {
		for _, c := range product.Locations {
			for _, x := range append([]iproyalPlace{c}, c.Children...) {
				if strconv.FormatInt(x.ID, 10) == id {
					return x, nil
				}
			}
		}
		return iproyalPlace{}, procurement.Refuse(procurement.Invalid, "the product has no location "+id)
	}
	if l.Country == "" {
		return iproyalPlace{}, procurement.Refuse(procurement.Invalid, "addresses are sold by country")
	}
	i := slices.IndexFunc(product.Locations, func(x iproyalPlace) bool { return countryOf(x.Name) == l.Country })
	if i < 0 {
		return iproyalPlace{}, procurement.Refuse(procurement.Invalid, "the product is not sold in "+plain(l.Country))
	}
	country := product.Locations[i]
	if l.City == "" {
		return country, nil
	}
	var cities []iproyalPlace
	for _, c := range country.Children {
		if citySlug(c.Name) == slug(l.City) {
			cities = append(cities, c)
		}
	}
	switch len(cities) {
	case 0:
		return iproyalPlace{}, procurement.Refuse(procurement.Invalid, "the product is not sold in the city "+plain(l.City))
	case 1:
		return cities[0], nil
	}
	return iproyalPlace{}, procurement.Refuse(procurement.Invalid, "several locations are called "+plain(l.City)+": configure one by its number")
}

// placeID is the configured number of a place; empty: none.
func (p *iproyal) placeID(l session.Location) string {
	if l.City == "" {
		return p.spec.Locations[l.Country]
	}
	for name, id := range p.spec.Locations {
		country, city, _ := strings.Cut(name, "/")
		if country == l.Country && city != "" && slug(city) == slug(l.City) {
			return id
		}
	}
	return ""
}

// addressOffers lists the catalogue. What has no place that is known is left out.
func (p *iproyal) addressOffers(ctx context.Context) ([]procurement.Offer, error) {
	list, err := p.products(ctx)
	if err != nil {
		return nil, err
	}
	configured := map[string]session.Location{}
	for name, id := range p.spec.Locations {
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
			continue // addresses of another kind, or nothing that is sold by days
		}
		i := slices.IndexFunc(product.Plans, func(x iproyalPlan) bool { return x.days() == days[0] })
		cost, _ := product.Plans[i].Price.cost()
		add := func(x iproyalPlace, l session.Location) {
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
