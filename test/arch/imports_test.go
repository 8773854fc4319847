package arch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// rule names the packages of this module that a package may import. "domain/..."
// is a package with those below it, "..." is every package.
type rule struct{ from, may string }

// imports is the map of the packages: one rule for each, from the core outwards. A
// rule that allows more than its package imports fails the test, too.
var imports = []rule{}

// covers reports whether a rule allows a package.
func covers(may, to string) bool {
	for pattern := range strings.FieldsSeq(may) {
		prefix, below := strings.CutSuffix(pattern, "...")
		if pattern == to || below && (prefix == "" || to+"/" == prefix || strings.HasPrefix(to, prefix)) {
			return true
		}
	}
	return false
}

// mayImport reports whether a package may import another one of this module.
func mayImport(from, to string) bool {
	if strings.HasPrefix(from, "test/") || strings.HasPrefix(from, "examples/") {
		return true
	}
	for _, r := range imports {
		if r.from == from {
			return covers(r.may, to)
		}
	}
	// Packages without a rule of their own follow that of their layer.
	layer, _, _ := strings.Cut(from, "/")
	switch {
	case layer == "domain":
		return covers("domain/...", to)
	case layer == "ports":
		return covers("domain/... ports", to)
	case layer == "cmd":
		return !strings.HasPrefix(to, "test/")
	case layer == "app":
		return covers("domain/... ports app/...", to)
	case layer == "adapters":
		own, _, _ := strings.Cut(strings.TrimPrefix(from, "adapters/"), "/")
		return covers("domain/... ports app/... adapters/"+own+"/...", to)
	}
	return false
}

const page = root + "/docs/architecture.md"

var update = flag.Bool("update", false, "rewrite the map of imports in docs/architecture.md")

// TestTheArchitecturePageShowsTheMap compares the page with the rules.
func TestTheArchitecturePageShowsTheMap(t *testing.T) {
	const begin, end = "<!-- imports: written by go test ./test/arch -update -->\n", "<!-- end of imports -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, opened := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		t.Fatalf("%s has no section between %q and %q", page, begin, end)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(begin + "\n| package | may import |\n|---|---|\n")
	for _, r := range imports {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.from, listed(r.may))
	}
	b.WriteString("\n" + end)
	b.Write(tail)
	if bytes.Equal(b.Bytes(), text) {
		return
	}
	if !*update {
		t.Fatal("docs/architecture.md is stale: run go test ./test/arch -update")
	}
	if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func listed(may string) string {
	switch may {
	case "":
		return "nothing of this module"
	case "...":
		return "everything"
	}
	return "`" + strings.Join(strings.Fields(may), "`, `") + "`"
}
