package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	createTable = regexp.MustCompile(`(?m)^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)`)
	statement   = regexp.MustCompile(`^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	namedTable  = regexp.MustCompile(`\b(?:FROM|INTO|UPDATE|JOIN)\s+(\w+)`)
)

// A table whose SQL is written by hand has its reason in the list of the decision.
func TestHandWrittenSQLIsListed(t *testing.T) {
	storage := filepath.Join(root, "adapters/storage")
	tables := map[string]bool{}
	files, err := filepath.Glob(storage + "/sqlite/migrations/*.sql")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range createTable.FindAllStringSubmatch(string(text), -1) {
			tables[m[1]] = true
		}
	}
	page, errPage := os.ReadFile(filepath.Join(root, "docs/adr/0005-hand-written-sql.md"))
	if err != nil || errPage != nil || len(tables) < 20 {
		t.Fatalf("%d tables, %v, %v", len(tables), err, errPage)
	}
	_, list, _ := strings.Cut(string(page), "Statements that stay by hand")
	list, _, _ = strings.Cut(list, "Everything else")
	listed := map[string]bool{}
	for _, row := range strings.Split(list, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, name := range strings.Split(cells[1], ",") {
				listed[strings.TrimSpace(name)] = true
			}
		}
	}
	for path, p := range packages(t) {
		if path != "adapters/storage" && !strings.HasPrefix(path, "adapters/storage/") {
			continue
		}
		for _, name := range p.GoFiles {
			if path == "adapters/storage/proof" && (strings.HasPrefix(name, "rules") || name == "verify.go") {
				continue // they are of every table
			}
			for text, at := range texts(t, filepath.Join(root, path, name)) {
				if !statement.MatchString(text) {
					continue
				}
				for _, m := range namedTable.FindAllStringSubmatch(text, -1) {
					if tables[m[1]] && !listed[m[1]] {
						t.Errorf("%s: SQL by hand names %s, which docs/adr/0005-hand-written-sql.md does not list", at, m[1])
					}
				}
			}
		}
	}
}

// texts returns the string literals of a file with their positions.
func texts(t *testing.T, file string) map[string]token.Position {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]token.Position{}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found[text] = fset.Position(lit.Pos())
			}
		}
		return true
	})
	return found
}
