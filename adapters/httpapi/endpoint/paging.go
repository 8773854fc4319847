package endpoint

import (
	"context"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/ledger"
	"agentproxy/domain"
)

// Paging is the query of every list.
type Paging struct {
	Page     int    `query:"page" minimum:"1" default:"1" doc:"Counts from 1. A page past the end is empty."`
	PageSize int    `query:"page_size" minimum:"1" default:"20" doc:"Items on a page. Above 100 is served as 100."`
	Cursor   string `query:"cursor" maxLength:"32" doc:"next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added."`

	asked domain.Page
}

// Asked returns the requested page.
func (p *Paging) Asked() domain.Page { return p.asked }

// readPage reads the requested page. It refuses an empty parameter, which is not a number.
func (p *Paging) readPage(c *Call) error {
	for _, name := range []string{"page", "page_size"} {
		if v, given := c.Query(name); given && v == "" {
			return domain.InvalidField(name, "must be an integer")
		}
	}
	p.asked = domain.Page{Number: p.Page, Size: min(p.PageSize, domain.MaxPageSize)}
	if _, given := c.Query("cursor"); !given {
		return nil
	}
	if _, given := c.Query("page"); given {
		return domain.InvalidField("cursor", "replaces page; send one of them")
	}
	var ok bool
	if p.asked.After, p.asked.Tie, ok = parseCursor(p.Cursor); !ok {
		return domain.InvalidField("cursor", "must be the next_cursor of a page of this list")
	}
	p.asked.Number = 1
	return nil
}

// parseCursor reads what cursorOf writes.
func parseCursor(text string) (place, tie int64, ok bool) {
	digits, ok := strings.CutPrefix(text, cursorPrefix)
	if !ok {
		return 0, 0, false
	}
	first, second, tied := strings.Cut(digits, cursorTie)
	place, err := strconv.ParseInt(first, cursorBase, 64)
	if tied && err == nil {
		tie, err = strconv.ParseInt(second, cursorBase, 64)
	}
	return place, tie, err == nil && place > 0 && (tie > 0 || !tied)
}

// cursorOf writes the place of an item, empty for none.
func cursorOf(place, tie int64) value.MaybeText {
	if place == 0 {
		return ""
	}
	text := cursorPrefix + strconv.FormatInt(place, cursorBase)
	if tie > 0 {
		text += cursorTie + strconv.FormatInt(tie, cursorBase)
	}
	return value.MaybeText(text)
}

// PageGiven reports whether a page was asked for.
func (p Paging) PageGiven(ctx context.Context) bool {
	query := CallIn(ctx).gin.Request.URL.Query()
	return query.Has("page") || query.Has("page_size") || query.Has("cursor")
}

// A cursor is the place of an item in its list, in a form that is not taken for the number of a
// page.
const (
	cursorPrefix = "c"
	cursorTie    = "_"
	cursorBase   = 36
)

// Pagination is the position of a page in its list.
type Pagination struct {
	Page       int             `json:"page" minimum:"1" doc:"The number of this page, from 1; 1 with a cursor."`
	PageSize   int             `json:"page_size" minimum:"1" maximum:"100" doc:"How many items a page has."`
	Total      int             `json:"total" minimum:"0" doc:"Items in all."`
	TotalPages int             `json:"total_pages" minimum:"0" doc:"0 for an empty list."`
	NextCursor value.MaybeText `json:"next_cursor" doc:"What to send as cursor for the items that follow; null at the end."`
}

// PageOf writes a page of a list.
func PageOf[T, R any](l domain.List[T], one func(T) R) ([]R, Pagination) {
	items := make([]R, len(l.Items))
	for i, item := range l.Items {
		items[i] = one(item)
	}
	return items, Pagination{l.Page.Number, l.Page.Size, l.Total, l.TotalPages(), cursorOf(l.Next, l.Tie)}
}

// ExamplePagination is the position of a page that is the only one.
var ExamplePagination = Pagination{Page: 1, PageSize: 20, Total: 1, TotalPages: 1}

// Between reads two dates of the query, the second exclusive. What is not given is the zero time.
func Between(ctx context.Context, from, to string) (a, b time.Time, err error) {
	for name, at := range map[string]*time.Time{from: &a, to: &b} {
		if text, given := CallIn(ctx).Query(name); given {
			if *at, err = ledger.ParseDate(name, text); err != nil {
				return a, b, err
			}
		}
	}
	if !a.IsZero() && !b.IsZero() && !a.Before(b) {
		return a, b, domain.InvalidField(from, "must be before %s", to)
	}
	return a, b, nil
}
