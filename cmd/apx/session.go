package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"

	"agentproxy/adapters/apiclient"
	"agentproxy/adapters/mcp"
)

// row returns a session as a line of the list.
func row(s apiclient.Session) []string {
	left := stamp(s.ExpiresAt)
	if s.Usage.Traffic.RemainingGB != nil {
		left = s.Usage.Traffic.RemainingGB.String() + " GB"
	}
	return []string{s.SessionID, string(s.Status), string(s.Type), s.ProductNo, text(s.Location.Country), left,
		strconv.Itoa(s.Health.HealthScore), string(s.Health.RiskLevel)}
}

var sessionHeader = []string{"session", "status", "type", "product", "country", "left", "health", "risk"}

type lsCommand struct {
	Status string `help:"creating, active, terminated, expired or failed."`
	Type   string `help:"dynamic or static."`
}

// Run lists the newest sessions.
func (l lsCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	list, err := service.ListSessions(ctx, apiclient.ListSessions{PageSize: 50,
		Status: apiclient.SessionState(l.Status), Type: apiclient.SessionType(l.Type)}, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		var rows [][]string
		for _, d := range list.Items {
			rows = append(rows, row(d))
		}
		table(w, sessionHeader, rows)
	})
}

// one is a session that a command names.
type one struct {
	Session string `arg:"" help:"A session of apx ls."`
}

type showCommand struct{ one }

// Run prints a session, its password masked.
func (o showCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	var kept apiclient.Answer
	d, err := service.GetSession(ctx, o.Session, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		table(w, sessionHeader, [][]string{row(d)})
		table(w, []string{"of it", ""}, parts(d))
	})
}

// parts returns what a session has beside its row, a name and a value each.
func parts(d apiclient.Session) (rows [][]string) {
	if d.Proxy != nil {
		at := net.JoinHostPort(d.Proxy.Host, strconv.Itoa(d.Proxy.Port))
		rows = append(rows, []string{"proxy", at + " " + d.Proxy.Username})
	}
	for _, ip := range d.IPList {
		rows = append(rows, []string{"exit", ip.IP})
	}
	rows = append(rows, []string{"cost", fmt.Sprintf("charged %s, held %s, refunded %s", d.Cost.Charged, d.Cost.Held,
		d.Cost.Refunded)})
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		rows = append(rows, []string{"label", key + ":" + d.Labels[key]})
	}
	return rows
}

type rotateCommand struct {
	one
	Worker string `help:"Move this worker alone."`
	Reason string `help:"http_403, http_429, captcha, timeout, block, scheduled or manual."`
	requirement
	RequireNone bool `help:"End the rule of the session, so that any exit will do."`
}

// Run gives a session or a worker another exit.
func (o rotateCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	reason := apiclient.RotateReason(o.Reason)
	rule, err := o.rule()
	if err == nil && o.RequireNone && o.given() {
		err = fmt.Errorf("%w: --require-none ends the rule; leave out the other --require-… flags", errMisuse)
	}
	if err != nil {
		return err
	}
	if o.RequireNone {
		rule.NetworkTypes = []string{} // no condition, where a rule without any field would be left out
	}
	if o.Worker != "" {
		return o.rotateWorker(ctx, c, s, service, apiclient.RotateWorker{Reason: reason, Require: rule})
	}
	var kept apiclient.Answer
	in := apiclient.RotateSession{Reason: reason, Require: rule}
	r, err := service.RotateSession(ctx, o.Session, in, apiclient.Keep(&kept))
	if err != nil {
		return err
	}
	was, is, err := mcp.Exits(ctx, service.tools, o.Session)
	if err != nil { // the exit has changed all the same
		was, is = nil, nil
	}
	return c.show(s, kept, nil, func(w io.Writer) {
		table(w, []string{"session", "old exit", "new exit", "rotations"},
			[][]string{{r.SessionID, text(was), text(is), strconv.Itoa(r.Rotation.Count)}})
	})
}

type endCommand struct {
	one
	Yes bool `help:"Do not ask on a terminal."`
}

// Run ends a session. On a terminal it asks first, with what comes back and what does not.
func (o endCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	if !o.Yes && isTerminal(s.in) {
		d, err := service.TerminateSessionDryRun(ctx, o.Session)
		if err != nil {
			return err
		}
		if !agrees(s, endQuestion(o.Session, d)) {
			return fmt.Errorf("%w: the session was not ended", errMisuse)
		}
	}
	var kept apiclient.Answer
	d, err := service.TerminateSession(ctx, o.Session, apiclient.Keep(&kept))
	return c.show(s, kept, err, func(w io.Writer) {
		table(w, append(sessionHeader[:len(sessionHeader):len(sessionHeader)], "charged", "forfeited"),
			[][]string{append(row(d), d.Cost.Charged.String(), d.Cost.Forfeited.String())})
	})
}

// endQuestion asks whether to end a session.
func endQuestion(id string, d apiclient.DryRun) string {
	q := fmt.Sprintf("End %s for good? %s USD comes back. ", id, d.Refunded)
	if paid, err := d.Forfeited.Float64(); err == nil && paid > 0 {
		q += "A fixed IP is paid for its whole time: " + d.Forfeited.String() + " USD for what is left is not refunded. "
	}
	return q + "[y/N] "
}
