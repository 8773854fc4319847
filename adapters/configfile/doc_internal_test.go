package configfile

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// TestTheConfigurationPageIsCurrent generates the page from the comments and tags
// of Config, its defaults, and the keys of the file.
func TestTheConfigurationPageIsCurrent(t *testing.T) {
	const page = "../../docs/configuration.md"
	generated := configurationPage(t)
	if *update {
		if err := os.WriteFile(page, generated, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Equal(text, generated) {
		t.Errorf("docs/configuration.md is stale (%v): run make generate", err)
	}
}

const introduction = `<!-- Written by make generate; do not edit. -->

# Configuration

Every setting is an environment variable. Most can also be a key of the YAML file that ` + "`AGENTPROXY_CONFIG`" + ` names.
A variable wins over the file, the file over the default. Lists in a variable are separated by commas.

` + "`agentproxy config check`" + ` lists every fault with its variable, or its file, line and key, without starting the service.

## Settings

| variable | key of the file | default | meaning |
|---|---|---|---|
| ` + "`AGENTPROXY_CONFIG`" + ` | – | none | Path of the YAML file. |
`

// configurationPage returns docs/configuration.md.
func configurationPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(introduction)
	config, meanings := defaults(), fieldComments(t)
	for _, s := range settings(reflect.ValueOf(&config).Elem()) {
		key := "–"
		if s.key != "-" {
			key = "`" + s.key + "`"
		}
		if meanings[s.of.Name] == "" {
			t.Errorf("the field %s has no comment", s.of.Name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.variable, key, defaultText(s), meanings[s.of.Name])
	}
	b.WriteString("\n## Providers and products\n\nThese keys exist in the file alone.\n")
	for _, m := range []struct {
		title string
		keys  []key
	}{
		{"The file", catalogKeys}, {"`providers[]`", providerKeys}, {"`providers[].secrets.NAME`", secretKeys},
		{"`providers[].sourcing`", sourcingKeys},
		{"`exit_facts[]`", exitFactKeys}, {"`policy`", policyKeys}, {"`products[].policy`", productPolicyKeys}, {"`policy.deny[]` that is a file", ruleFileKeys},
		{"`products[]`", productKeys}, {"`products[].durations[]`", durationKeys}, {"`products[].sources[]`", sourceKeys},
		{"`products[].sources[].costs[]`", costKeys},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | meaning |\n|---|---|---|\n", m.title)
		for _, k := range m.keys {
			absent := k.absent
			if absent == "" {
				absent = "required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, absent, sentence(k.meaning))
		}
	}
	return b.Bytes()
}

// defaultText returns the default of a setting.
func defaultText(s setting) string {
	if text := s.of.Tag.Get("default"); text != "" {
		return text
	}
	if s.field.IsZero() {
		return "none"
	}
	return fmt.Sprintf("`%v`", s.field.Interface())
}

// fieldComments returns the comments of the fields of Config by name.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, file := range []string{"config.go", "payments.go", "tls.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil && field.Doc != nil {
				comments[field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
			return true
		})
	}
	return comments
}

// sentence returns a text with an upper-case letter and a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }
