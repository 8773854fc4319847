package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"agentproxy/adapters/mcp"
)

type renewCommand struct {
	one
	payment
	Days int `help:"Days; the session's own number is the default."`
}

// Run buys more days of a static session. Without --max-cost it asks on a terminal, and refuses in a pipe.
func (o renewCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body := map[string]any{}
	if o.Days != 0 {
		body["duration_days"] = o.Days
	}
	path := "/sessions/" + url.PathEscape(o.Session) + "/renew"
	most, err := o.bound(ctx, service, s, path, body)
	if err != nil {
		return err
	}
	body["max_cost"] = json.Number(most)
	if _, err := json.Marshal(body); err != nil {
		return fmt.Errorf("%w: --max-cost takes a number", errMisuse)
	}
	var d sessionData
	data, err := o.pay(ctx, service, path, body, &d)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { table(w, sessionHeader, [][]string{d.row()}) })
}

type reportCommand struct {
	one
	Event  string `arg:"" help:"success, http_error, captcha, timeout, block, rate_limit or custom."`
	Status int    `help:"The status of the answer."`
	Host   string `help:"The host of the target."`
	Worker string `help:"Whose request it was; the session's own exit otherwise."`
}

// Run reports what came of a request, and prints what follows from it.
func (o reportCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	body := map[string]any{"event_type": o.Event}
	if o.Status != 0 {
		body["status_code"] = o.Status
	}
	if o.Host != "" {
		body["target_host"] = o.Host
	}
	if o.Worker != "" {
		body["worker"] = o.Worker
	}
	var d struct {
		Health struct {
			Recommendation string `json:"recommendation"`
			Reason         string `json:"reason"`
			Risk           string `json:"risk_level"`
		} `json:"session_health"`
	}
	data, err := service.read(ctx, "POST", "/sessions/"+url.PathEscape(o.Session)+"/report-event", "", body, &d)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		table(w, []string{"verdict", "risk", "reason"}, [][]string{{d.Health.Recommendation, d.Health.Risk, d.Health.Reason}})
	})
}

type checkCommand struct {
	one
	Worker string `help:"Through the exit of this worker."`
	URL    string `name:"url" help:"Fetch this page through the session, which is charged."`
}

// Run tries one connection, or fetches a page and prints how it was answered but not what with.
func (o checkCommand) Run(ctx context.Context, c *options, s streams) error {
	if o.URL != "" {
		return o.fetch(ctx, c, s)
	}
	service, err := open()
	if err != nil {
		return err
	}
	var d struct {
		ExitIP  string  `json:"exit_ip"`
		Country *string `json:"country"`
		MS      int     `json:"latency_ms"`
	}
	path := "/sessions/" + url.PathEscape(o.Session) + "/check"
	if o.Worker != "" {
		path += "?" + url.Values{"worker": {o.Worker}}.Encode()
	}
	data, err := service.read(ctx, "POST", path, "", map[string]any{}, &d)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { fmt.Fprintf(w, "%s\t%s\t%d ms\n", d.ExitIP, text(d.Country), d.MS) })
}

// fetch fetches the page through the session's proxy.
func (o checkCommand) fetch(ctx context.Context, c *options, s streams) error {
	list, err := o.ofWorker(ctx, o.Worker)
	if err != nil {
		return err
	}
	page, err := mcp.Fetch(ctx, list[0].URL(), o.URL)
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
