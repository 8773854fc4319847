package arch_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	mostMethods = 30    // of a type of app
	mostLines   = 2_500 // of a package of app, without its tests
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
	over := map[string]string{}
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
			if n > mostMethods {
				over[path+"."+name] = fmt.Sprintf("has %d methods, at most %d are allowed: split it", n, mostMethods)
			}
		}
	}
	compare(t, over, manyMethods)
}

// compare fails the test for what is over a limit and not listed and, if CI is set, for
// what is listed and not over the limit.
func compare(t *testing.T, over map[string]string, listed map[string]bool) {
	t.Helper()
	for name, fault := range over {
		if !listed[name] {
			t.Errorf("%s %s", name, fault)
		}
	}
	for name := range listed {
		if over[name] == "" && os.Getenv("CI") != "" {
			t.Errorf("%s keeps to the limit: remove it from the list in test/arch/shape_test.go", name)
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
	over := map[string]string{}
	for path, p := range packages(t) {
		if !isApp(path) {
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
			over[path] = fmt.Sprintf("has %d lines, at most %d are allowed: split it", lines, mostLines)
		}
	}
	compare(t, over, longPackage)
}

// TestTheCoreUsesNoHTTP refuses net/http and numbers that are an HTTP status in
// app and ports. Named constants and durations are not taken for one.
func TestTheCoreUsesNoHTTP(t *testing.T) {
	over := map[string]string{}
	for path, p := range packages(t) {
		if !isApp(path) && path != "ports" {
			continue
		}
		if slices.Contains(p.Imports, "net/http") {
			over[path] = "imports net/http"
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
						over[path] = fmt.Sprintf("has %d at %s, which looks like an HTTP status", v, fset.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	compare(t, over, usesHTTP)
}

// smallGenerics are the generic types of other modules that may be fields: what they add to the
// compilation of a package that uses their owner is below 0.1 s.
var smallGenerics = map[string]bool{
	"github.com/sony/gobreaker/v2.TwoStepCircuitBreaker": true,
	"github.com/riverqueue/river.WorkerDefaults":         true,
}

// TestNoFieldIsAGenericContainerOfAnotherModule refuses fields such as *otter.Cache[K, V]: each package
// that uses a type with one compiles the code of the container again. An interface, as app/cache has
// one, keeps it in the package that makes the container.
func TestNoFieldIsAGenericContainerOfAnotherModule(t *testing.T) {
	for path, p := range packages(t) {
		fset, files := parsed(t, path, p)
		for _, f := range files {
			foreign := foreignImports(f)
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.StructType)
				if !ok || path == "app/cache" {
					return true
				}
				for _, field := range s.Fields.List {
					if name := genericOf(field.Type, foreign); name != "" && !smallGenerics[name] {
						t.Errorf("%s: a field has the type %s of another module, with parameters: put an interface before it",
							fset.Position(field.Pos()), name)
					}
				}
				return true
			})
		}
	}
}

// foreignImports returns the paths of the imports of other modules by the names that a file has for them.
func foreignImports(f *ast.File) map[string]string {
	paths := map[string]string{}
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
			continue // of the standard library or of this module
		}
		name := filepath.Base(path)
		if filepath.Dir(path) != "." && strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
			name = filepath.Base(filepath.Dir(path))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		paths[name] = path
	}
	return paths
}

// genericOf returns the foreign type with parameters that a type is, points to or holds, "" without one.
func genericOf(e ast.Expr, foreign map[string]string) (name string) {
	ast.Inspect(e, func(n ast.Node) bool {
		var of ast.Expr
		switch n := n.(type) {
		case *ast.IndexExpr:
			of = n.X
		case *ast.IndexListExpr:
			of = n.X
		case *ast.StructType, *ast.FuncType:
			return false // seen by itself, or no container
		}
		if sel, ok := of.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && foreign[pkg.Name] != "" {
				name = foreign[pkg.Name] + "." + sel.Sel.Name
			}
		}
		return name == ""
	})
	return name
}

// mostEndpointFiles is how many files serve declared operations: what reads a request is package binding, what writes
// other forms is package format, and the document's parts are package openapi.
const mostEndpointFiles = 16

func TestEndpointIsSmall(t *testing.T) {
	if n := len(packages(t)["adapters/httpapi/endpoint"].GoFiles); n > mostEndpointFiles {
		t.Errorf("adapters/httpapi/endpoint has %d files, at most %d are allowed", n, mostEndpointFiles)
	}
}

// Requests do not pass through huma: it makes schemas, and what reads a body or writes an answer is ours.
func TestHumaOnlyDescribes(t *testing.T) {
	for path, p := range packages(t) {
		for _, name := range p.Imports {
			if strings.HasPrefix(name, "github.com/danielgtaylor/huma/v2/") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		_, files := parsed(t, path, p)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := s.X.(*ast.Ident); ok && of.Name == "huma" &&
					slices.Contains([]string{"Register", "NewAPI", "Validate", "Context", "ReadCookie"}, s.Sel.Name) {
					t.Errorf("%s uses huma.%s", path, s.Sel.Name)
				}
				return true
			})
		}
	}
}
