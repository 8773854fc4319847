package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const (
	mostFileLines = 450 // of a file
	mostFuncLines = 70  // of a function, outside tests
	mostColumns   = 120 // of a line, outside tests; a tab is one
)

// source is a Go file of the repository.
type source struct {
	path string // below the root
	text []byte
	fset *token.FileSet
	file *ast.File
}

// test reports whether the file is of tests: a _test.go file or one below test/.
func (s source) test() bool {
	return strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "test/")
}

// sources returns every Go file, without generated ones.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Fatalf("found only %d files below %s", len(all), root)
	}
	return all
}

// readSources reads the files once for all tests.
var readSources = sync.OnceValues(func() (all []source, err error) {
	found, err := readPackages()
	for path, p := range found {
		for _, names := range [][]string{p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, name := range names {
				s := source{path: filepath.ToSlash(filepath.Join(path, name)), fset: token.NewFileSet()}
				if s.text, err = os.ReadFile(filepath.Join(root, s.path)); err != nil {
					return nil, err
				}
				s.file, err = parser.ParseFile(s.fset, s.path, s.text, parser.ParseComments|parser.SkipObjectResolution)
				if err != nil {
					return nil, err
				}
				if !ast.IsGenerated(s.file) {
					all = append(all, s)
				}
			}
		}
	}
	return all, err
})

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > mostFileLines {
			t.Errorf("%s has %d lines, at most %d are allowed: split it by subject", s.path, n, mostFileLines)
		}
	}
}

func TestFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > mostFuncLines {
				t.Errorf("%s: %s has %d lines, at most %d are allowed: split it", s.fset.Position(f.Pos()), f.Name.Name, n, mostFuncLines)
			}
		}
	}
}

// mostParameters is how many parameters a function may have. More are a struct, such as an fx.In.
const mostParameters = 7

func TestFunctionsTakeFewParameters(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(s.path, "test/") {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := f.Type.Params.NumFields(); n > mostParameters {
					t.Errorf("%s: %s has %d parameters, at most %d are allowed: take a struct", s.fset.Position(f.Pos()), f.Name.Name, n, mostParameters)
				}
			}
		}
	}
}

// TestLinesAreShort measures lines outside tests, but for fields with a tag: Go cannot break a tag, and
// huma and kong read the texts of the API and of the commands from there.
func TestLinesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		tagged := map[int]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Tag != nil {
				tagged[s.fset.Position(f.Tag.Pos()).Line] = true
			}
			return true
		})
		for i, line := range strings.Split(string(s.text), "\n") {
			if n := utf8.RuneCountInString(line); n > mostColumns && !tagged[i+1] {
				t.Errorf("%s:%d has %d columns, at most %d are allowed: break it", s.path, i+1, n, mostColumns)
			}
		}
	}
}
