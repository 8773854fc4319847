package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/mattn/go-isatty"

	"agentproxy/adapters/apiclient"
)

// mask is shown in place of a secret.
const mask = "***"

// show prints what the service answered, or returns the error of the call.
func (c *options) show(s streams, kept apiclient.Answer, err error, plain func(w io.Writer)) error {
	if err != nil {
		return err
	}
	return c.showData(s, kept.Data(), plain)
}

// showData prints data: as JSON if asked, else by the function. Passwords are masked unless they are what
// the command is for.
func (c *options) showData(s streams, data json.RawMessage, plain func(w io.Writer)) error {
	if c.JSON {
		text, err := masked(data)
		if err != nil {
			return err
		}
		return printJSON(s.out, json.RawMessage(text))
	}
	plain(s.out)
	return nil
}

// printError prints an error: with --json as the service answered it, or under a code of apx itself, so that
// a program never reads a sentence.
func (c *options) printError(s streams, code string, err error) {
	if !c.JSON {
		fmt.Fprintln(s.err, "apx:", err)
		return
	}
	r := refusal{Code: code, Message: err.Error()}
	if e, ok := errors.AsType[*apiclient.Error](err); ok && e.Code != "" {
		r = refusal{string(e.Code), e.Message, e.Details, e.Retryable}
	}
	_ = printJSON(s.err, map[string]refusal{"error": r})
}

// refusal is an error as a program reads it.
type refusal struct {
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details"`
	Retryable bool            `json:"retryable"`
}

// printJSON prints a value as JSON, indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// masked returns data with every secret in it masked.
func masked(data json.RawMessage) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	hide(v)
	var b bytes.Buffer
	err := printJSON(&b, v)
	return b.Bytes(), err
}

// hide masks the secrets in a value: those by their name, and the passwords among them within
// addresses and snippets.
func hide(v any) {
	var passwords []string
	each(v, "", func(name, text string) string {
		if name == "password" && text != "" {
			escaped := strings.TrimPrefix(url.UserPassword("", text).String(), ":")
			quoted, _ := json.Marshal(text) // a string
			passwords = append(passwords, escaped, mask, string(bytes.Trim(quoted, `"`)), mask, text, mask)
		}
		return text
	})
	r := strings.NewReplacer(passwords...)
	each(v, "", func(name, text string) string {
		switch {
		case name == "password" || name == "api_key" || name == "api_secret" || name == "webhook_secret":
			return mask
		case name == "snippet" || strings.HasSuffix(name, "url"):
			return r.Replace(text)
		}
		return text
	})
}

// each replaces the texts in a value by what change returns for the name of their field.
func each(v any, field string, change func(name, text string) string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			v[name] = each(one, name, change)
		}
	case []any:
		for i, one := range v {
			v[i] = each(one, field, change)
		}
	case string:
		return change(field, v)
	}
	return v
}

// clean replaces what would move the cursor or end a column: hosts of events are what agents reported.
func clean(row []string) []string {
	row = slices.Clone(row)
	for i := range row {
		row[i] = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, row[i])
	}
	return row
}

// table prints rows: aligned under a header on a terminal, else with tabs and without one. Without a terminal
// they are written at once: a reader that leaves after the first line, as head does, kills no writer.
func table(w io.Writer, header []string, rows [][]string) {
	if !isTerminal(w) {
		var lines bytes.Buffer
		for _, r := range rows {
			fmt.Fprintln(&lines, strings.Join(clean(r), "\t"))
		}
		_, _ = w.Write(lines.Bytes())
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(header, "\t")))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(clean(r), "\t"))
	}
	_ = t.Flush()
}

// isTerminal reports whether a person reads what is written.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// stamp returns a time as the service writes it, or a dash.
func stamp(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// text returns what a pointer points to, or a dash.
func text[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}
