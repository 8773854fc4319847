package arch_test

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	mostMethods = 30    // of a type of app
	mostLines   = 1_700 // of a package of app, without its tests
)

// What is still above a limit. The lists only shrink.
var (
	manyMethods = map[string]bool{}
	longPackage = map[string]bool{}
	usesHTTP    = map[string]bool{}
)

// parsed returns the files of a package without its tests.
func parsed(t *testing.T, path string, p *build.Package) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(root, path, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// isApp reports whether a package is app or below it.
func isApp(path string) bool { return path == "app" || strings.HasPrefix(path, "app/") }

func TestTypesOfAppHaveFewMethods(t *testing.T) {
	for path, p := range packages(t) {
		if !isApp(path) {
			continue
		}
		methods := map[string]int{}
		_, files := parsed(t, path, p)
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					methods[receiver(fn.Recv.List[0].Type)]++
				}
			}
		}
		for name, n := range methods {
			if n > mostMethods && !manyMethods[path+"."+name] {
				t.Errorf("%s.%s has %d methods, at most %d are allowed: split it", path, name, n, mostMethods)
			}
		}
	}
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestPackagesOfAppAreSmall(t *testing.T) {
	for path, p := range packages(t) {
		if !isApp(path) || longPackage[path] {
			continue
		}
		lines := 0
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(root, path, name))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
		}
		if lines > mostLines {
			t.Errorf("%s has %d lines, at most %d are allowed: split it", path, lines, mostLines)
		}
	}
}

// TestTheCoreKnowsNoHTTP refuses net/http and numbers that are an HTTP status in
// app and ports. Named constants and durations are not taken for one.
func TestTheCoreKnowsNoHTTP(t *testing.T) {
	for path, p := range packages(t) {
		if !isApp(path) && path != "ports" || usesHTTP[path] {
			continue
		}
		for _, imported := range p.Imports {
			if imported == "net/http" {
				t.Errorf("%s imports net/http", path)
			}
		}
		fset, files := parsed(t, path, p)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GenDecl:
					return n.Tok != token.CONST
				case *ast.BinaryExpr:
					return n.Op != token.MUL
				case *ast.BasicLit:
					if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT && v >= 200 && v < 600 {
						t.Errorf("%s: %d looks like an HTTP status", fset.Position(n.Pos()), v)
					}
				}
				return true
			})
		}
	}
}
