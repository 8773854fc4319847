package arch_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sellerPlaces are what adding a seller touches, %s for the name of its kind.
var sellerPlaces = []string{"adapters/upstream/%s", "test/fake/%s", "adapters/upstream/upstream.go",
	"adapters/upstream/replaces_test.go", "test/procurement", "test/arch/imports_test.go", "docs/providers.md", "CHANGELOG.md"}

// sellerExamples have names of sellers for another reason than that there is such a seller.
var sellerExamples = map[string]string{
	"adapters/configfile":              "kinds of its tests",
	"cmd/internal/wire/reload_test.go": "a kind of its tests",
	"cmd/agentproxy/starter.yaml":      "an example",
	"test/e2e":                         "ways through one seller, for all",
	"adapters/upstream/gateway":        "the grammar of a gateway of the same name",
	"test/fake/upstreamproxy":          "the same",
	"docs/architecture.md":             "written by make generate",
	"test/arch/sellers_test.go":        "a test of this test",
}

// TestASellerIsInFewPlaces finds the name of a seller in a file that a new one would have to touch too.
func TestASellerIsInFewPlaces(t *testing.T) {
	t.Parallel()
	var sellers []string
	registers := regexp.MustCompile(`kind\.Of\("(\w+)"`)
	for _, s := range sources(t) {
		// A gateway and a list are none, and words of the language.
		if m := registers.FindSubmatch(s.text); m != nil && !slices.Contains([]string{"gateway", "list"}, string(m[1])) {
			sellers = append(sellers, string(m[1]))
		}
	}
	if len(sellers) < 5 {
		t.Fatalf("the sellers are %v", sellers)
	}
	if len(sellerPlaces) > 8 {
		t.Errorf("a seller touches %d places, at most 8 are allowed", len(sellerPlaces))
	}
	used := map[string]bool{}
	names := regexp.MustCompile(`\b(` + strings.Join(sellers, "|") + `)\b`)
	for path, text := range textFiles(t) {
		for _, name := range names.FindAll(text, -1) {
			seller := string(name)
			if place := placeOf(path, seller); place == "" {
				t.Errorf("%s names the seller %s: adding one would touch it too", path, seller)
			} else {
				used[place] = true
			}
		}
	}
	contributing, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(contributing), "## Add an upstream provider\n")
	recipe, _, _ = strings.Cut(recipe, "\n## ")
	for _, place := range sellerPlaces {
		if shown := strings.ReplaceAll(place, "%s", "<seller>"); !used[place] || !strings.Contains(recipe, shown) {
			t.Errorf("no seller is in %s, or the recipe in CONTRIBUTING.md does not name it", shown)
		}
	}
	for place := range sellerExamples {
		if !used[place] {
			t.Errorf("%s names no seller: remove it from the examples", place)
		}
	}
}

// placeOf returns the place or the example that a file belongs to; empty: none.
func placeOf(path, seller string) string {
	inside := func(place string) bool { return path == place || strings.HasPrefix(path, place+"/") }
	for _, place := range sellerPlaces {
		if inside(strings.ReplaceAll(place, "%s", seller)) {
			return place
		}
	}
	for place := range sellerExamples {
		if inside(place) {
			return place
		}
	}
	return ""
}

func TestAPlaceOfASellerIsFound(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"adapters/upstream/iproyal/list.go": "adapters/upstream/%s",
		"adapters/upstream/webshare/list.go": "", "cmd/apx/main.go": "", "test/e2e/a_test.go": "test/e2e"} {
		if got := placeOf(path, "iproyal"); got != want {
			t.Errorf("%s is in %q, want %q", path, got, want)
		}
	}
}

// textFiles returns the files of the repository that people write, by path.
func textFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "node_modules" || name == "testdata" || name == ".git" || name == "dist"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".sh", ".js", ".ts", ".py", ""}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		short, err := filepath.Rel(root, path)
		files[filepath.ToSlash(short)] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
