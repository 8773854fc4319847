package apiclient_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// call is a method to be written: an operation has one for each form of its body, for a dry run, for each kind of
// content, and for all pages.
type call struct {
	*operation
	name    string
	args    string // of the method, after the context
	ids     string // of the request
	input   string // the type of the input; empty: none
	body    string
	isQuery bool
	isKeyed bool // takes an Idempotency-Key
	paged   bool
}

// oneUse are operations that read but cannot be repeated: the link ends with its first use.
var oneUse = map[string]bool{"reveal-credentials": true}

// methods writes all operations.
func (g *generator) methods() string {
	for _, o := range g.operations() {
		bodies := g.bodies(o)
		if len(bodies) == 0 {
			g.operation(o, nil, "")
		}
		for i, b := range bodies {
			suffix := ""
			if _, name, _ := g.resolve(b); i > 0 {
				suffix = strings.TrimPrefix(name, "Create")
			}
			g.operation(o, b, suffix)
		}
	}
	return g.take()
}

// operation writes what one form of an operation needs.
func (g *generator) operation(o *operation, body *schema, suffix string) {
	c := call{operation: o, name: nameOf(o.ID) + suffix}
	var params []string
	for _, p := range g.parameters(o, "path") {
		params = append(params, argument(p.Name))
	}
	if len(params) > 0 {
		list := strings.Join(params, ", ")
		c.args, c.ids = ", "+list+" string", ", ids: []string{"+list+"}"
	}
	c.isKeyed = len(g.parameters(o, "header")) > 0
	c.paged = slices.ContainsFunc(g.parameters(o, "query"), func(p parameter) bool { return p.Name == "cursor" })
	switch r, name, _ := g.resolveBody(body); {
	case body != nil && name == "": // of any form
		c.args += ", in map[string]any"
		c.body = ", body: in"
	case body != nil:
		c.input, c.body = c.name, ", body: in"
		g.inputs[name] = true
		g.inputStruct(&c, r)
	case len(g.queryOf(o)) > 0:
		c.input, c.isQuery = c.name, true
		g.queryStruct(&c)
	}
	if c.input != "" {
		c.args += ", in " + c.input
	}
	g.variants(&c)
}

func (g *generator) resolveBody(s *schema) (*schema, string, bool) {
	if s == nil {
		return nil, "", false
	}
	return g.resolve(s)
}

// queryOf returns the parameters of the query that callers set.
func (g *generator) queryOf(o *operation) []parameter {
	return slices.DeleteFunc(g.parameters(o, "query"), func(p parameter) bool { return p.Name == "dry_run" || p.Deprecated })
}

func (g *generator) inputStruct(c *call, s *schema) {
	g.comment(c.name + " is what " + c.name + " of Client takes.")
	g.line("type %s struct {", c.name)
	g.fields(s, c.name, true, c.method == "PUT" || c.method == "PATCH")
	if c.isKeyed {
		g.comment(g.parameters(c.operation, "header")[0].Description + " A new one is made if it is empty.")
		g.line("IdempotencyKey string `json:\"-\"`")
	}
	set := g.queryFields(c, " `json:\"-\"`")
	g.line("}\n")
	if c.isQuery = set != ""; c.isQuery {
		g.queryMethod(c, set)
	}
}

func (g *generator) queryStruct(c *call) {
	g.comment(c.name + " is what " + c.name + " of Client takes. A field with the zero value is left out.")
	g.line("type %s struct {", c.name)
	set := g.queryFields(c, "")
	g.line("}\n")
	g.queryMethod(c, set)
}

func (g *generator) queryMethod(c *call, set string) {
	g.line("func (in %s) query() (q query) {\n%sreturn q\n}\n", c.name, set)
}

// queryFields writes the parameters as fields with a tag, and returns what puts them into a query.
func (g *generator) queryFields(c *call, tag string) string {
	var set strings.Builder
	for _, p := range g.queryOf(c.operation) {
		typ, put, value := g.typeOf(p.Schema, c.name+"."+p.Name), "text", "in."+nameOf(p.Name)
		switch {
		case typ == "int":
			put = "number"
		case typ != "string":
			value = "string(" + value + ")"
		case fmt.Sprint(p.Schema.Enum) == "[true false]":
			typ, put = "bool", "flag"
		}
		g.comment(p.Description)
		g.line("%s %s%s", nameOf(p.Name), typ, tag)
		fmt.Fprintf(&set, "q.%s(%q, %s)\n", put, p.Name, value)
	}
	return set.String()
}

