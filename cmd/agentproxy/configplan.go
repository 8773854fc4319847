package main

import (
	"fmt"
	"slices"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/doctor"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/session"
)

// soldPlan is what a service with some settings sells, and where it is paid.
type soldPlan struct {
	sold      table
	addresses []string
	findings  doctor.Findings // about payments, as of doctor
}

// firstAddresses is how many addresses of payments are shown.
const firstAddresses = 3

func planOf(s configfile.Settings) (p soldPlan, err error) {
	p.sold = table{columns: []string{"code", "type", "term", "price", "cost", "margin", "seller",
		"countries", "available", "name"}}
	products, err := wire.Sold(s)
	if err != nil {
		return p, err
	}
	for _, x := range products {
		for _, from := range x.Sources {
			row := func(term string, price domain.Money, days int) {
				cost, margin := from.CostFor(days), ""
				if cost > 0 { // else it is unknown
					margin = (price - cost).String()
				}
				p.sold.add(x.No, x.Type, term, price.String(), amountText(cost), margin, from.Provider,
					countries(from, x.Countries), x.Available, x.Name)
			}
			if x.Type == session.Dynamic {
				row("GB", x.Price, 0)
			}
			for _, d := range x.Durations {
				row(fmt.Sprint(d.Days, " days"), d.Price, d.Days)
			}
		}
	}
	if p.addresses, err = wire.FirstAddresses(s, firstAddresses); err != nil {
		return p, err
	}
	for _, f := range doctor.Settings(s) {
		if f.Check == "payments" {
			p.findings = append(p.findings, f)
		}
	}
	return p, nil
}

// countries returns where a source sells.
func countries(from procurement.Source, all []string) words {
	if from.Countries != nil {
		return from.Countries
	}
	return all
}

// print prints the plan as text.
func (p soldPlan) print(k *kit) error {
	if len(p.sold.rows) > 0 {
		fmt.Fprintln(k.out, "\nSold:")
		short := table{columns: p.sold.columns}
		for _, row := range p.sold.rows {
			row = slices.Clone(row)
			if list := row[7].(words); len(list) > 5 {
				row[7] = count(len(list), "place")
			}
			short.rows = append(short.rows, row)
		}
		if err := short.print(k); err != nil {
			return err
		}
	}
	if len(p.addresses) > 0 {
		fmt.Fprintln(k.out, "\nThe first addresses that payments go to; compare them with those of your wallet:")
		for i, a := range p.addresses {
			fmt.Fprintf(k.out, "  %d  %s\n", recharge.FirstIndex+i, a)
		}
	}
	for _, f := range p.findings {
		if f.Level != doctor.OK {
			fmt.Fprintf(k.out, "\n%s: %s %s %s\n", f.Level, f.What, f.Why, f.Do)
		}
	}
	return nil
}
