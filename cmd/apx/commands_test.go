package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "rewrite the list of commands that the pages show")

// listed is the file that the pages are made from.
const listed = "../../adapters/httpapi/pages/commands.json"

type command struct {
	Name  string   `json:"name"`
	Args  string   `json:"args,omitempty"`
	Flags []string `json:"flags,omitempty"`
	Help  string   `json:"help"`
}

// TestThePagesListTheCommands compares what the program parses with what its pages show.
func TestThePagesListTheCommands(t *testing.T) {
	parser, err := kong.New(&commands{}, kong.Name("apx"))
	if err != nil {
		t.Fatal(err)
	}
	var list []command
	for _, n := range parser.Model.Children {
		c := command{Name: n.Name, Help: n.Help}
		for _, p := range n.Positional {
			c.Args = strings.TrimSpace(c.Args + " " + strings.ToUpper(p.Name))
		}
		for _, f := range n.Flags {
			name := "--" + f.Name
			if !f.IsBool() {
				name += " " + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			}
			c.Flags = append(c.Flags, name)
		}
		list = append(list, c)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(list); err != nil || len(list) < 10 {
		t.Fatal(len(list), err)
	}
	if *update {
		if err := os.WriteFile(listed, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(listed); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what apx parses (%v): run make generate", listed, err)
	}
}
