package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"
)

// paces are the files of tests that sleep or measure on purpose, and why no result depends on it.
var paces = map[string]string{
	"adapters/chain/devchain_test.go":  "a pause in a unit, so that others overlap with it if it does not hold them off",
	"adapters/chain/tronlogs_test.go":  "all in bubbles, of another file",
	"adapters/gateway/refusal_test.go": "a client that sends slowly, and is cut in the end",
	"adapters/gateway/tunnel_test.go":  "a tunnel in use, which is given more time if the machine had too little",
	"test/contract/store_units.go":     "overlap, a pause in a unit",
	"test/link/link.go":                "the delay of a line",
}

// leastBound is the least time within which something that must happen is waited for.
const leastBound = 30 * time.Second

// TestTestsDependOnNoSpeed refuses sleeps other than between two looks at a state (the third part of a for), measured
// times that are compared, and deadlines below leastBound, in tests whose file does not set the clock by
// testing/synctest. Benchmarks may have them.
func TestTestsDependOnNoSpeed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test() || strings.HasSuffix(s.path, "bench_test.go") || importsPackage(s.file, "testing/synctest") {
			continue
		}
		for _, fault := range speeds(s.file) {
			if used[s.path] = true; paces[s.path] == "" {
				t.Errorf("%s: %s: wait for a state, set the clock or count", s.fset.Position(fault.at), fault.what)
			}
		}
	}
	for path := range paces {
		if !used[path] {
			t.Errorf("%s depends on no speed: remove it from paces", path)
		}
	}
}

// importsPackage reports whether a file imports a package.
func importsPackage(f *ast.File, path string) bool {
	for _, spec := range f.Imports {
		if spec.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

// pace is what makes a test depend on speed.
type pace struct {
	at   token.Pos
	what string
}

// speeds lists what makes a file depend on speed.
func speeds(f *ast.File) (found []pace) {
	polls := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return !strings.HasPrefix(n.Name.Name, "Benchmark")
		case *ast.ForStmt:
			if post, ok := n.Post.(*ast.ExprStmt); ok {
				polls[post.X] = true
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				if isTime(n.X, "Since") || isTime(n.Y, "Since") {
					found = append(found, pace{n.Pos(), "a measured time is compared"})
				}
			}
		case *ast.CallExpr:
			if isTime(n, "Sleep") && !polls[n] {
				found = append(found, pace{n.Pos(), "a sleep"})
			}
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "WithTimeout" {
				if d, known := constant(n.Args[1]); known && d < leastBound {
					found = append(found, pace{n.Pos(), "a deadline of " + d.String()})
				}
			}
		}
		return true
	})
	return found
}

// isTime reports whether an expression calls a function of package time.
func isTime(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}

var units = map[string]time.Duration{"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond,
	"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// constant returns the duration that an expression of numbers and units has.
func constant(e ast.Expr) (d time.Duration, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.Atoi(e.Value)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		d, known = units[e.Sel.Name]
		return d, known
	case *ast.BinaryExpr:
		x, knownX := constant(e.X)
		y, knownY := constant(e.Y)
		return x * y, knownX && knownY && e.Op == token.MUL
	}
	return 0, false
}

func TestWhatDependsOnSpeedIsFound(t *testing.T) {
	for statement, want := range map[string]string{
		"time.Sleep(time.Second)":                                        "a sleep",
		"for ; !done(); time.Sleep(wait) {}":                             "",
		"for !done() { time.Sleep(wait) }":                               "a sleep",
		"if time.Since(began) > limit { t.Error() }":                     "a measured time is compared",
		"t.Log(time.Since(began))":                                       "",
		"context.WithTimeout(ctx, 29*time.Second)":                       "a deadline of 29s",
		"context.WithTimeout(ctx, time.Minute)":                          "",
		"ok := func() bool { return limit < time.Since(began) }; _ = ok": "a measured time is compared",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+statement+"\n}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, fault := range speeds(f) {
			found += fault.what
		}
		if found != want {
			t.Errorf("%s: found %q, want %q", statement, found, want)
		}
	}
}
