// Package format writes answers in other forms than the envelope, and chooses the form that a caller asks for.
package format

import (
	"encoding/csv"
	"encoding/json"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
)

// The media types of answers beside those of package openapi.
const (
	CSVType  = "text/csv"
	PNGType  = "image/png"
	TextType = "text/plain"
)

// AcceptsCSV reports whether a client asks for CSV by name, and no less than for JSON.
func AcceptsCSV(r *http.Request) bool {
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
			case CSVType:
				ofCSV = max(ofCSV, quality)
			case openapi.JSONType:
				ofJSON = max(ofJSON, quality)
			}
		}
	}
	return ofCSV > 0 && ofCSV >= ofJSON
}

// CSV writes a list of structs as CSV (RFC 4180), a line each, under the names of their fields.
func CSV(items reflect.Value) string {
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
	return b.String()
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
