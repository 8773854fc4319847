package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// listWithin is how long a seller may take to list what it sells.
const listWithin = 20 * time.Second

var errNoSeller = &domain.Error{Kind: domain.NotFound, Code: "PROVIDER_NOT_FOUND",
	Message: "the configuration has no seller of this name"}

// seller shows one provider: what it can do, which products it delivers, and what it sells at the moment.
func (c *Console) seller(r *http.Request) (page, error) {
	name := r.PathValue("name")
	p := page{Title: "Seller " + name}
	s, ok := c.use.Catalog.Provider(name)
	if !ok {
		return p, errNoSeller
	}
	state := c.sellers.states(r.Context(), c.use.Catalog.Providers(), c.use.Clock.Now())[name]
	ctx, cancel := context.WithTimeout(r.Context(), listWithin)
	defer cancel()
	offers, failed := s.Offers(ctx)
	t := &table{Columns: []string{"Its name", "Type", "Description", "Place", "Days", "Stock", "Count", "Cost"},
		Empty: "It does not list what it sells."}
	for _, o := range offers {
		t.Rows = append(t.Rows, row{Cells: []cell{text(o.SKU), text(string(o.Type)), text(o.Name),
			text(strings.TrimSpace(o.Location.Country + " " + o.Location.City)), text(strings.Trim(fmt.Sprint(o.Days), "[]")),
			text(string(o.Stock)), known(o.Count), price(o.Cost)}})
	}
	listed := section{Title: "What it sells at the moment", ID: "offers", Table: t}
	if procurement.ClassOf(failed) != procurement.Unsupported && failed != nil {
		listed.Note = "Its list could not be read: " + string(procurement.ClassOf(failed))
	}
	p.Sections = []section{{Facts: []figure{{Name: "Answers", Value: healthOf(state, procurement.Owed{})},
		{Name: "Balance", Value: plain(balanceOf(state))}, {Name: "Sells", Value: text(strings.Join(sells(s), ", "))},
		{Name: "Can", Value: text(strings.Join(ports.Can(s), ", "))}},
		Links: []button{{Text: "Its orders", Href: "/sellers?seller=" + name}, {Text: "Sessions that it sold",
			Href: "/sessions?seller=" + name}}},
		{Title: "Products that it delivers", ID: "products", Table: c.delivered(name)}, listed}
	return p, nil
}

// delivered lists the products that have a source at a seller, with what each costs there.
func (c *Console) delivered(seller string) *table {
	t := &table{Columns: []string{"Product", "Name", "Type", "Term", "Price", "Cost", "Available"},
		Empty: "No product is bought there."}
	for _, x := range c.use.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 1000}).Items {
		i := slices.IndexFunc(x.Sources, func(s procurement.Source) bool { return s.Provider == seller })
		if i < 0 {
			continue
		}
		available := cell{Text: "yes", Tag: "good"}
		if !x.Available {
			available = cell{Text: "no", Tag: "bad"}
		}
		add := func(term string, sold, cost domain.Money) {
			t.Rows = append(t.Rows, row{Cells: []cell{text(x.No), text(x.Name), text(string(x.Type)), text(term),
				usd(sold), price(cost), available}})
		}
		if x.Type == session.Dynamic {
			add("GB", x.Price, x.Sources[i].CostFor(0))
		}
		for _, d := range x.Durations {
			add(fmt.Sprint(d.Days, " days"), d.Price, x.Sources[i].CostFor(d.Days))
		}
	}
	return t
}

// price returns a cost, which may be unknown.
func price(m domain.Money) cell {
	if m == 0 {
		return cell{Text: "–", Num: true}
	}
	return cell{Text: ui.USD(m), Num: true}
}

// known returns a count, which may be unknown.
func known(n int) cell {
	if n == 0 {
		return cell{Text: "–", Num: true}
	}
	return number(n)
}

func sells(p ports.Provider) (kinds []string) {
	if _, ok := p.(ports.Dynamic); ok {
		kinds = append(kinds, "dynamic")
	}
	if _, ok := p.(ports.Static); ok {
		kinds = append(kinds, "static")
	}
	return kinds
}
