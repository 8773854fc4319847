package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentproxy/adapters/apiclient"
)

type productsCommand struct {
	Type    string `enum:"dynamic,static,all" default:"all" help:"dynamic, static or all."`
	Country string `help:"Only what is sold there; ISO 3166-1 alpha-2."`
}

// Run lists what is sold.
func (p productsCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	list, err := service.ListPublicProducts(ctx, apiclient.ListPublicProducts{PageSize: 100, AvailableOnly: true,
		Type: apiclient.SessionTypeFilter(p.Type), CountryCode: p.Country}, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		var rows [][]string
		for _, p := range list.Items {
			places := strings.Join(p.Countries[:min(len(p.Countries), 6)], ",")
			if more := len(p.Countries) - 6; more > 0 {
				places += fmt.Sprintf(" +%d", more)
			}
			rows = append(rows, []string{p.ProductNo, string(p.Type), p.Price.String() + " USD/" + string(p.Unit), places})
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
	requirement
}

// session returns what the create call takes. Without any amount the product decides which one is missing.
func (b purchase) session(ctx context.Context, service *service) (apiclient.CreateSession, error) {
	if b.GB == "" && b.Quantity == 0 && b.Days == 0 {
		if err := b.needsDays(ctx, service); err != nil {
			return apiclient.CreateSession{}, err
		}
	}
	config := apiclient.CreateConfig{ProductNo: b.Product, TrafficGB: json.Number(b.GB), DurationDays: max(b.Days, 0),
		Country: b.Country, City: b.City}
	kind := apiclient.SessionTypeDynamic
	if b.Days > 0 || b.Quantity > 0 {
		kind = apiclient.SessionTypeStatic
		config.Quantity = json.Number(strconv.Itoa(max(b.Quantity, 1)))
	}
	if !areNumbers(config.TrafficGB) {
		return apiclient.CreateSession{}, errNumbers
	}
	rule, err := b.rule()
	return apiclient.CreateSession{Type: kind, Config: config, Require: rule}, err
}

// needsDays refuses a product that is sold by IPs and days.
func (b purchase) needsDays(ctx context.Context, service *service) error {
	list, err := service.ListPublicProducts(ctx, apiclient.ListPublicProducts{PageSize: 100, Type: "static"})
	if err != nil {
		return err
	}
	for _, p := range list.Items {
		if p.ProductNo == b.Product {
			var days []string
			for _, d := range p.Durations {
				days = append(days, strconv.Itoa(d.DurationDays))
			}
			return fmt.Errorf("%w: %s is sold by IPs and days: give --quantity and --days (%s)", errMisuse, p.ProductNo,
				strings.Join(days, ", "))
		}
	}
	return nil
}

var errNumbers = fmt.Errorf("%w: --gb and --max-cost take a number", errMisuse)

type quoteCommand struct{ purchase }

// Run prints the cost of a purchase.
func (q quoteCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in, err := q.session(ctx, service)
	if err != nil {
		return err
	}
	var kept apiclient.Answer
	d, err := service.CreateSessionDryRun(ctx, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		leaves := ""
		if d.BalanceAfter != nil { // a key with its own sessions alone does not see it
			leaves = ", leaves " + d.BalanceAfter.String() + " USD"
		}
		fmt.Fprintf(w, "cost %s USD%s\n", d.Cost, leaves)
	})
}

type buyCommand struct {
	purchase
	payment
}

// Run buys a session. Without --max-cost it asks on a terminal, and refuses in a pipe.
func (b buyCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in, err := b.session(ctx, service)
	if err != nil {
		return err
	}
	in.Config.MaxCost, err = b.bound(s, func() (apiclient.DryRun, error) { return service.CreateSessionDryRun(ctx, in) })
	if err != nil {
		return err
	}
	if !areNumbers(in.Config.MaxCost) {
		return errNumbers
	}
	in.IdempotencyKey = b.id()
	var kept apiclient.Answer
	bought, err := service.CreateSession(ctx, in, apiclient.Keep(&kept))
	return c.show(s, kept, b.repeat(err), func(w io.Writer) {
		fmt.Fprintf(w, "%s\t%s\n", bought.SessionID, bought.Status)
	})
}
