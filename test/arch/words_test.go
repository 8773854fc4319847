package arch_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// figurative are words for code as if it were a person; observing are more that no comment has,
// but messages about a client.
const (
	figurative = `says?|said|nobody|somebody|whoever|told|tells?|hears?|heard|speaks?|spoken|` +
		`wish(es)?|stands?|of ours|so many|judges?|judged|knows|knew|learns|learned|thinks?|believes?|believed`
	observing = `saw|wants`
)

var (
	inComments = regexp.MustCompile(`(?i)\b(` + figurative + `|` + observing + `)\b`)
	inText     = regexp.MustCompile(`(?i)\b(` + figurative + `)\b`)
	inNames    = regexp.MustCompile(`(Says|Said|Nobody|Somebody|Whoever|Told|Tells|Hears|Speaks|Stands|Knows|Wish)([A-Z]|$)`)
)

// TestWordsAreTechnicalTerms covers comments, messages, and the names of functions and subtests.
func TestWordsAreTechnicalTerms(t *testing.T) {
	for _, s := range sources(t) {
		refuse := func(at token.Pos, what, word string) {
			if word != "" {
				t.Errorf("%s: the %s has %q: use the technical term", s.fset.Position(at), what, word)
			}
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				refuse(c.Pos(), "comment", inComments.FindString(c.Text))
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				refuse(n.Pos(), "name", inNames.FindString(n.Name.Name))
			case *ast.BasicLit: // a text of one word is data
				if n.Kind == token.STRING && strings.Contains(n.Value, " ") && !strings.HasPrefix(s.path, "test/arch/") {
					refuse(n.Pos(), "text", inText.FindString(strings.ReplaceAll(n.Value, "Heard Island", "")))
				}
			}
			return true
		})
	}
}
