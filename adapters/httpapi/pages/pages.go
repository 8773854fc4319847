// Package pages writes what a program reads of the service before it has an account: a short page with
// links, pages of documentation in Markdown, a skill for agents, the first page for browsers, and the
// files of well-known addresses. Tables in them come from Sources, which are those of the program.
package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"strings"
	text "text/template"

	"agentproxy/domain/connect"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
)

//go:embed text
var files embed.FS

// The media types of the pages.
const (
	Markdown = "text/markdown; charset=utf-8"
	HTML     = "text/html; charset=utf-8"
	plain    = "text/plain; charset=utf-8"
)

// Page is a document with a path of its own.
type Page struct {
	Path, Kind string
	Text       []byte
}

// Set is everything that a service shows.
type Set struct {
	Files   []Page
	Index   []byte // Markdown of the first page, the same as /llms.txt
	API     []byte // Markdown of the reference
	Home    []byte // HTML of the first page
	Welcome Welcome
}

// doc is a page of documentation.
type doc struct{ Name, About string }

// docs are the pages of documentation, in the order of their use.
var docs = []doc{
	{"quickstart", "from nothing to a request through a proxy, with curl or with apx"},
	{"sessions", "buying, using, rotating, renewing and ending sessions; health and reports"},
	{"workers", "several identities at once"},
	{"errors", "every code of the API and of the gateway, and what to do"},
	{"money", "prices, holds, refunds, trial credit, budget, recharges"},
	{"clients", "the configuration of each HTTP client and browser"},
	{"mcp", "the tools for agents, and how the password stays out of the model"},
	{"apx", "the command line client"},
	{"policy", "what a session may reach, and what is forbidden to all"},
	{"webhooks", "events that are sent to you"},
	{"api", "every operation with its permission"},
}

// data is what the templates show.
type data struct {
	Sources
	Docs     []doc
	Commands []Command
	Clients  []snippet
	Events   []webhook.Type
}

type snippet struct{ Name, Language, Text, NoSOCKS, NoTLS string }

// Render writes all pages. An error means that a template contradicts the sources.
func Render(src Sources) (*Set, error) {
	d := data{Sources: src, Docs: docs, Commands: Commands(), Clients: snippets(src), Events: webhook.Types}
	r := renderer{data: d}
	set := &Set{Welcome: welcome(src), Index: r.text("llms.txt"), Home: r.html("home.html")}
	full := bytes.NewBuffer(set.Index)
	for _, p := range docs {
		body := r.text(p.Name + ".md")
		set.add("/docs/"+p.Name+".md", Markdown, join(r.text("pointer"), body))
		full = bytes.NewBuffer(join(full.Bytes(), body))
		if p.Name == "api" {
			set.API = join(r.text("pointer"), body)
		}
	}
	set.add("/llms.txt", plain, set.Index)
	set.add("/llms-full.txt", plain, full.Bytes())
	set.add("/skill.md", Markdown, r.text("skill.md"))
	set.add("/robots.txt", plain, r.text("robots.txt"))
	set.add("/.well-known/api-catalog", CatalogType, catalog(src))
	set.add("/favicon.ico", "image/svg+xml", r.file("favicon.svg"))
	set.add("/docs/home.css", "text/css; charset=utf-8", r.file("home.css"))
	return set, r.err
}

func (s *Set) add(path, kind string, text []byte) {
	s.Files = append(s.Files, Page{Path: path, Kind: kind, Text: text})
}

// join puts two texts after each other, with an empty line between them.
func join(a, b []byte) []byte { return bytes.Join([][]byte{a, b}, []byte("\n")) }

// snippets returns the configuration of every client for a proxy of this service.
func snippets(src Sources) (list []snippet) {
	p := connect.Proxy{Protocol: "http", Username: "USERNAME", Password: "PASSWORD"}
	p.Host, p.Port = splitGateway(src.Gateway)
	for _, name := range connect.Names() {
		c, _ := connect.Find(name)
		by, reason := p, ""
		switch {
		case src.GatewayOnlyTLS:
			c, by = c.OnlyTLS(p)
			reason = c.NoTLS
		case src.GatewayTLS:
			by, reason = c.ByTLS(p, "https://"+p.Address()), c.NoTLS
		}
		list = append(list, snippet{c.Name, c.Language, c.Snippet(connect.Use{Session: "SESSION", Proxy: by}), c.NoSOCKS,
			reason})
	}
	return list
}

// renderer executes the templates of one set and keeps the first error.
type renderer struct {
	data data
	err  error
}

func (r *renderer) file(name string) []byte {
	b, err := files.ReadFile("text/" + name)
	r.noteError(err)
	return b
}

func (r *renderer) noteError(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("render the pages: %w", err)
	}
}

// text renders a template whose output is text.
func (r *renderer) text(name string) []byte {
	var b bytes.Buffer
	t, err := text.New(name).Funcs(text.FuncMap{"cell": cell, "yes": yes}).Parse(string(r.file(name + ".tmpl")))
	if err == nil {
		err = t.Execute(&b, r.data)
	}
	r.noteError(err)
	return b.Bytes()
}

// html renders a template whose output is a page for browsers.
func (r *renderer) html(name string) []byte {
	var b bytes.Buffer
	t, err := template.New(name).Parse(string(r.file(name + ".tmpl")))
	if err == nil {
		err = t.Execute(&b, r.data)
	}
	r.noteError(err)
	return b.Bytes()
}

// cell makes a text fit into a cell of a table. The grammar of user names becomes code: it has the form of a link.
func cell(text string) string {
	text = strings.ReplaceAll(text, worker.Grammar, "`"+worker.Grammar+"`")
	return strings.ReplaceAll(text, "|", `\|`)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
