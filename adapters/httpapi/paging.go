package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// paging is the query of every list.
type paging struct {
	Page     int    `query:"page" minimum:"1" default:"1" doc:"Counts from 1. A page past the end is empty."`
	PageSize int    `query:"page_size" minimum:"1" default:"20" doc:"Items on a page. Above 100 is served as 100."`
	Cursor   string `query:"cursor" maxLength:"16" doc:"next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added."`
}

// page is what was asked for. A parameter that is there but empty is no number.
func (p paging) page(ctx context.Context) (domain.Page, error) {
	query := callIn(ctx).gin
	for _, name := range []string{"page", "page_size"} {
		if v, given := query.GetQuery(name); given && v == "" {
			return domain.Page{}, domain.InvalidField(name, "must be an integer")
		}
	}
	page := domain.Page{Number: p.Page, Size: min(p.PageSize, domain.MaxPageSize)}
	if _, given := query.GetQuery("cursor"); !given {
		return page, nil
	}
	if _, given := query.GetQuery("page"); given {
		return page, domain.InvalidField("cursor", "stands for page; send one of them")
	}
	digits, ok := strings.CutPrefix(p.Cursor, cursorPrefix)
	after, err := strconv.ParseInt(digits, cursorBase, 64)
	if !ok || err != nil || after < 1 {
		return page, domain.InvalidField("cursor", "must be the next_cursor of a page of this list")
	}
	page.Number, page.After = 1, after
	return page, nil
}

// asked reports whether a page was asked for.
func (p paging) asked(ctx context.Context) bool {
	query := callIn(ctx).gin.Request.URL.Query()
	return query.Has("page") || query.Has("page_size") || query.Has("cursor")
}

// A cursor is the place of an item in its list, in a form that is not taken for the number of a
// page.
const (
	cursorPrefix = "c"
	cursorBase   = 36
)

// paginationReply is the position of a page in its list.
type paginationReply struct {
	Page       int       `json:"page" minimum:"1" doc:"The number of this page, from 1; 1 with a cursor."`
	PageSize   int       `json:"page_size" minimum:"1" maximum:"100"`
	Total      int       `json:"total" minimum:"0" doc:"Items in all."`
	TotalPages int       `json:"total_pages" minimum:"0" doc:"0 for an empty list."`
	NextCursor maybeText `json:"next_cursor" doc:"What to send as cursor for the items that follow; null at the end."`
}

// toItems writes a page of a list.
func toItems[T, R any](l domain.List[T], one func(T) R) ([]R, paginationReply) {
	items := make([]R, len(l.Items))
	for i, item := range l.Items {
		items[i] = one(item)
	}
	p := paginationReply{Page: l.Page.Number, PageSize: l.Page.Size, Total: l.Total, TotalPages: l.TotalPages()}
	if l.Next > 0 {
		p.NextCursor = maybeText(cursorPrefix + strconv.FormatInt(l.Next, cursorBase))
	}
	return items, p
}

// each converts a slice; the result is never nil, so it is never null.
func each[T, R any](list []T, one func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = one(v)
	}
	return out
}

// dryRun is the query of calls that can be tried first.
type dryRun struct {
	DryRun string `query:"dry_run" enum:"true,false" doc:"true validates everything and answers the cost; nothing is stored."`
}

func (d dryRun) asked(ctx context.Context) (bool, error) {
	if v, given := callIn(ctx).gin.GetQuery("dry_run"); given && v == "" {
		return false, domain.InvalidField("dry_run", "must be true or false")
	}
	return d.DryRun == "true", nil
}

// dryRunReply is what a call would cost and leave.
type dryRunReply struct {
	DryRun       bool   `json:"dry_run" enum:"true"`
	Cost         money  `json:"cost"`
	Currency     string `json:"currency" enum:"USD"`
	BalanceAfter money  `json:"balance_after"`
}

func toQuote(q *ledger.Quote) dryRunReply {
	return dryRunReply{true, money(q.Cost), domain.Currency, money(q.BalanceAfter)}
}

var exampleDryRun = dryRunReply{true, money(domain.MustMoney("0.25")), domain.Currency, money(domain.MustMoney("9.75"))}

const ok = http.StatusOK
