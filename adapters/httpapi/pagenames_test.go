package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/httpapi/pages"
	"agentproxy/adapters/mcp"
	"agentproxy/domain/account"
	"agentproxy/domain/connect"
	"agentproxy/domain/webhook"
)

// names is what pages may name.
type names struct {
	w        *world
	base     string
	words    map[string]bool // fields, parameters, values, tools, headers
	codes    map[string]bool // of errors, and variables
	commands map[string]pages.Command
	routes   []string // method and path, with {name} for parameters
}

var parameter = regexp.MustCompile(`:(\w+)`)

// more are the words of other vocabularies that the pages use between backticks.
var more = strings.Fields(`apx curl url env json deny allow success data error meta
	isError structuredContent mcpServers agentproxy headers command args mcp
	webhook-id webhook-timestamp webhook-signature layer rule next_step code message how_to_fix retryable
	docs fields nearest register https
	about api steps do call body links rel href anchor linkset item`)

// newNames collects them from a service with tools.
func newNames(t *testing.T, w *world) *names {
	n := &names{w: w, base: "http://127.0.0.1:0", words: map[string]bool{}, codes: map[string]bool{}, commands: map[string]pages.Command{}}
	for _, r := range w.server.Routes() {
		n.routes = append(n.routes, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
	}
	var tree any
	if err := json.Unmarshal([]byte(w.page("/v1/openapi.json")), &tree); err != nil {
		t.Fatal(err)
	}
	n.collect(tree)
	w.doc.operations(func(_, _ string, op *openapi3.Operation) {
		for _, r := range op.Responses.Map() {
			if media := r.Value.Content["application/json"]; media != nil {
				for code := range media.Examples {
					n.codes[code] = true
				}
			}
		}
	})
	for _, code := range []string{"NOT_FOUND", "METHOD_NOT_ALLOWED", "CROSS_SITE_REQUEST", "TLS_REQUIRED"} {
		n.codes[code] = true // of calls that no operation takes
	}
	for c := refusal.Code(1); int(c) < refusal.Codes; c++ {
		n.codes[c.String()] = true
	}
	for _, tool := range mcp.Listings() {
		n.add(tool.Name)
		n.add(tool.Fields...)
	}
	for _, scope := range account.Scopes {
		n.add(string(scope))
	}
	for _, event := range webhook.Types {
		n.add(string(event))
	}
	n.add(more...)
	n.variables(t)
	for _, c := range pages.Commands() {
		n.commands[c.Name] = c
	}
	return n
}

func (n *names) add(words ...string) {
	for _, word := range words {
		n.words[word] = true
	}
}

// collect adds the names of fields and parameters and the values of enumerations of the document.
func (n *names) collect(node any) {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			n.collect(v)
		}
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok {
			n.add(slices.Collect(maps.Keys(properties))...)
		}
		if name, ok := node["name"].(string); ok && node["in"] != nil {
			n.add(name)
		}
		values, _ := node["enum"].([]any)
		for _, v := range values {
			if text, ok := v.(string); ok {
				n.add(text)
			}
		}
		for _, v := range node {
			n.collect(v)
		}
	}
}

// variables adds the variables of the service, of apx, and of what a shell evaluates.
func (n *names) variables(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	apx, err := os.ReadFile("../../cmd/apx/service.go")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page) + string(apx) + connect.Env([]connect.Proxy{{}})
	for _, name := range regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b`).FindAllString(text, -1) {
		n.codes[name] = true
	}
	n.codes["NODE_USE_ENV_PROXY"] = true // of Node.js
}

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	upperName = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	operation = regexp.MustCompile("\\b(GET|POST|PUT|DELETE|PATCH|HEAD) (?:https?://[^/\\s]+)?(/[^\\s`\"?)|,;]*)")
	address   = regexp.MustCompile("https?://[^\\s`\"')>\\]]+")
	apiCall   = regexp.MustCompile(`\$API(/[^\s"?|)]*)`)
	jsonKey   = regexp.MustCompile(`[{,]\s*\\?"(\w+)\\?":`)
	apxCall   = regexp.MustCompile("(?:^|[`(\\s])apx ([a-z]+)")
	flagName  = regexp.MustCompile(`(?:^|[\s\[])(--[a-z-]+)`)
	spelled   = regexp.MustCompile(`^[a-z]+[a-z0-9]*(_[a-z0-9]+)*(\.[a-z]+[a-z0-9]*(_[a-z0-9]+)*)*$`)
)

