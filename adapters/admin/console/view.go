package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/console/ui"
	"agentproxy/domain"
)

// page is what the template shows. All texts in it are escaped there.
type page struct {
	Title    string
	Sections []section
	Form     *form
	notice   string
	problem  *ui.Problem
}

// section is a part of a page; what is empty is left out.
type section struct {
	Title, ID string
	Note      string
	Figures   []figure
	Facts     []figure
	Charts    []ui.Chart
	Filter    []field // of a form that is sent by GET
	Table     *table
	Links     []button
	Older     string // the next page of the list
	Newer     string
}

// figure is a value with its name and the id by which it is found.
type figure struct {
	Name, ID string
	Value    cell
	Note     string
}

// table is a list. Its rows are as long as Columns.
type table struct {
	Columns []string
	Rows    []row
	Empty   string
}

type row struct {
	ID    string
	Cells []cell
}

// Long reports whether the text has a word that would make a column too wide.
func (c cell) Long() bool {
	for word := range strings.FieldsSeq(c.Text) {
		if len(word) > 24 {
			return true
		}
	}
	return false
}

// cell is one value.
type cell struct {
	Text  string
	At    time.Time // shown instead of Text
	IsAt  bool
	Href  string
	Tag   string // good, warn, bad or off
	Num   bool
	Links []button
}

// button leads to the form of an action.
type button struct {
	Text, Href string
	Danger     bool
}

// field is an input of a form.
type field struct {
	Name, Label, Value, Hint string
	Options                  []option
	Type                     string // of the input; empty: text
	Required                 bool
}

type option struct {
	Value, Text string
	Chosen      bool
}

// form asks for what an action needs.
type form struct {
	Action      string // where it is sent
	Description string // what will be done
	Button      string
	Back        string // the page of what it is about
	Danger      bool
	Sure        bool // it asks whether the operator is sure
	Hidden      []field
	Fields      []field
}

func text(s string) cell { return cell{Text: cmp.Or(s, "–")} }

func number[N int | int64](n N) cell { return cell{Text: strconv.FormatInt(int64(n), 10), Num: true} }

func usd(m domain.Money) cell { return cell{Text: ui.USD(m), Num: true} }

// plain returns a value that is not in a column.
func plain(c cell) cell {
	c.Num = false
	return c
}

func when(t time.Time) cell { return cell{At: t, IsAt: true} }

func link(text, prefix string) cell {
	if text == "" {
		return cell{Text: "–"}
	}
	return cell{Text: text, Href: prefix + url.PathEscape(text)}
}

// subject returns what an action is about, as a link if it has a page.
func subject(id string) cell {
	for prefix, path := range map[string]string{"agt_": "/agents/", "sess_": "/sessions/", "PAY": "/recharges/"} {
		if strings.HasPrefix(id, prefix) {
			return link(id, path)
		}
	}
	return text(id)
}

// tags are the colours of states.
var tags = map[string]string{"active": "good", "creating": "warn", "failed": "bad", "disabled": "bad",
	"expired":    "off",
	"terminated": "off", "confirmed": "good", "unknown": "bad", "refused": "off", "sent": "warn", "planned": "warn",
	"free": "good", "restricted": "warn", "replaced": "off", "paid": "good", "pending": "warn", "confirming": "warn"}

func tag[S ~string](s S) cell { return cell{Text: cmp.Or(string(s), "–"), Tag: tags[string(s)]} }

// do returns a link to the form of an action.
func do(name, label, subject string) button {
	return button{Text: label, Href: "/do/" + name + "?subject=" + url.QueryEscape(subject)}
}

// doDanger returns a link to the form of an action that cannot be undone.
func doDanger(name, label, subject string) button {
	b := do(name, label, subject)
	b.Danger = true
	return b
}

// choice returns a field of a list of values, the first of which is any.
func choice(r *http.Request, name, label string, values ...string) field {
	f := field{Name: name, Label: label, Options: []option{{Value: "", Text: "any"}}}
	for _, v := range values {
		f.Options = append(f.Options, option{Value: v, Text: v, Chosen: r.URL.Query().Get(name) == v})
	}
	return f
}

// given returns a field with what the query has.
func given(r *http.Request, name, label string) field {
	return field{Name: name, Label: label, Value: r.URL.Query().Get(name)}
}

// days returns the days from and to of the query, of which either may be missing.
func days(r *http.Request) (from, to time.Time, err error) {
	for name, at := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := r.URL.Query().Get(name); text != "" {
			if *at, err = time.Parse(time.DateOnly, text); err != nil {
				return from, to, domain.InvalidField(name, "must be a day such as 2026-11-01")
			}
		}
	}
	return from, to, nil
}

// dayField returns a field of a day with the value of the request.
func dayField(r *http.Request, name, label string) field {
	f := given(r, name, label)
	f.Type = "date"
	return f
}

// pageSize is how many rows a page of a list has.
const pageSize = 50

func pageOf(r *http.Request) domain.Page {
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || n < 1 || n > 1_000_000 {
		n = 1
	}
	return domain.Page{Number: n, Size: pageSize}
}

// paged adds the links to the pages before and after.
func (s section) paged(r *http.Request, p domain.Page, total int) section {
	to := func(n int) string {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		q.Del("done")
		return r.URL.Path + "?" + q.Encode()
	}
	if p.Number > 1 {
		s.Newer = to(p.Number - 1)
	}
	if p.Number*p.Size < total {
		s.Older = to(p.Number + 1)
	}
	return s
}

// actionPath is what the paths of all forms begin with.
const actionPath = "/do/"

// withoutActions removes what leads to forms, for users who may not send them.
func (p page) withoutActions() page {
	p.Form = nil
	p.Sections = slices.Clone(p.Sections)
	for i := range p.Sections {
		s := &p.Sections[i]
		s.Links = readable(s.Links)
		s.Figures, s.Facts = readableFigures(s.Figures), readableFigures(s.Facts)
		if s.Table == nil {
			continue
		}
		t := *s.Table
		t.Rows = slices.Clone(t.Rows)
		for j := range t.Rows {
			cells := slices.Clone(t.Rows[j].Cells)
			for k := range cells {
				cells[k] = cells[k].readable()
			}
			t.Rows[j].Cells = cells
		}
		s.Table = &t
	}
	return p
}

func readable(list []button) []button {
	return slices.DeleteFunc(slices.Clone(list), func(b button) bool { return strings.HasPrefix(b.Href, actionPath) })
}

func readableFigures(list []figure) []figure {
	list = slices.Clone(list)
	for i := range list {
		list[i].Value = list[i].Value.readable()
	}
	return list
}

// readable returns a cell without links to forms.
func (c cell) readable() cell {
	if strings.HasPrefix(c.Href, actionPath) {
		c.Href = ""
	}
	if len(c.Links) > 0 {
		if c.Links = readable(c.Links); len(c.Links) == 0 && c.Text == "" {
			c.Text = "–"
		}
	}
	return c
}
