package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// properNouns are words of ports' comments that begin with a capital letter and are no identifiers.
var properNouns = map[string]bool{"PostgreSQL": true, "SQLite": true, "Trace": true, "Bearer": true}

// capital finds words with a capital letter that do not begin a sentence.
var capital = regexp.MustCompile(`(^|[^.:;!?\n] |[(*\[.])([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)`)

// identifiersIn returns the words of a comment that must be identifiers.
func identifiersIn(comment string) (found []string) {
	text := strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", "")), " ")
	if _, rest, ok := strings.Cut(text, " "); ok {
		text = rest // the first word is the identifier itself, or begins a sentence
	} else {
		return nil
	}
	for _, m := range capital.FindAllStringSubmatch("x "+text, -1) {
		found = append(found, m[2])
	}
	return found
}

// TestCommentsOfPortsNameIdentifiersThatExist finds what a comment of a port calls by a name that is gone.
func TestCommentsOfPortsNameIdentifiersThatExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	files := map[string]*ast.File{}
	set := token.NewFileSet()
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") || !strings.HasPrefix(s.path, "ports/") && !strings.HasPrefix(s.path, "domain/") {
			continue
		}
		f, err := parser.ParseFile(set, s.path, s.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				declared[id.Name] = true
			}
			return true
		})
		if strings.HasPrefix(s.path, "ports/") {
			files[s.path] = f
		}
	}
	checked := 0
	for _, f := range files {
		for _, comment := range f.Comments {
			for _, word := range identifiersIn(comment.Text()) {
				checked++
				if !declared[word] && !properNouns[word] {
					t.Errorf("%s: the comment names %s, which is no identifier of domain or ports", set.Position(comment.Pos()), word)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d words were checked", checked)
	}
}

func TestIdentifiersInAComment(t *testing.T) {
	t.Parallel()
	got := strings.Join(identifiersIn("Order buys. Where it is\nRepeatable, domain.Kind or *Error. An end (Find)."), " ")
	if got != "Repeatable Kind Error Find" {
		t.Errorf("got %s", got)
	}
}