// unknown returns what a page names and the program does not have.
func (n *names) unknown(text string) (list []string) {
	report := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for line := range strings.Lines(text) {
		called := apxCall.FindAllStringSubmatch(line, -1)
		flags := map[string]bool{"--json": true, "--help": true}
		placeholders := map[string]bool{}
		for _, m := range called {
			c, ok := n.commands[m[1]]
			if !ok {
				report("the command apx %s", m[1])
			}
			for _, f := range c.Flags {
				name, value, _ := strings.Cut(f, " ")
				flags[name], placeholders[value] = true, true
			}
		}
		for _, m := range flagName.FindAllStringSubmatch(line, -1) {
			if len(called) > 0 && !flags[m[1]] {
				report("the flag %s of %s", m[1], strings.TrimSpace(line))
			}
		}
		for _, code := range upperName.FindAllString(line, -1) {
			if !n.codes[code] && !placeholders[code] {
				report("the code or variable %s", code)
			}
		}
		for _, m := range jsonKey.FindAllStringSubmatch(line, -1) {
			if !n.words[m[1]] && !n.codes[m[1]] && !regexp.MustCompile(`^X-`).MatchString(m[1]) {
				report("the field %s", m[1])
			}
		}
	}
	for _, m := range operation.FindAllStringSubmatch(text, -1) {
		if !n.routed(m[1], strings.TrimRight(m[2], ".")) {
			report("the operation %s %s", m[1], m[2])
		}
	}
	for _, m := range apiCall.FindAllStringSubmatch(text, -1) {
		if path := regexp.MustCompile(`\$\w+|\$\(.*$`).ReplaceAllString(m[1], "x"); !n.routed("", "/v1"+path) {
			report("the path %s", m[1])
		}
	}
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		if word := span[1]; spelled.MatchString(word) && !n.words[word] {
			for part := range strings.SplitSeq(word, ".") {
				if !n.words[part] && !strings.HasSuffix(word, "example.com") {
					report("the name %s", word)
				}
			}
		}
	}
	return append(list, n.deadLinks(text)...)
}

// routed reports whether a path is served; an empty method is any.
func (n *names) routed(method, path string) bool {
	return slices.ContainsFunc(n.routes, func(route string) bool {
		m, template, _ := strings.Cut(route, " ")
		if method != "" && m != method {
			return false
		}
		asked, have := strings.Split(path, "/"), strings.Split(template, "/")
		return len(asked) == len(have) && !slices.ContainsFunc(have, func(segment string) bool {
			at := slices.Index(have, segment)
			return segment != asked[at] && (!strings.HasPrefix(segment, "{") || strings.HasPrefix(asked[at], "{") && asked[at] != segment)
		})
	})
}

// deadLinks returns the addresses that do not answer. Examples of targets are no links.
func (n *names) deadLinks(text string) (list []string) {
	for _, link := range address.FindAllString(text, -1) {
		link = strings.TrimRight(link, ".,;:")
		path, ours := strings.CutPrefix(link, n.base)
		if !ours {
			if host, _, _ := strings.Cut(strings.SplitN(link, "://", 2)[1], "/"); host != "example.com" && !strings.Contains(link, "PASSWORD") &&
				!strings.HasPrefix(host, "127.0.0.1:8899") && host != "proxy.test:8081" {
				list = append(list, "a foreign address "+link)
			}
			continue
		}
		path, row, _ := strings.Cut(path, "#")
		path, _, _ = strings.Cut(path, "?")
		switch {
		case path == "":
		case strings.HasPrefix(path, "/v1") || path == "/mcp":
			if !n.routed("", path) {
				list = append(list, "the address "+link)
			}
		default:
			if r := n.w.get("GET", path); r.StatusCode != 200 {
				list = append(list, "the link "+link)
			} else if row != "" && !strings.Contains(n.w.page(path), "`"+row+"`") {
				list = append(list, "the row "+link)
			}
		}
	}
	return list
}

func TestPagesNameWhatExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{tools: noTools})
	n := newNames(t, w)
	for _, path := range append([]string{"/", "/robots.txt", "/.well-known/api-catalog", "/.well-known/security.txt"}, documentation...) {
		if found := n.unknown(w.page(path)); len(found) > 0 {
			t.Errorf("%s names what does not exist: %s", path, strings.Join(found, "; "))
		}
	}
	skill, err := os.ReadFile("../../skills/agentproxy/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	if found := n.unknown(strings.ReplaceAll(string(skill), "http://127.0.0.1:8080", n.base)); len(found) > 0 {
		t.Errorf("SKILL.md names what does not exist: %s", strings.Join(found, "; "))
	}
	home := w.page("/", "Accept", "text/html")
	links := regexp.MustCompile(`href="([^"#]+)"`).FindAllStringSubmatch(home, -1)
	for _, m := range links {
		if r := w.get("GET", m[1]); r.StatusCode != 200 {
			t.Errorf("the first page links to %s: %d", m[1], r.StatusCode)
		}
	}
	if len(links) < 15 || strings.Contains(home, "style=") || strings.Contains(home, "<script") {
		t.Errorf("the first page has %d links, or what its policy forbids", len(links))
	}
	for what, wrong := range map[string]string{
		"a code": "`SESSION_LOST`", "an operation": "`GET /v1/session`", "a method": "`PUT /v1/sessions`", "a parameter": "`GET /v1/sessions/{id}`",
		"a command": "`apx sell`", "a flag": "`apx buy PRODUCT --max-price 5`", "a nested flag": "S=$(apx buy $(apx products --limit 3) --gb 1)",
		"a tool": "`buy_session`", "a field": "`proxy.url_full`", "a body": `-d '{"type":"dynamic","konfig":{}}'`, "a call": `curl $API/sessions/$S/rotations`,
		"a page": n.base + "/docs/none.md", "a row": n.base + "/docs/errors.md#NO_CODE", "an address": "see " + n.base + "/v1/none", "a host": "https://elsewhere.test/x",
		"a variable": "AGENTPROXY_KEY_FILE", "a word": "`enforced`",
	} {
		if len(n.unknown(wrong)) == 0 {
			t.Errorf("%s that does not exist is not found: %s", what, wrong)
		}
	}
}
