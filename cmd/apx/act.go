package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"agentproxy/adapters/apiclient"
	"agentproxy/adapters/mcp"
)

type renewCommand struct {
	one
	payment
	Days int `help:"Days; the session's own number is the default."`
}

// Run buys more days of a static session. Without --max-cost it asks on a terminal, and refuses in a pipe.
func (o renewCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.RenewSession{DurationDays: o.Days}
	most, err := o.bound(s, func() (apiclient.DryRun, error) {
		return service.RenewSessionDryRun(ctx, o.Session, in)
	})
	if err != nil {
		return err
	}
	if !areNumbers(most) {
		return fmt.Errorf("%w: --max-cost takes a number", errMisuse)
	}
	in.MaxCost, in.IdempotencyKey = most, o.id()
	var kept apiclient.Answer
	d, err := service.RenewSession(ctx, o.Session, in, apiclient.Keep(&kept))
	return c.show(s, kept, o.repeat(err), func(w io.Writer) { table(w, sessionHeader, [][]string{row(d)}) })
}

type addCommand struct {
	one
	payment
	GB string `name:"gb" required:"" help:"How much."`
}

// Run adds traffic to a dynamic session, whose address stays.
func (o addCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.AddTraffic{TrafficGB: json.Number(o.GB)}
	if !areNumbers(in.TrafficGB, json.Number(o.MaxCost)) {
		return errNumbers
	}
	most, err := o.bound(s, func() (apiclient.DryRun, error) {
		return service.AddTrafficDryRun(ctx, o.Session, in)
	})
	if err != nil {
		return err
	}
	in.MaxCost, in.IdempotencyKey = most, o.id()
	var kept apiclient.Answer
	d, err := service.AddTraffic(ctx, o.Session, in, apiclient.Keep(&kept))
	return c.show(s, kept, o.repeat(err), func(w io.Writer) { table(w, sessionHeader, [][]string{row(d)}) })
}

type reportCommand struct {
	one
	Event  string `arg:"" help:"success, http_error, captcha, timeout, block, rate_limit or custom."`
	Status int    `help:"The status of the answer."`
	Host   string `help:"The host of the target."`
	Worker string `help:"Whose request it was; the session's own exit otherwise."`
}

// Run reports what came of a request, and prints what follows from it.
func (o reportCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	d, err := service.ReportEvent(ctx, o.Session, apiclient.ReportEvent{EventType: apiclient.EventType(o.Event),
		StatusCode: o.Status, TargetHost: o.Host, Worker: o.Worker}, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		h := d.SessionHealth
		table(w, []string{"verdict", "risk", "reason"},
			[][]string{{string(h.Recommendation), string(h.RiskLevel), string(h.Reason)}})
	})
}

type checkCommand struct {
	one
	Worker string `help:"Through the exit of this worker."`
	IP     string `name:"ip" help:"Through this address of a static session; its first is the default."`
	URL    string `name:"url" help:"Fetch this page through the session, which is charged."`
}

// Run tries one connection, or fetches a page and prints how it was answered but not what with.
func (o checkCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	if o.URL != "" && o.IP != "" {
		return fmt.Errorf("%w: --url takes the first address; leave --ip out", errMisuse)
	}
	if o.URL != "" {
		return o.fetch(ctx, c, s, service)
	}
	var kept apiclient.Answer
	in := apiclient.CheckSession{Worker: o.Worker, IP: o.IP}
	d, err := service.CheckSession(ctx, o.Session, in, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		fmt.Fprintf(w, "%s\t%s\t%d ms\n", d.ExitIP, place(d.Country, d.DeclaredCountry), d.LatencyMS)
	})
}

// place returns the country that was measured, else the one that was sold.
func place(measured, declared *string) string {
	if measured == nil && declared != nil {
		return *declared + " (declared)"
	}
	return text(measured)
}

// fetch fetches the page through the session's proxy.
func (o checkCommand) fetch(ctx context.Context, c *options, s streams, service *service) error {
	list, err := o.ofWorker(ctx, service, o.Worker)
	if err != nil {
		return err
	}
	page, err := mcp.Fetch(ctx, proxyOf(list[0]).URL(), o.URL)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, page)
	}
	table(s.out, []string{"status", "bytes", "ms", "looks blocked"}, [][]string{{strconv.Itoa(page.Status),
		strconv.Itoa(page.Bytes), strconv.FormatInt(page.MS, 10), strconv.FormatBool(page.LooksBlocked)}})
	return nil
}
