package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
)

type productsCommand struct {
	Type    string `enum:"dynamic,static,all" default:"all" help:"dynamic, static or all."`
	Country string `help:"Only what is sold there; ISO 3166-1 alpha-2."`
}

type productData struct {
	ProductNo string      `json:"product_no"`
	Type      string      `json:"type"`
	Price     json.Number `json:"price"`
	Unit      string      `json:"unit"`
	Countries []string    `json:"countries"`
	Durations []struct {
		Days int `json:"duration_days"`
	} `json:"durations"`
	Available bool `json:"available"`
}

// Run lists what is sold.
func (p productsCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	query := url.Values{"page_size": {"100"}, "type": {p.Type}, "available_only": {"true"}}
	if p.Country != "" {
		query.Set("country_code", p.Country)
	}
	var list struct{ Items []productData }
	data, err := service.read(ctx, "GET", "/public/products?"+query.Encode(), "", nil, &list)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		var rows [][]string
		for _, p := range list.Items {
			places := strings.Join(p.Countries[:min(len(p.Countries), 6)], ",")
			if more := len(p.Countries) - 6; more > 0 {
				places += fmt.Sprintf(" +%d", more)
			}
			rows = append(rows, []string{p.ProductNo, p.Type, p.Price.String() + " USD/" + p.Unit, places})
		}
		table(w, []string{"product", "type", "price", "places"}, rows)
	})
}

// purchase describes a session to buy.
type purchase struct {
	Product  string `arg:"" help:"A product of apx products."`
	GB       string `name:"gb" help:"Traffic of a dynamic session."`
	Quantity int    `help:"IPs of a static session."`
	Days     int    `help:"Days of a static session."`
	Country  string `help:"ISO 3166-1 alpha-2."`
	City     string `help:"A city of the product."`
}

// body returns the body of the create call.
func (b purchase) body(maxCost string) (map[string]any, error) {
	kind := "dynamic"
	if b.Days > 0 || b.Quantity > 0 {
		kind = "static"
	}
	config := map[string]any{"product_no": b.Product}
	if b.GB != "" {
		config["traffic_gb"] = json.Number(b.GB)
	}
	if b.Quantity > 0 || kind == "static" {
		config["quantity"] = max(b.Quantity, 1)
	}
	if b.Days > 0 {
		config["duration_days"] = b.Days
	}
	if b.Country != "" {
		config["country"] = b.Country
	}
	if b.City != "" {
		config["city"] = b.City
	}
	if maxCost != "" {
		config["max_cost"] = json.Number(maxCost)
	}
	if _, err := json.Marshal(config); err != nil {
		return nil, fmt.Errorf("%w: --gb and --max-cost take a number", errMisuse)
	}
	return map[string]any{"type": kind, "config": config}, nil
}

type quoteData struct {
	Cost    json.Number `json:"cost"`
	Balance json.Number `json:"balance_after"`
}

type quoteCommand struct{ purchase }

// Run prints the cost of a purchase.
func (q quoteCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body, err := q.body("")
	if err != nil {
		return err
	}
	var cost quoteData
	data, err := service.read(ctx, "POST", "/sessions?dry_run=true", "", body, &cost)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { fmt.Fprintf(w, "cost %s USD, leaves %s USD\n", cost.Cost, cost.Balance) })
}

type buyCommand struct {
	purchase
	payment
}

// Run buys a session. Without --max-cost it asks on a terminal, and refuses in a pipe.
func (b buyCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body, err := b.body("")
	if err != nil {
		return err
	}
	most, err := b.bound(ctx, service, s, "/sessions", body)
	if err != nil {
		return err
	}
	if body, err = b.body(most); err != nil {
		return err
	}
	var bought sessionData
	data, err := b.pay(ctx, service, "/sessions", body, &bought)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { fmt.Fprintf(w, "%s\t%s\n", bought.ID, bought.Status) })
}
