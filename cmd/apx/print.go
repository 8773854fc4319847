package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-isatty"
)

// mask is shown in place of a secret.
const mask = "***"

// show prints data: as JSON if asked, else by the function. Passwords are masked unless they are what
// the command is for.
func (c *commands) show(s streams, data json.RawMessage, plain func(w io.Writer)) error {
	if c.JSON {
		text, err := masked(data)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s\n", text)
		return err
	}
	plain(s.out)
	return nil
}

// masked returns data with every secret in it masked.
func masked(data json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	hide(v, "")
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// hide masks the secrets in a value: those by their name, and a password within an address.
func hide(v any, password string) {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["password"].(string); ok && p != "" {
			password = p
		}
		for name, one := range v {
			text, isText := one.(string)
			switch {
			case name == "password" || name == "api_key" || name == "api_secret" || name == "webhook_secret":
				v[name] = mask
			case isText && password != "":
				v[name] = strings.ReplaceAll(text, password, mask)
			default:
				hide(one, password)
			}
		}
	case []any:
		for _, one := range v {
			hide(one, password)
		}
	}
}

// table prints rows: aligned under a header on a terminal, else with tabs and without one.
func table(w io.Writer, header []string, rows [][]string) {
	if !isTerminal(w) {
		for _, r := range rows {
			fmt.Fprintln(w, strings.Join(r, "\t"))
		}
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(header, "\t")))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush()
}

// isTerminal reports whether a person reads what is written.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// text returns what a pointer points to, or a dash.
func text[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}
