package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

// sessionData is what the commands read of a session.
type sessionData struct {
	ID       string `json:"session_id"`
	Type     string `json:"type"`
	Status   string `json:"status"`
	Product  string `json:"product_no"`
	Location struct {
		Country *string `json:"country"`
	} `json:"location"`
	Health struct {
		Score int    `json:"health_score"`
		Risk  string `json:"risk_level"`
	} `json:"health"`
	Usage struct {
		Traffic struct {
			Remaining *json.Number `json:"remaining_gb"`
		} `json:"traffic"`
	} `json:"usage"`
	ExpiresAt *string `json:"expires_at"`
}

func (d sessionData) row() []string {
	left := text(d.ExpiresAt)
	if d.Usage.Traffic.Remaining != nil {
		left = d.Usage.Traffic.Remaining.String() + " GB"
	}
	return []string{d.ID, d.Status, d.Type, d.Product, text(d.Location.Country), left,
		strconv.Itoa(d.Health.Score), d.Health.Risk}
}

var sessionHeader = []string{"session", "status", "type", "product", "country", "left", "health", "risk"}

type lsCommand struct {
	Status string `help:"creating, active, terminated, expired or failed."`
	Type   string `help:"dynamic or static."`
}

// Run lists the newest sessions.
func (l lsCommand) Run(ctx context.Context, c *options, s streams) error {
	service, err := open()
	if err != nil {
		return err
	}
	query := url.Values{"page_size": {"50"}}
	if l.Status != "" {
		query.Set("status", l.Status)
	}
	if l.Type != "" {
		query.Set("type", l.Type)
	}
	var list struct{ Items []sessionData }
	data, err := service.read(ctx, "GET", "/sessions?"+query.Encode(), "", nil, &list)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) {
		var rows [][]string
		for _, d := range list.Items {
			rows = append(rows, d.row())
		}
		table(w, sessionHeader, rows)
	})
}

// one is a session that a command names.
type one struct {
	Session string `arg:"" help:"A session of apx ls."`
}

// act runs an operation on the session and prints the session.
func (o one) act(ctx context.Context, c *options, s streams, method, operation string, body any) error {
	service, err := open()
	if err != nil {
		return err
	}
	var d sessionData
	data, err := service.read(ctx, method, "/sessions/"+url.PathEscape(o.Session)+operation, "", body, &d)
	if err != nil {
		return err
	}
	return c.show(s, data, func(w io.Writer) { table(w, sessionHeader, [][]string{d.row()}) })
}

type showCommand struct{ one }

// Run prints a session, its password masked.
func (o showCommand) Run(ctx context.Context, c *options, s streams) error {
	return o.act(ctx, c, s, "GET", "", nil)
}

type rotateCommand struct {
	one
	Worker string `help:"Move this worker alone."`
	Reason string `help:"http_403, http_429, captcha, timeout, block, scheduled or manual."`
}

// Run gives a session or a worker another exit.
func (o rotateCommand) Run(ctx context.Context, c *options, s streams) error {
	body := map[string]any{}
	if o.Reason != "" {
		body["reason"] = o.Reason
	}
	if o.Worker != "" {
		return o.rotateWorker(ctx, c, s, o.Worker, body)
	}
	return o.act(ctx, c, s, "POST", "/rotate", body)
}

type endCommand struct {
	one
	Yes bool `help:"Do not ask on a terminal."`
}

// Run ends a session.
func (o endCommand) Run(ctx context.Context, c *options, s streams) error {
	if !o.Yes && isTerminal(s.in) && !agrees(s, "End "+o.Session+" for good? [y/N] ") {
		return fmt.Errorf("%w: the session was not ended", errMisuse)
	}
	return o.act(ctx, c, s, "POST", "/terminate", map[string]any{})
}
