// Package ui holds what the web consoles share: the layout, the style sheet, the
// scripts, and the rules against other sites.
package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed layout.html
var layout embed.FS

// Link is a link of the navigation.
type Link struct {
	Href, Text string
	Current    bool // the page is below it
}

// Problem is why something was refused, and what to do.
type Problem struct {
	Code, Message string
	Fields        []Field // of a form, which are wrong
}

// Field is an input of a form and what is wrong with it.
type Field struct{ Name, Issue string }

// Frame is a page: the layout around it, and its data.
type Frame struct {
	Base    string // the path of the console without a slash at the end; empty: the root
	Brand   string // follows the title in the tab
	Title   string // the one h1 of the page
	Nav     []Link // none: the page has no navigation
	Who     string // the account; empty: without a sign-in
	SignOut string // the path of the form that signs out; empty: none
	Help    string // the path of the documentation; empty: none
	Notice  string // what was done
	Problem *Problem
	Refresh int // after how many seconds a browser without scripts reads the page again; 0: never
	Data    any
}

// Pages are the parsed pages of a console, by name.
type Pages func() map[string]*template.Template

// Parse returns the pages of a console, which are parsed when the first is shown: a service without people has no use
// for them. Each file *.html in the root of pages is a page and defines the template "content"; files whose name begins
// with an underscore are parts that all pages may use. What it returns panics on a template that is wrong, since
// templates are embedded.
func Parse(pages fs.FS, funcs template.FuncMap) Pages {
	return sync.OnceValue(func() map[string]*template.Template { return parse(pages, funcs) })
}

func parse(pages fs.FS, funcs template.FuncMap) map[string]*template.Template {
	base := template.Must(template.New("").Funcs(Funcs).Funcs(funcs).ParseFS(layout, "layout.html"))
	files, err := fs.Glob(pages, "*.html")
	if err != nil {
		panic("ui: " + err.Error())
	}
	var own []string
	for _, name := range files {
		if strings.HasPrefix(name, "_") {
			template.Must(base.ParseFS(pages, name))
		} else {
			own = append(own, name)
		}
	}
	all := map[string]*template.Template{}
	for _, name := range own {
		all[strings.TrimSuffix(name, path.Ext(name))] = template.Must(template.Must(base.Clone()).ParseFS(pages, name))
	}
	return all
}

// Render answers a page. It writes nothing if the template fails.
func (p Pages) Render(w http.ResponseWriter, status int, name string, f Frame) error {
	var b bytes.Buffer
	t, ok := p()[name]
	if !ok {
		return fmt.Errorf("ui: there is no page %q", name)
	}
	if err := t.ExecuteTemplate(&b, "layout", f); err != nil {
		return fmt.Errorf("ui: page %s: %w", name, err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client is gone
	return nil
}
