package arch_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"
)

// figurative are words that comments use for code as if it were a person.
var figurative = regexp.MustCompile(`(?i)\b(says?|said|nobody|somebody|whoever|told|tells?|hears?|heard|speaks?|spoken|` +
	`wish(es)?|stands?|of ours|so many|judges?|judged|knows|knew|saw|wants|learns|learned|thinks?|believes?|believed)\b`)

func TestCommentsUseTechnicalTerms(t *testing.T) {
	for path, p := range packages(t) {
		for _, names := range [][]string{p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				fset := token.NewFileSet()
				f, err := parser.ParseFile(fset, filepath.Join(root, path, name), nil, parser.ParseComments|parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				for _, group := range f.Comments {
					for _, c := range group.List {
						if word := figurative.FindString(c.Text); word != "" {
							t.Errorf("%s: the comment has %q: use the technical term", fset.Position(c.Pos()), word)
						}
					}
				}
			}
		}
	}
}
