package ui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"

	"agentproxy/domain"
)

// Funcs are the functions of every template.
var Funcs = template.FuncMap{
	"asset":   asset,
	"usd":     USD,
	"bytes":   Bytes,
	"when":    When,
	"until":   Until,
	"percent": func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) },
	"json":    func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
	"words":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
}

// USD returns an amount with its currency and at least two decimals; it rounds nothing.
func USD(m domain.Money) string {
	text := m.String()
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "−", text[1:]
	}
	whole, frac, _ := strings.Cut(text, ".")
	for len(frac) < 2 {
		frac += "0"
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + "$" + whole + "." + frac
}

// Bytes returns a size in the unit that suits it; 1 GB is 10^9 bytes.
func Bytes(n int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if x := float64(n) / u.size; x >= 1 || x <= -1 {
			return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".") + " " + u.name
		}
	}
	return fmt.Sprintf("%d B", n)
}

// When returns a time in UTC, which the script of the layout turns into the reader's zone; a dash for none.
func When(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	// The text has digits and punctuation alone.
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(time.DateTime) + ` UTC</time>`)
}

// Until returns how long it is from one time to another, in its two largest units.
func Until(from, to time.Time) string {
	d := to.Sub(from)
	switch {
	case d <= 0:
		return "over"
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Chart is what the script of the layout draws. The exact figures are shown beside it.
type Chart struct {
	Title  string      `json:"title"`
	Unit   string      `json:"unit"`             // bytes, usd or count
	Times  []int64     `json:"times"`            // Unix seconds, rising
	Labels []string    `json:"labels,omitempty"` // of columns, whose times are 0, 1, 2 …
	Names  []string    `json:"names"`            // of the series
	Values [][]float64 `json:"values"`
}
