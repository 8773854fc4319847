package main

import (
	"context"
	"time"

	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/audit"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"List what operators did, newest first."`
}

type auditListCmd struct {
	By       string `placeholder:"NAME" help:"Only what this user did."`
	Action   string `help:"Only this action, such as 'agent disable'."`
	Subject  string `placeholder:"ID" help:"Only what is about this agent, session, order or job."`
	From     string `help:"From this day (2026-11-01) or time (2026-11-01T12:00:00Z) on, UTC."`
	To       string `help:"Until before this day or time."`
	Page     int    `default:"1" help:"Page, from 1."`
	PageSize int    `default:"100" help:"Actions per page, at most 100."`
}

// Run lists actions.
func (c auditListCmd) Run(k *kit) error {
	page, err := pageOf(c.Page, c.PageSize)
	if err != nil {
		return err
	}
	f := audit.Filter{By: c.By, Name: c.Action, Subject: c.Subject}
	if f.From, err = moment("from", c.From); err != nil {
		return err
	}
	if f.To, err = moment("to", c.To); err != nil {
		return err
	}
	return core(k, func(ctx context.Context, trail *operator.Trail) error {
		list, err := trail.List(ctx, f, page)
		if err != nil {
			return err
		}
		t := table{columns: []string{"at", "by", "via", "action", "subject", "reason", "ref", "details", "id"}}
		for _, a := range list.Items {
			t.add(timeText(a.At), a.By, string(a.Via), a.Name, a.Subject, a.Reason, a.Ref, a.Details, a.ID)
		}
		return t.print(k)
	})
}

// pageOf returns a page of a list.
func pageOf(number, size int) (domain.Page, error) {
	if number < 1 || size < 1 {
		return domain.Page{}, domain.InvalidField("page", "and page-size must be 1 or more")
	}
	return domain.Page{Number: number, Size: min(size, domain.MaxPageSize)}, nil
}

// moment parses a day or a time; an empty text is the zero time.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return at, domain.InvalidField(flag, "must be a day such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z")
		}
	}
	return at.UTC(), nil
}
