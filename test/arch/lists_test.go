package arch_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestListsHaveEveryConstant checks that an exported list of a type's values, such as
// session.Statuses, has all exported constants of the type.
func TestListsHaveEveryConstant(t *testing.T) {
	found := 0
	for path, p := range packages(t) {
		if !strings.HasPrefix(path, "domain/") && !isApp(path) {
			continue
		}
		constants, lists := map[string][]string{}, map[string][]string{} // by type
		_, files := parsed(t, path, p)
		for _, f := range files {
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					for _, s := range g.Specs {
						if v, ok := s.(*ast.ValueSpec); ok {
							addValues(v, g.Tok, constants, lists)
						}
					}
				}
			}
		}
		for typ, list := range lists {
			if len(constants[typ]) == 0 {
				continue
			}
			found++
			for _, name := range constants[typ] {
				if !slices.Contains(list, name) {
					t.Errorf("%s: the list of every %s lacks %s", path, typ, name)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found only %d lists", found)
	}
}

// addValues records a constant with a type, or the elements of an exported list of one type.
func addValues(v *ast.ValueSpec, tok token.Token, constants, lists map[string][]string) {
	if typ, ok := v.Type.(*ast.Ident); ok && tok == token.CONST && v.Names[0].IsExported() {
		for _, name := range v.Names {
			constants[typ.Name] = append(constants[typ.Name], name.Name)
		}
	}
	if len(v.Values) != 1 || !v.Names[0].IsExported() {
		return
	}
	list, ok := v.Values[0].(*ast.CompositeLit)
	if !ok {
		return
	}
	array, ok := list.Type.(*ast.ArrayType)
	if !ok {
		return
	}
	if typ, ok := array.Elt.(*ast.Ident); ok {
		for _, e := range list.Elts {
			if name, ok := e.(*ast.Ident); ok {
				lists[typ.Name] = append(lists[typ.Name], name.Name)
			}
		}
	}
}