// variants writes the methods.
func (g *generator) variants(c *call) {
	data, dry := g.succeeds(c.operation)
	for _, kind := range slices.Sorted(maps.Keys(data)) {
		switch s := data[kind][0]; {
		case kind == "application/json" && s.Ref != "":
			if len(data[kind]) != 1 {
				panic(c.ID + " has answers of several types")
			}
			out := g.typeOf(s, nameOf(c.ID))
			g.method(c, "", "", out)
			if dry {
				g.method(c, "DryRun", "DryRun", "DryRun")
				g.typeOf(&schema{Ref: "#/DryRun"}, nameOf(c.ID)+"DryRun")
			}
			if c.paged {
				g.pages(c, g.typeOf(g.itemsOf(s), nameOf(c.ID)))
			}
		case len(data) == 1: // the only content
			g.plain(c, "", kind)
		default:
			g.plain(c, strings.ToUpper(kind[strings.IndexByte(kind, '/')+1:]), kind)
		}
	}
}

func (g *generator) itemsOf(s *schema) *schema {
	r, _, _ := g.resolve(s)
	return r.Properties["items"].Items
}

// requestOf writes the value of a request.
func (c *call) requestOf(dry bool, accept string) string {
	out := fmt.Sprintf("request{method: %q, path: %q", c.method, c.path) + c.ids
	switch {
	case c.isQuery:
		out += ", query: in.query()"
	case dry:
		out += `, query: query{{"dry_run", "true"}}`
	}
	out += c.body
	if accept != "" {
		out += fmt.Sprintf(", accept: %q", accept)
	}
	if c.isKeyed && !dry {
		out += ", key: keyOr(in.IdempotencyKey)"
	}
	if dry || c.method == "GET" && !oneUse[c.ID] {
		out += ", safe: true"
	}
	return out + "}"
}

func (g *generator) about(c *call, name, more string) {
	summary := strings.ToLower(c.Summary[:1]) + c.Summary[1:]
	if len(c.Summary) > 1 && strings.ToUpper(c.Summary[:2]) == c.Summary[:2] {
		summary = c.Summary
	}
	g.comment(fmt.Sprintf("%s sends %s /v1%s: %s%s.", name, c.method, c.path, summary, more))
	if more == "" {
		g.line("//")
		g.comment(c.Description)
	}
}

func (g *generator) method(c *call, suffix, schema, out string) {
	name, more := c.name+suffix, ""
	if schema != "" {
		more = ", as a dry run, which answers the cost and stores nothing"
	}
	g.about(c, name, more)
	g.line("func (c *Client) %s(ctx context.Context%s, options ...Option) (out %s, err error) {", name, c.args, out)
	g.line("err = c.call(ctx, %s, &out, options)\nreturn out, err\n}\n", c.requestOf(schema != "", ""))
}

// plain writes a method that answers what is no envelope.
func (g *generator) plain(c *call, suffix, kind string) {
	name, more := c.name+suffix, ""
	if suffix != "" {
		more = ", as " + suffix
	}
	g.about(c, name, more)
	g.line("func (c *Client) %s(ctx context.Context%s, options ...Option) ([]byte, error) {", name, c.args)
	g.line("return c.read(ctx, %s, options)\n}\n", c.requestOf(false, kind))
}

// pages writes a method that reads all pages.
func (g *generator) pages(c *call, item string) {
	name := "All" + strings.TrimPrefix(strings.TrimPrefix(c.name, "List"), "Get")
	ids := ""
	if c.ids != "" {
		ids = strings.TrimSuffix(strings.TrimPrefix(c.ids, ", ids: []string{"), "}") + ", "
	}
	g.comment(fmt.Sprintf("%s returns the items of all pages of %s, from the given one on. It stops after an error.", name, c.name))
	g.line("func (c *Client) %s(ctx context.Context%s, options ...Option) iter.Seq2[%s, error] {", name, c.args, item)
	g.line("return each(func(cursor string) ([]%s, string, error) {\nin := in.after(cursor)", item)
	g.line("page, err := c.%s(ctx, %sin, options...)\nreturn page.Items, page.Pagination.next(cursor), err\n})\n}\n", c.name, ids)
	g.line(`func (in %s) after(cursor string) %s {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}
`, c.input, c.input)
}
