package main

import (
	"context"
	"fmt"

	"agentproxy/app/operator"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

type reportCmd struct {
	Margin reportMarginCmd `cmd:"" help:"Report what agents paid and what sellers took; exits with 1 if it is not what the ledger has."`
}

type reportMarginCmd struct {
	From string `help:"From this day (2026-11-01) or time (2026-11-01T12:00:00Z) on, UTC; default 30 days before --to."`
	To   string `help:"Until before this day or time; default now."`
	By   string `enum:"provider,product,agent,day" default:"day" help:"What a line is: provider, product, agent or day."`
}

// Run reports the margin.
func (c reportMarginCmd) Run(k *kit) error {
	from, err := moment("from", c.From)
	if err != nil {
		return err
	}
	to, err := moment("to", c.To)
	if err != nil {
		return err
	}
	return core(k, func(ctx context.Context, money *operator.Money) error {
		r, err := money.Margin(ctx, from, to, ports.MarginKey(c.By))
		if err != nil {
			return err
		}
		columns := []string{"charged", "refunded", "trial", "paid", "given", "cost", "estimated", "margin", "orders",
			"unpriced_orders", "unpriced_sessions", "replaced", "returned"}
		t, total := table{columns: append([]string{c.By}, columns...)}, table{columns: columns}
		for _, l := range r.Lines {
			key := l.Key
			if key == "" && !k.json { // what corrections gave, for one
				key = "(no " + c.By + ")"
			}
			t.add(append([]any{key}, marginCells(l.Margin)...)...)
		}
		total.add(marginCells(r.Total)...)
		if k.json {
			accounts := map[string]string{}
			for name, sum := range r.Accounts {
				accounts[string(name)] = sum.String()
			}
			return writeJSON(k.out, map[string]any{"from": timeText(r.From), "to": timeText(r.To), "by": c.By,
				"lines": t.objects(), "total": total.objects()[0], "ledger": accounts,
				"unbooked": r.Unbooked.String()})
		}
		t.add(append([]any{"total"}, marginCells(r.Total)...)...)
		if err := t.print(k); err != nil {
			return err
		}
		_, err = fmt.Fprintf(k.out, "\nfrom %s until before %s; the ledger's revenue of that time is %s USD; "+
			"%s USD that live sessions used up is booked at the end of the hour\n", timeText(r.From), timeText(r.To),
			r.Accounts[billing.Revenue], r.Unbooked)
		return err
	})
}

func marginCells(m billing.Margin) []any {
	return []any{m.Charged.String(), m.Refunded.String(), m.Trial.String(), m.Paid().String(), m.Given.String(),
		m.Cost.String(), m.Estimated.String(), m.Margin().String(), m.Orders,
		m.Unpriced, m.UnpricedSessions, m.Replaced, m.Returned}
}
