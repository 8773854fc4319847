// Package arch_test checks the structure of the code: which package imports
// which, the size of the packages and types of app, what the core may not use, and
// the words of comments.
package arch_test

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	module = "agentproxy"
	root   = "../.."
)

// packages returns every package of the module by its path below the root.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	found, err := readPackages()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("found only %d packages below %s", len(found), root)
	}
	return found
}

// readPackages reads the module once for all tests, which change none of it.
var readPackages = sync.OnceValues(func() (map[string]*build.Package, error) {
	found := map[string]*build.Package{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name != ".." && strings.HasPrefix(name, ".") || name == "testdata" {
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		found[filepath.ToSlash(rel)] = p
		return err
	})
	return found, err
})

func TestTheCoreImportsNoModule(t *testing.T) {
	for path, p := range packages(t) {
		if path != "domain" && path != "ports" && !strings.HasPrefix(path, "domain/") {
			continue
		}
		for _, imported := range p.Imports {
			host, _, _ := strings.Cut(imported, "/")
			if host != module && strings.Contains(host, ".") {
				t.Errorf("%s imports %s: only the standard library is allowed there", path, imported)
			}
		}
	}
}

func TestDomainDoesNoIO(t *testing.T) {
	for path, p := range packages(t) {
		if !strings.HasPrefix(path, "domain") {
			continue
		}
		for _, imported := range p.Imports {
			switch imported {
			case "os", "net", "net/http", "io/fs", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand":
				t.Errorf("%s imports %s: the domain does no IO and makes no chance", path, imported)
			}
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	for path, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", path)
		}
	}
}
