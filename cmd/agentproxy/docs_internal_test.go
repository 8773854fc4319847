package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// named finds a command of the program in a page: in a code span, or at the start of a line.
var named = regexp.MustCompile("(?m)(?:`agentproxy|^agentproxy|\\./cmd/agentproxy) ([a-z][^`\n|]*)")

// TestDocumentationNamesCommandsThatExist walks the commands and the options that the pages name.
func TestDocumentationNamesCommandsThatExist(t *testing.T) {
	parser, err := kong.New(&cli{}, enums)
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md"}
	err = filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "sells ") { // the first sentence of the README
				continue
			}
			found++
			if unknown := unknownIn(parser.Model.Node, strings.Fields(m[1])); unknown != "" {
				t.Errorf("%s names agentproxy %s: there is no %q", page, m[1], unknown)
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d commands", found)
	}
}

// unknownIn returns the first word that is neither a command below node, an option of it nor an argument.
func unknownIn(node *kong.Node, words []string) string {
	for _, word := range words {
		word = strings.TrimLeft(word, "[")
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
			name, _, _ = strings.Cut(strings.TrimRight(name, "]"), "=")
			if !hasFlag(node, name) {
				return word
			}
			continue
		}
		if len(node.Children) == 0 {
			continue // an argument, or the value of an option
		}
		next := childOf(node, word)
		if next == nil {
			return word
		}
		node = next
	}
	return ""
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func hasFlag(node *kong.Node, name string) bool {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return true
			}
		}
	}
	return false
}
