package endpoint

import (
	"agentproxy/adapters/httpapi/openapi"
)

// printed is an answer that has a page to print, too.
type printed interface {
	Print(next string) ([]byte, error)
	Pages() Pagination
}

// showPage writes the page to print of an answer.
func (a *API) showPage(c *Call, status int, p printed) {
	next := ""
	if cursor := p.Pages().NextCursor; cursor != "" {
		query := c.gin.Request.URL.Query()
		query.Del("page")
		query.Set("cursor", string(cursor))
		next = "?" + query.Encode()
	}
	page, err := p.Print(next)
	if err != nil {
		a.Refuse(c, err)
		return
	}
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{openapi.HTMLType + "; charset=utf-8"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(page) // an error means that the client is gone
}
