package main

import (
	"context"
	"encoding/json"
	"io"

	"agentproxy/adapters/apiclient"
)

type replaceCommand struct {
	one
	payment
	IP     string `arg:"" name:"ip" help:"An address of the session."`
	Reason string `default:"other" enum:"wrong_place,listed,unreachable,blocked,other" help:"What is wrong with it: ${enum}."`
	Refund bool   `help:"End the address for its unused days if there is no other one."`
}

// Run gives a static session another address in place of one, and prints what became of it.
func (o replaceCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.ReplaceIP{Reason: apiclient.ReplacementReason(o.Reason), Refund: o.Refund}
	if !areNumbers(json.Number(o.MaxCost)) {
		return errNumbers
	}
	most, err := o.bound(s, func() (apiclient.DryRun, error) {
		return service.ReplaceIPDryRun(ctx, o.Session, o.IP, in)
	})
	if err != nil {
		return err
	}
	in.MaxCost, in.IdempotencyKey = most, o.id()
	var kept apiclient.Answer
	d, err := service.ReplaceIP(ctx, o.Session, o.IP, in, apiclient.Keep(&kept))
	return c.show(s, kept, o.repeat(err), func(w io.Writer) {
		by := ""
		if d.NewIP != nil {
			by = *d.NewIP
		}
		table(w, []string{"status", "ip", "new_ip", "cost", "refunded"},
			[][]string{{string(d.Status), d.IP, by, d.Cost.String(), d.Refunded.String()}})
	})
}
