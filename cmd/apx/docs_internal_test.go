package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

const docs = "../../docs/apx.md"

// The lines around the commands.
const docsBegin, docsEnd = "<!-- commands: written by make generate -->\n", "<!-- end of commands -->\n"

// described writes the commands as the documentation has them.
func described(t *testing.T) string {
	t.Helper()
	var c commands
	parser, err := kong.New(&c, kong.Name("apx"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n| Command | Does |\n|---|---|\n")
	for _, n := range parser.Model.Leaves(true) {
		usage := "apx " + n.Name
		if group := n.Parent; group.Parent != nil {
			usage = "apx " + group.Name + " " + n.Name
		}
		var flags []string
		for _, p := range n.Positional {
			usage += " " + strings.ToUpper(p.Name)
		}
		for _, f := range n.Flags {
			name := "--" + f.Name
			if !f.IsBool() {
				name += " " + strings.ToUpper(f.Name)
			}
			usage += " [" + name + "]"
			help := f.Help
			if f.HasDefault && f.Default != "" {
				help += " Default: `" + f.Default + "`."
			}
			flags = append(flags, "`--"+f.Name+"`: "+help)
		}
		for _, p := range n.Positional {
			flags = append(flags, "`"+strings.ToUpper(p.Name)+"`: "+p.Help)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", usage, strings.Join(append([]string{n.Help}, flags...), "<br>"))
	}
	return b.String() + "\n"
}

// TestDocumentationHasTheCommands compares docs/apx.md with the table of the commands.
func TestDocumentationHasTheCommands(t *testing.T) {
	page, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), docsBegin)
	old, after, ends := strings.Cut(rest, docsEnd)
	if !begins || !ends {
		t.Fatal("docs/apx.md lacks the lines around the commands")
	}
	want := described(t)
	if *update {
		if err := os.WriteFile(docs, []byte(before+docsBegin+want+docsEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if old != want {
		t.Error("docs/apx.md has other commands than apx: run make generate")
	}
}
