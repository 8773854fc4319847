package httpapi

import (
	"context"
	"strconv"
	"strings"

	"agentproxy/domain"
)

// paging is the query of every list.
type paging struct {
	Page     int    `query:"page" minimum:"1" default:"1" doc:"Counts from 1. A page past the end is empty."`
	PageSize int    `query:"page_size" minimum:"1" default:"20" doc:"Items on a page. Above 100 is served as 100."`
	Cursor   string `query:"cursor" maxLength:"32" doc:"next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added."`
}

// Paging is paging under an exported name, by which huma reads it where it is embedded.
type Paging = paging

// page returns the requested page. It refuses an empty parameter, which is not a number.
func (p paging) page(ctx context.Context) (domain.Page, error) {
	c := callIn(ctx)
	for _, name := range []string{"page", "page_size"} {
		if v, given := c.query(name); given && v == "" {
			return domain.Page{}, domain.InvalidField(name, "must be an integer")
		}
	}
	page := domain.Page{Number: p.Page, Size: min(p.PageSize, domain.MaxPageSize)}
	if _, given := c.query("cursor"); !given {
		return page, nil
	}
	if _, given := c.query("page"); given {
		return page, domain.InvalidField("cursor", "replaces page; send one of them")
	}
	var ok bool
	if page.After, page.Tie, ok = parseCursor(p.Cursor); !ok {
		return page, domain.InvalidField("cursor", "must be the next_cursor of a page of this list")
	}
	page.Number = 1
	return page, nil
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
func cursorOf(place, tie int64) maybeText {
	if place == 0 {
		return ""
	}
	text := cursorPrefix + strconv.FormatInt(place, cursorBase)
	if tie > 0 {
		text += cursorTie + strconv.FormatInt(tie, cursorBase)
	}
	return maybeText(text)
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
	cursorTie    = "_"
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
	return items, paginationReply{l.Page.Number, l.Page.Size, l.Total, l.TotalPages(), cursorOf(l.Next, l.Tie)}
}

// examplePagination is the position of a page that is the only one.
var examplePagination = paginationReply{Page: 1, PageSize: 20, Total: 1, TotalPages: 1}
