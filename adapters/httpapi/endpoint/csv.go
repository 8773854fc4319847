package endpoint

import (
	"encoding/csv"
	"encoding/json"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
)

const csvType = "text/csv"

// acceptsCSV reports whether a client asks for CSV by name, and no less than for JSON.
func acceptsCSV(r *http.Request) bool {
	var ofCSV, ofJSON float64
	for _, header := range r.Header["Accept"] {
		for part := range strings.SplitSeq(header, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			quality := 1.0
			if text, given := params["q"]; given {
				if quality, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			switch kind {
			case csvType:
				ofCSV = max(ofCSV, quality)
			case openapi.JSONType:
				ofJSON = max(ofJSON, quality)
			}
		}
	}
	return ofCSV > 0 && ofCSV >= ofJSON
}

// answerCSV writes the items of an answer as CSV (RFC 4180), a line each, under the names of their
// fields. If more items follow, Link has their address.
func (a *API) answerCSV(c *Call, status int, data any) {
	v := reflect.ValueOf(data)
	items := v.FieldByName("Items")
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	columns := csvColumns(items.Type().Elem())
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = column.name
	}
	_ = w.Write(row) // a Builder does not fail
	for i := range items.Len() {
		for j, column := range columns {
			row[j] = csvCell(items.Index(i).FieldByIndex(column.index).Interface())
		}
		_ = w.Write(row)
	}
	w.Flush()
	h := c.gin.Writer.Header()
	h["Content-Type"] = []string{csvType + "; charset=utf-8; header=present"}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h.Set("Content-Disposition", `attachment; filename="`+strings.TrimPrefix(c.op.ID, "list-")+`.csv"`)
	if p := reflect.Indirect(v.FieldByName("Pagination")); p.IsValid() {
		if next := p.Interface().(Pagination).NextCursor; next != "" {
			query := c.gin.Request.URL.Query()
			query.Del("page")
			query.Set("cursor", string(next))
			h.Set("Link", "<"+c.gin.Request.URL.Path+"?"+query.Encode()+`>; rel="next"`)
		}
	}
	c.conn.Wait() // for the client, which may read slowly
	c.gin.Writer.WriteHeader(status)
	_, _ = c.gin.Writer.WriteString(b.String()) // an error means that the client is gone
}

// csvColumn is a field of an item.
type csvColumn struct {
	name  string
	index []int
}

// csvColumns lists the fields of a reply in their order, embedded ones in their place.
func csvColumns(t reflect.Type) (columns []csvColumn) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && name != "" && name != "-" {
			columns = append(columns, csvColumn{name, f.Index})
		}
	}
	return columns
}

// csvCell writes a value as JSON does, texts without quotes and null as nothing. A spreadsheet takes a
// text that begins with one of formulaStarts for a formula, so an apostrophe comes before it.
func csvCell(v any) string {
	raw := strictjson.Append(nil, v)
	if string(raw) == "null" {
		return ""
	}
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	if text != "" && strings.ContainsRune(formulaStarts, rune(text[0])) {
		return "'" + text
	}
	return text
}

const formulaStarts = "=+-@\t\r\n"

// documentCSV adds the form that answerCSV writes to the document of an answer.
func documentCSV(r *huma.Response) {
	r.Content[csvType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// CSVDoc documents the form of an operation that answers CSV on request.
const CSVDoc = "With Accept: text/csv the items are a table; Link has the address of those that follow."
